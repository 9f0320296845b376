/*
 * child.h - the COMMAND that perseas run starts: its environment, its process, and what became of
 * it. runner.c calls it. It must know nothing of stores.
 */
#ifndef PERSEAS_COMMAND_CHILD_H
#define PERSEAS_COMMAND_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* What cannot be started ends as in a shell. */
enum { PS_CHILD_CANNOT = 126, PS_CHILD_NOT_FOUND = 127, PS_CHILD_SIGNALLED = 128 };

struct ps_child {
	pid_t pid; /* 0: none runs */
};

/* Starts it, with these signals as they were before anybody blocked them. 0, or the exit status
 * that says why not, after a complaint. It gets SIGTERM when this process dies, and inherits the
 * descriptor `kept`; -1: none. */
int ps_child_start(struct ps_child *child, char *const *command, const sigset_t *blocked, int kept);

/* Nothing where none runs. */
void ps_child_signal(const struct ps_child *child, int signal);

/* Has it ended? Then *status is its exit status, or PS_CHILD_SIGNALLED and the signal. */
bool ps_child_ended(struct ps_child *child, int *status);

#endif
