/*
 * greeting.h - establishes a data connection over TCP: dials, secures it if TLS is used, and sends
 * the grant's token. fabric_tcp.c calls the steps; only ps_greeting_await waits.
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

/* Creates a greeting; the first step begins to connect. tls is NULL for plain text. Returns NULL on
 * failure, with *error set. */
struct ps_greeting *ps_greeting_new(struct ps_tls *tls, const struct ps_address *address,
                                    const Perseas__Grant *grant, struct ps_error *error);

/* Takes the next step without waiting. stream->fd must be -1 before the first step. Returns 1 once
 * the stream takes frames; 0 if it does not yet and until_ns has not passed; or a code, with *error
 * set. */
int ps_greeting_step(struct ps_greeting *g, struct ps_stream *stream, uint64_t until_ns,
                     struct ps_error *error);

/* Sets *fd to the descriptor and events that the next step waits for. Returns false if no
 * descriptor shows when the next step is due. */
bool ps_greeting_get_pollfd(const struct ps_greeting *g, const struct ps_stream *stream,
                            struct pollfd *fd);

/* Waits until the next step may be due, or until until_ns. */
void ps_greeting_await(const struct ps_greeting *g, const struct ps_stream *stream,
                       uint64_t until_ns);

void ps_greeting_free(struct ps_greeting *g); /* NULL is allowed; the caller closes the stream */

#endif
