/*
 * flag_fd.h - a file descriptor that is readable while a flag is raised, for event loops of
 * applications (perseas_fd, perseas_standby_fd). Raising the flag is safe in a signal handler.
 */
#ifndef PERSEAS_CLIENT_FLAG_FD_H
#define PERSEAS_CLIENT_FLAG_FD_H

#include "error.h"

/* Returns a new descriptor with its flag lowered, which the caller closes; or PERSEAS_ESYSTEM. */
int ps_flag_fd_new(struct ps_error *error);

void ps_flag_fd_raise(int flag);
void ps_flag_fd_lower(int flag);

#endif
