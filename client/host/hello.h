/*
 * hello.h - the greeting of a control connection, from the owner's side: what is offered to the
 * mirror, what it answers, and what was sent before that is known, for a mirror that knows no
 * ranges of versions and must be dialled again. control_socket.c calls it. It does no I/O.
 */
#ifndef PERSEAS_CLIENT_HELLO_H
#define PERSEAS_CLIENT_HELLO_H

#include "../core/error.h"
#include "outbox.h"
#include "../../proto/control/envelope.h"

struct ps_meeting {
	struct ps_control_hello offered;
	struct ps_control_hello answer; /* it is being received */
	unsigned version;               /* that is spoken; 0: it is not known yet */
	unsigned needed;                /* by what is to be sent, the highest */
	struct ps_outbox early; /* all that was sent behind the hello, until that is known */
};

/* Begins with all versions, or with one alone: the hello goes to `out`. False: out of memory. */
bool ps_meeting_begin(struct ps_meeting *meeting, uint32_t offer, struct ps_outbox *out);

/* Adds what is to be sent, which takes this version at least. False: out of memory, and nothing is
 * added. */
bool ps_meeting_add(struct ps_meeting *meeting, struct ps_outbox *out, unsigned version,
                    const void *bytes, size_t len);

/*
 * The answer is whole. 0: a version is spoken now, or *again is set: the mirror hung up without
 * looking at anything, and is to be dialled and begun with that offer. PERSEAS_EVERSION: no version
 * is common, or it knows less than is needed; PERSEAS_EPROTOCOL: it is no mirror.
 */
int ps_meeting_end(struct ps_meeting *meeting, const char *name, uint32_t *again,
                   struct ps_error *error);

/* What was sent before goes to `out` once more, behind the new hello. False: out of memory. */
bool ps_meeting_repeat(struct ps_meeting *meeting, uint32_t offer, struct ps_outbox *out);

void ps_meeting_free(struct ps_meeting *meeting);

#endif
