/*
 * secure.h - TLS as an owner and the command have it: which files, and what failed.
 */
#ifndef PERSEAS_CLIENT_SECURE_H
#define PERSEAS_CLIENT_SECURE_H

#include "../../proto/base/tls.h"
#include "../core/address.h"
#include "../core/error.h"

/*
 * The certificates that the options name, or the environment where they do not (PERSEAS_TLS_CERT,
 * PERSEAS_TLS_KEY, PERSEAS_TLS_CA, and PERSEAS_TLS_CRL for what is revoked). options may be NULL.
 * *tls is the caller's; NULL: none are named, so connections are plain text. 0, PERSEAS_EINVAL
 * where only some are named, or PERSEAS_ETLS.
 */
int ps_secure_new(const struct perseas_options *options, struct ps_tls **tls,
                  struct ps_error *error);

/* Puts TLS on a connection to the address, where there is TLS and the address is reached over TCP.
 * 0, or PERSEAS_ENOMEM. */
int ps_secure_begin(struct ps_stream *stream, struct ps_tls *tls, const struct ps_address *address,
                    struct ps_error *error);

/* Moves the handshake on without waiting. 1: it is over; 0: not yet; else a code. */
int ps_secure_step(struct ps_stream *stream, const struct ps_address *address,
                   struct ps_error *error);

/* Says why TLS failed on the stream. PERSEAS_ETLS, or 0: it did not fail. */
int ps_secure_failed(const struct ps_stream *stream, const struct ps_address *address,
                     struct ps_error *error);

/* Says that the peer wants TLS, if these first bytes of its answer to a plain hello say so.
 * PERSEAS_ETLS, or 0. */
int ps_secure_wanted(const uint8_t first[2], const struct ps_address *address,
                     struct ps_error *error);

/* Says that the handshake is not over in time. PERSEAS_EUNREACHABLE. */
int ps_secure_late(const struct ps_address *address, struct ps_error *error);

#endif
