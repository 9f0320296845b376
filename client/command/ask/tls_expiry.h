/*
 * tls_expiry.h - says when TLS files expire, for perseas status and perseas doctor: the command's
 * own files, those of daemons, and the certificates that mirrors presented. Sends no request.
 */
#ifndef PERSEAS_COMMAND_TLS_EXPIRY_H
#define PERSEAS_COMMAND_TLS_EXPIRY_H

#include "ask.h"

struct ps_json;

/* Returns the time in seconds since 1970, by the env's clock. */
uint64_t ps_env_clock_seconds(struct ps_env *env);

/* Lists when the command's own TLS files expire; an empty list without TLS. */
void ps_env_list_expiries(struct ps_env *env, struct ps_expiries *expiries);

/* Lists when the certificates expire that mirror i presented and, if its last reply answers a List
 * request, when its daemon's TLS files expire. */
void ps_peers_list_expiries(const struct ps_peers *peers, unsigned i, struct ps_expiries *expiries);

/* Print which of the command's own files and of all that mirrors reported or presented expires
 * first: as a line of text, or as the JSON object "tls_expires" (null without TLS). */
void ps_tls_expiry_print(const struct ps_peers *peers);
void ps_tls_expiry_json(struct ps_json *json, const struct ps_peers *peers);

#endif
