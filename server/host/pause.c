/*
 * pause.c - see pause.h. names_loop.c calls it.
 */
#include "pause.h"

static uint64_t elapsed_ms(const struct pause *pause, uint64_t now_ns)
{
	return (now_ns - pause->ended_ns) / 1000000;
}

bool pause_is_over(const struct pause *pause, uint64_t now_ns)
{
	return !pause->ended_ns || elapsed_ms(pause, now_ns) >= pause->length_ms;
}

void pause_begin(struct pause *pause, uint64_t now_ns)
{
	if (!pause->ended_ns || elapsed_ms(pause, now_ns) >= PAUSE_CALM * pause->length_ms)
		pause->length_ms = PAUSE_LEAST_MS;
	else if (pause->length_ms < PAUSE_MOST_MS / 2)
		pause->length_ms *= 2;
	else
		pause->length_ms = PAUSE_MOST_MS;
	pause->ended_ns = now_ns;
}
