/*
 * expiry_message.h - checks and reads messages with the expiry dates of a daemon's TLS files.
 * check.c checks them; owners and commands read them.
 */
#ifndef PERSEAS_PROTO_EXPIRY_MESSAGE_H
#define PERSEAS_PROTO_EXPIRY_MESSAGE_H

#include "../base/expiry.h"
#include "control.pb-c.h"

/* Returns NULL if the messages are valid, or a sentence that says what is wrong. */
const char *ps_expiries_fault(Perseas__Expiry *const *messages, size_t count);

/* Adds the entries of checked messages to a list. */
void ps_expiries_read(struct ps_expiries *expiries, Perseas__Expiry *const *messages, size_t count);

#endif
