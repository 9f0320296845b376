/*
 * stop.c - a clean end on SIGINT and SIGTERM.
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
	struct sigaction action = { .sa_handler = signal_note };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool ps_stopped(void)
{
	return stopped;
}
