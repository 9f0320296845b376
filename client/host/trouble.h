/*
 * trouble.h - what is said of a control connection that is of no more use, for control_socket.c:
 * one sentence each, which names the mirror and says what to look at. Each returns the code that it
 * sets. No I/O.
 */
#ifndef PERSEAS_CLIENT_TROUBLE_H
#define PERSEAS_CLIENT_TROUBLE_H

#include "../core/error.h"

#include <stdbool.h>
#include <stdint.h>

/* error: errno, or 0 where the mirror ended it. */
int ps_trouble_ended(struct ps_error *trouble, const char *name, bool greeted, int error);
/* A request's time is over. */
int ps_trouble_late(struct ps_error *trouble, const char *name, bool greeted);
int ps_trouble_silent(struct ps_error *trouble, const char *name, uint64_t limit_ns);
/* It greets as no perseasd does, or as one of another version. */
int ps_trouble_stranger(struct ps_error *trouble, const char *name);
int ps_trouble_version(struct ps_error *trouble, const char *name, uint32_t theirs);
/* It speaks that version, and what it is to be asked takes a later one. */
int ps_trouble_old(struct ps_error *trouble, const char *name, unsigned version, unsigned needed);
/* A message that is too long, or is not the reply that is due. */
int ps_trouble_long(struct ps_error *trouble, const char *name, unsigned length);
int ps_trouble_reply(struct ps_error *trouble, const char *name, const char *why);

#endif
