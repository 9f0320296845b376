/*
 * flag_fd.h - a descriptor that can be read while a flag is raised, for event loops of applications
 * (standby.c). Raising it is safe in a signal handler.
 */
#ifndef PERSEAS_CLIENT_FLAG_FD_H
#define PERSEAS_CLIENT_FLAG_FD_H

#include "error.h"

/* The descriptor, lowered, which the caller closes; or PERSEAS_ESYSTEM. */
int ps_flag_new(struct ps_error *error);

void ps_flag_raise(int flag);
void ps_flag_lower(int flag);

#endif
