/*
 * greeting.h - a data connection over TCP that is being made: dialled, secured where there is TLS,
 * and greeted with the grant's token. fabric_tcp.c moves it on; nothing here waits but
 * ps_greeting_await.
 */
#ifndef PERSEAS_CLIENT_GREETING_H
#define PERSEAS_CLIENT_GREETING_H

#include "../../proto/base/tls.h"
#include "../core/address.h"
#include "control.pb-c.h"
#include "../core/error.h"

#include <poll.h>
#include <stdbool.h>

struct ps_greeting;

/* Begins nothing yet. tls: NULL, plain text. NULL on failure, with *error set. */
struct ps_greeting *ps_greeting_new(struct ps_tls *tls, const struct ps_address *address,
                                    const Perseas__Grant *grant, struct ps_error *error);

/* Moves it on without waiting; stream->fd is -1 before the first step. 1: the stream takes frames;
 * 0: not yet, and it is not until_ns yet; else a code, with *error set. */
int ps_greeting_step(struct ps_greeting *g, struct ps_stream *stream, uint64_t until_ns,
                     struct ps_error *error);

/* What the next step needs: fills *fd in. False: nothing shows when it is time for it. */
bool ps_greeting_waits(const struct ps_greeting *g, const struct ps_stream *stream,
                       struct pollfd *fd);

/* Waits until there may be a step to take, or until_ns. */
void ps_greeting_await(const struct ps_greeting *g, const struct ps_stream *stream,
                       uint64_t until_ns);

void ps_greeting_free(struct ps_greeting *g); /* NULL is allowed; the stream is the caller's */

#endif
