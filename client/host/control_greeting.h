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
	struct ps_control_hello answer; /* the mirror's; it is being received */
	unsigned version;               /* agreed on; 0: not known yet */
	unsigned needed;                /* the highest that a queued request needs */
};

/* Adds the hello to `out`. Returns false if there is no memory. */
bool ps_control_greeting_begin(struct ps_control_greeting *greeting, struct ps_outbox *out);

/* Adds a request that needs this version at least. Returns false if there is no memory. */
bool ps_control_greeting_add(struct ps_control_greeting *greeting, struct ps_outbox *out,
                             unsigned version, const void *bytes, size_t len);

/* Takes the complete answer. Returns 0 if a version was agreed on, PERSEAS_EVERSION if there is
 * none, or none that the queued requests need, or PERSEAS_EPROTOCOL if the peer is no mirror. */
int ps_control_greeting_end(struct ps_control_greeting *greeting, const char *name,
                            struct ps_error *error);

#endif
