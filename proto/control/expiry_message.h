/*
 * expiry_message.h - the messages that tell when a daemon's TLS files expire: their check, for
 * check.c, and how owners and commands read them.
 */
#ifndef PERSEAS_PROTO_EXPIRY_MESSAGE_H
#define PERSEAS_PROTO_EXPIRY_MESSAGE_H

#include "../base/expiry.h"
#include "control.pb-c.h"

/* Returns NULL if the messages are valid, or a sentence that says what is wrong. */
const char *ps_expiries_fault(Perseas__Expiry *const *messages, size_t count);

/* Adds what the messages tell, which have been checked. */
void ps_expiries_read(struct ps_expiries *expiries, Perseas__Expiry *const *messages, size_t count);

#endif
