/*
 * hello.h - the greeting of a control connection, from the owner's side: what is offered to the
 * mirror, and what it answers. control_socket.c calls it. It does no I/O.
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
};

/* The hello goes to `out`. False: out of memory. */
bool ps_meeting_begin(struct ps_meeting *meeting, struct ps_outbox *out);

/* Adds what is to be sent, which takes this version at least. False: out of memory, and nothing is
 * added. */
bool ps_meeting_add(struct ps_meeting *meeting, struct ps_outbox *out, unsigned version,
                    const void *bytes, size_t len);

/* The answer is whole. 0: a version is spoken now. PERSEAS_EVERSION: no version is common, or the
 * mirror knows less than is needed; PERSEAS_EPROTOCOL: it is no mirror. */
int ps_meeting_end(struct ps_meeting *meeting, const char *name, struct ps_error *error);

#endif
