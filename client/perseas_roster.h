/*
 * perseas_roster.h - which mirrors a store has, and how that is changed while transactions go on.
 * perseas.h includes it; what that says of return values, strings and threads holds here, too.
 */
#ifndef PERSEAS_ROSTER_H
#define PERSEAS_ROSTER_H

#include "perseas.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Another flag of struct perseas_options: a store that is created gets level 0, so that programs
 * and mirrors of the version before can use it, too. Without this flag a new store gets level 1 if
 * all of its mirrors know that level. */
enum { PERSEAS_LEVEL_0 = 128 };

enum perseas_roster_kind {
	PERSEAS_ROSTER_ADD = 1,  /* `with` joins the roster */
	PERSEAS_ROSTER_REMOVE,   /* `address` leaves it */
	PERSEAS_ROSTER_REPLACE,  /* `with` takes the place of `address` */
	PERSEAS_ROSTER_CANCEL,   /* take back the change that another thread waits for */
	PERSEAS_ROSTER_RAISE = 8 /* no mirror joins or leaves: the store gets level 1 */
};

struct perseas_roster_change {
	int kind;            /* enum perseas_roster_kind */
	const char *address; /* of a member, as the roster has it; ADD, CANCEL, RAISE: NULL */
	const char *with;    /* of the new mirror, as for perseas_create; NULL with the others */
	uint32_t acks;       /* W afterwards; 0: a majority where W is a majority now or no longer
	                        fits, else as it is */
	int gone;            /* 1: the mirror at `address` is gone for good, with what it holds, and
	                     will not be started again. Needed to replace a dead mirror of two: if
	                     it came back alone, it would not know of the change. */
};

/*
 * Changes which mirrors the store has, one at a time, while transactions go on (a joint change, as
 * in Raft). A new mirror is first copied whole, without a vote. Then both rosters must agree, for
 * as long as it takes to record the change. Then only the new one counts. A dead mirror can be
 * replaced, even if W is all of three mirrors; one of two only with `gone`. The removed mirror
 * keeps its image, which counts for nothing: `perseas drop` deletes it. To REPLACE a mirror by
 * another address of that same mirror changes its address alone, and copies nothing. The call
 * returns when the change is over; other threads may go on. After an error the roster is as it was,
 * unless the owner was fenced: then the next open completes the change, or knows nothing of it.
 *
 * CANCEL takes back the change that another thread has asked for, or an order of the command. This
 * is possible until the change is decided, that is, until enough mirrors know it. The roster is
 * then as it was, and the other call returns EQUORUM. It fails with EINVAL (no change is being
 * made), EBUSY (the change is decided, and will be completed), EQUORUM (fewer than W mirrors of
 * the roster as it was are connected: commits would wait for them, and so would the next change),
 * EFENCED and ESALVAGE.
 *
 * RAISE gives a store of level 0 level 1 (doc/operating.md says what that protects from). All
 * mirrors of the roster must be connected, and must know level 1: EQUORUM and EVERSION otherwise.
 * Level 1 is never given up, and the version before does not open the store any more. EINVAL: the
 * store has level 1.
 *
 * Errors: EINVAL (no such member, an address that is not one, is in the roster or leads to another
 * member, acks out of range), ELIMIT (16 mirrors), EBUSY (another change is not over), EUNREACHABLE
 * (nobody answers at the new mirror's address, or it could not be copied to for ten seconds; the
 * message says why),
 * EQUORUM (too few members can be told of the change; or the present roster or the new one has
 * fewer than W live mirrors, or the new one fewer than the next open needs; the message names the
 * roster that is short), EBLOCKED (a commit is in doubt, and not because of the mirror that
 * leaves), EFENCED, ESALVAGE, ENOMEM.
 */
int perseas_roster(perseas_t *p, const struct perseas_roster_change *change);

#ifdef __cplusplus
}
#endif

#endif
