/*
 * stop.c - a clean end on SIGINT, SIGTERM, and SIGHUP, which comes when the terminal is gone.
 */
#include "ui.h"

#include <signal.h>

static volatile sig_atomic_t stopped;

static void signal_note(int signal)
{
	(void)signal;
	stopped = 1;
}

void ps_stop_catch(void)
{
	struct sigaction action = { .sa_handler = signal_note }, before;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* Under nohup, which ignores SIGHUP, the command goes on. */
	if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

bool ps_stopped(void)
{
	return stopped;
}
