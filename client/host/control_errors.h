/*
 * control_errors.h - sentences for control connections that failed: each names the mirror and says
 * what to look at. Each function returns the code that it sets. control_socket.c calls them. No
 * I/O.
 */
#ifndef PERSEAS_CLIENT_CONTROL_ERRORS_H
#define PERSEAS_CLIENT_CONTROL_ERRORS_H

#include "../core/error.h"

#include <stdbool.h>
#include <stdint.h>

/* The connection ended. number: errno, or 0 if the mirror ended it. greeted: the mirror's hello was
 * complete. */
int ps_control_error_ended(struct ps_error *error, const char *name, bool greeted, int number);
/* A request timed out. greeted: as above. */
int ps_control_error_timeout(struct ps_error *error, const char *name, bool greeted);
/* Nothing was heard of the mirror for limit_ns. */
int ps_control_error_silent(struct ps_error *error, const char *name, uint64_t limit_ns);
/* The peer is not a perseasd. */
int ps_control_error_not_perseasd(struct ps_error *error, const char *name);
/* The mirror supports none of this library's versions. theirs: the version in its hello. */
int ps_control_error_no_common_version(struct ps_error *error, const char *name, uint32_t theirs);
/* The mirror speaks `version`, and a request needs a later one. */
int ps_control_error_old_version(struct ps_error *error, const char *name, unsigned version,
                                 unsigned needed);
/* A message is too long. */
int ps_control_error_too_long(struct ps_error *error, const char *name, unsigned length);
/* A reply is malformed, or answers no request: `why` says what is wrong. */
int ps_control_error_bad_reply(struct ps_error *error, const char *name, const char *why);

#endif
