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

/* Number: errno, or 0 if the mirror ended the connection. */
int ps_control_error_ended(struct ps_error *error, const char *name, bool greeted, int number);
/* A request timed out. */
int ps_control_error_late(struct ps_error *error, const char *name, bool greeted);
int ps_control_error_silent(struct ps_error *error, const char *name, uint64_t limit_ns);
/* The peer is not a perseasd, or supports none of this library's versions. */
int ps_control_error_stranger(struct ps_error *error, const char *name);
int ps_control_error_version(struct ps_error *error, const char *name, uint32_t theirs);
/* The mirror speaks `version`, and a request needs a later one. */
int ps_control_error_old(struct ps_error *error, const char *name, unsigned version,
                         unsigned needed);
/* A message is too long, or is not the reply that was due. */
int ps_control_error_long(struct ps_error *error, const char *name, unsigned length);
int ps_control_error_reply(struct ps_error *error, const char *name, const char *why);

#endif
