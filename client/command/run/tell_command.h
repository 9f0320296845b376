/*
 * tell_command.h - writes what COMMAND of `perseas run` inherits: where its store is, how to reach
 * the mirrors, and the mark by which they know its owner.
 */
#ifndef PS_TELL_COMMAND_H
#define PS_TELL_COMMAND_H

#include "../../standby/follow.h"
#include "runner.h"

/* Sets the environment variable PS_INHERITED_VARIABLE by what the last look found. Must be called
 * just before COMMAND is started. warm_fd: a copy of the store's memory that COMMAND inherits, or
 * -1. */
void ps_set_inherited_variable(const struct ps_follow *follow, int warm_fd);

/* Passes the command line's options to COMMAND in the environment. */
void ps_export_options_to_command(const struct ps_run *run);

#endif
