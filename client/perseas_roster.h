/*
 * perseas_roster.h - changes of the roster, that is, of the mirrors that a store has, while
 * transactions go on. perseas.h includes this header. Its rules for return values, strings and
 * threads apply here, too.
 */
#ifndef PERSEAS_ROSTER_H
#define PERSEAS_ROSTER_H

#include "perseas.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Another flag of struct perseas_options: a new store gets level 0, so that programs and mirrors of
 * the previous version can use it, too. Without this flag a new store gets level 1 if all of its
 * mirrors know that level. */
enum { PERSEAS_LEVEL_0 = 128 };

enum perseas_roster_kind {
	PERSEAS_ROSTER_ADD = 1,  /* `with` joins the roster */
	PERSEAS_ROSTER_REMOVE,   /* `address` leaves it */
	PERSEAS_ROSTER_REPLACE,  /* `with` takes the place of `address` */
	PERSEAS_ROSTER_CANCEL,   /* withdraw the change that another thread waits for */
	PERSEAS_ROSTER_RAISE = 8 /* raise the store to level 1; no mirror joins or leaves */
};

struct perseas_roster_change {
	int kind;            /* enum perseas_roster_kind */
	const char *address; /* of a member, as the roster has it; NULL for ADD, CANCEL, RAISE */
	const char *with;    /* of the new mirror, as for perseas_create; NULL if no mirror joins */
	uint32_t acks;       /* W afterwards. 0: a majority if W is a majority now or would no
	                        longer fit; otherwise W is unchanged. */
	int gone;            /* 1: the mirror at `address` is gone for good, with what it holds, and
	                        will not be started again. Needed to replace a dead mirror of two:
	                        if it came back alone, it would not know of the change. */
};

/*
 * Changes the roster, one change at a time, while transactions go on (a joint change, as in Raft).
 * A new mirror is first copied whole, and does not vote. Then, while the change is recorded, both
 * rosters must agree. Then only the new roster counts. A dead mirror can be replaced, even if W is
 * all of three mirrors; one of two only with `gone`. A removed mirror keeps its image, which no
 * longer counts: `perseas drop` deletes it. REPLACE with another address of the same mirror only
 * changes its address and copies nothing. If mirrors exchanged their addresses, an address means
 * the mirror that is there now, and REPLACE of an address by itself records it. The call returns
 * when the change is over; other threads may go on. The text of PERSEAS_EVENT_ROSTER tells the
 * numbers of mirrors and W before and after; R is the number of mirrors minus W plus 1. After an
 * error the roster is unchanged, unless the owner was fenced: then the next open completes the
 * change, or does not know of it.
 *
 * CANCEL withdraws the change that another thread has asked for, or that the command has ordered.
 * This works until enough mirrors know the change, which decides it. The roster is then as before,
 * and the other call returns EQUORUM. Errors of CANCEL: EINVAL (no change is being made), EBUSY
 * (the change is decided, and will be completed), EQUORUM (fewer than W mirrors of the old roster
 * are connected: commits and the next change would wait for them), EFENCED, ESALVAGE.
 *
 * RAISE gives a store of level 0 level 1 (doc/operating.md says what that protects from). All
 * mirrors of the roster must be connected (EQUORUM) and know level 1 (EVERSION). This cannot be
 * undone, and the previous version does not open the store any more. EINVAL: the store has level 1.
 *
 * Errors: EINVAL (no such member; an invalid address, or one that is in the roster or leads to
 * another member; acks out of range), ELIMIT (16 mirrors), EBUSY (another change is not over),
 * EUNREACHABLE (no daemon answers at the new mirror's address, or it could not be copied to for ten
 * seconds; the message says why), EQUORUM (too few members can learn of the change; or the old or
 * the new roster has fewer than W live mirrors, or the new one fewer than the next open needs; the
 * message names the roster), EBLOCKED (a commit is in doubt for another reason than the mirror that
 * leaves), EFENCED, ESALVAGE, ENOMEM.
 */
int perseas_roster(perseas_t *p, const struct perseas_roster_change *change);

#ifdef __cplusplus
}
#endif

#endif
