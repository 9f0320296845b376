/*
 * control_greeting.h - the owner's side of the greeting on a control connection: the versions that
 * it offers, and the version that the mirror chooses. control_socket.c calls it. No I/O.
 */
#ifndef PERSEAS_CLIENT_CONTROL_GREETING_H
#define PERSEAS_CLIENT_CONTROL_GREETING_H

#include "../core/error.h"
#include "outbox.h"
#include "../../proto/control/envelope.h"

struct ps_control_greeting {
	struct ps_control_hello offered;
	struct ps_control_hello answer; /* it is being received */
	unsigned version;               /* that is spoken; 0: it is not known yet */
	unsigned needed;                /* by what is to be sent, the highest */
};

/* The hello goes to `out`. False: out of memory. */
bool ps_control_greeting_begin(struct ps_control_greeting *greeting, struct ps_outbox *out);

/* Adds what is to be sent, which takes this version at least. False: out of memory, and nothing is
 * added. */
bool ps_control_greeting_add(struct ps_control_greeting *greeting, struct ps_outbox *out,
                             unsigned version, const void *bytes, size_t len);

/* The answer is whole. 0: a version is spoken now. PERSEAS_EVERSION: no version is common, or the
 * mirror knows less than is needed; PERSEAS_EPROTOCOL: it is no mirror. */
int ps_control_greeting_end(struct ps_control_greeting *greeting, const char *name,
                            struct ps_error *error);

#endif
