/*
 * tell_command.h - writes what COMMAND of `perseas run` inherits: where its store is, how to reach
 * the mirrors, and by what its owner is known.
 */
#ifndef PS_TELL_COMMAND_H
#define PS_TELL_COMMAND_H

#include "../../standby/follow.h"

/* Sets PS_INHERITED_VARIABLE, by what the last look found. Must be called just before COMMAND is
 * started. warm_fd: a copy of the store's memory that COMMAND inherits, or -1. */
void ps_tell_command(const struct ps_follow *follow, int warm_fd);

#endif
