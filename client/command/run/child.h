/*
 * child.h - the COMMAND that perseas run starts: its environment, its process, and how it ended.
 * runner.c calls it. It must know nothing of stores.
 */
#ifndef PERSEAS_COMMAND_CHILD_H
#define PERSEAS_COMMAND_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Exit statuses of a COMMAND that cannot be started, or that a signal ended, as in a shell. */
enum { PS_CHILD_CANNOT = 126, PS_CHILD_NOT_FOUND = 127, PS_CHILD_SIGNALLED = 128 };

struct ps_child {
	pid_t pid; /* 0: not running */
};

/* Starts COMMAND, with the `blocked` signals unblocked. It gets SIGTERM when this process dies, and
 * inherits the descriptor `kept`, unless that is -1. Returns 0, or, after a complaint, the exit
 * status that says why it could not be started. */
int ps_child_start(struct ps_child *child, char *const *command, const sigset_t *blocked, int kept);

/* Sends COMMAND a signal. Does nothing if it does not run. */
void ps_child_signal(const struct ps_child *child, int signal);

/* Returns true if COMMAND has ended, and sets *status to its exit status, or to PS_CHILD_SIGNALLED
 * plus the signal. */
bool ps_child_reap(struct ps_child *child, int *status);

#endif
