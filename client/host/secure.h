/*
 * secure.h - TLS on the connections of owners and of the command: which files to use, and errors
 * that say what failed.
 */
#ifndef PERSEAS_CLIENT_SECURE_H
#define PERSEAS_CLIENT_SECURE_H

#include "../../proto/base/tls.h"
#include "../core/address.h"
#include "../core/error.h"

/*
 * Reads the certificates that the options name, or else the environment (PERSEAS_TLS_CERT,
 * PERSEAS_TLS_KEY, PERSEAS_TLS_CA, and PERSEAS_TLS_CRL for revoked ones). options may be NULL. *tls
 * is the caller's, or NULL for plain text if none are named. Returns 0, PERSEAS_EINVAL if only some
 * are named, or PERSEAS_ETLS.
 */
int ps_secure_load_files(const struct perseas_options *options, struct ps_tls **tls,
                         struct ps_error *error);

/* Begins TLS on a connection over TCP, if tls is not NULL. Returns 0, or PERSEAS_ENOMEM. */
int ps_secure_begin(struct ps_stream *stream, struct ps_tls *tls, const struct ps_address *address,
                    struct ps_error *error);

/* Continues the handshake without waiting. Returns 1 if it is over, 0 if not yet, or a code. */
int ps_secure_step(struct ps_stream *stream, const struct ps_address *address,
                   struct ps_error *error);

/* Sets the error of TLS on the stream. Returns PERSEAS_ETLS, or 0 if TLS did not fail. */
int ps_secure_check_failure(const struct ps_stream *stream, const struct ps_address *address,
                            struct ps_error *error);

/* Returns PERSEAS_ETLS with *error if these first bytes of the answer to a plain hello say that the
 * peer wants TLS. Otherwise returns 0. */
int ps_secure_peer_wants_tls(const uint8_t first[2], const struct ps_address *address,
                             struct ps_error *error);

/* Sets the error of a handshake that timed out. Returns PERSEAS_EUNREACHABLE. */
int ps_secure_fail_timeout(const struct ps_address *address, struct ps_error *error);

#endif
