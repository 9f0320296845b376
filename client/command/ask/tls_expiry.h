/*
 * tls_expiry.h - says when TLS files expire, for perseas status and perseas doctor: the command's
 * own files, those of daemons, and the certificates that mirrors showed. Sends no request.
 */
#ifndef PERSEAS_COMMAND_TLS_EXPIRY_H
#define PERSEAS_COMMAND_TLS_EXPIRY_H

#include "ask.h"

struct ps_json;

/* Seconds since 1970, by the env's clock. */
uint64_t ps_env_seconds(struct ps_env *env);

/* Lists what expires of the command's own files: none without TLS. */
void ps_env_expiries(struct ps_env *env, struct ps_expiries *expiries);

/* Lists what expires of mirror i: its daemon's files, if its last reply was that to a List, and the
 * certificates that it showed. */
void ps_peers_expiries(const struct ps_peers *peers, unsigned i, struct ps_expiries *expiries);

/* Prints the most urgent of the command's own files and of all that mirrors told and showed: as a
 * line of text, or as the object "tls_expires", which is null without TLS. */
void ps_tls_expiry_print(const struct ps_peers *peers);
void ps_tls_expiry_json(struct ps_json *json, const struct ps_peers *peers);

#endif
