/*
 * stop.c - ends the command cleanly on SIGINT, SIGTERM, and SIGHUP, which comes when the terminal
 * is gone.
 */
#include "ui.h"

#include <poll.h>
#include <signal.h>

/* A signal that arrives just before the sleep does not end it, so sleeps are cut into slices. */
enum { SLICE_MS = 100 };

static volatile sig_atomic_t stopped;

static void note_stop_signal(int signal)
{
	(void)signal;
	stopped = 1;
}

void ps_stop_catch(void)
{
	struct sigaction action = { .sa_handler = note_stop_signal }, before;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* Under nohup, which ignores SIGHUP, the command goes on. */
	if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

bool ps_stop_requested(void)
{
	return stopped;
}

void ps_stop_pause(uint32_t ms)
{
	while (ms > 0 && !stopped) {
		const uint32_t slice = ms < SLICE_MS ? ms : SLICE_MS;

		poll(NULL, 0, (int)slice);
		ms -= slice;
	}
}
