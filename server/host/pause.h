/*
 * pause.h - how long to wait before the same problem is repaired again: a pause that doubles while
 * the problem recurs, and is short again after it stayed away for long. Times are of a monotonic
 * clock.
 */
#ifndef PERSEAS_SERVER_PAUSE_H
#define PERSEAS_SERVER_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PAUSE_LEAST_MS = 1000,
	PAUSE_MOST_MS = 600000,
	/* If the problem stays away for this many pauses, the next pause is the shortest again. */
	PAUSE_CALM = 4,
};

/* Initialize to zero. */
struct pause {
	uint64_t ended_ns;  /* time of the last repair; 0: none */
	uint64_t length_ms; /* length of the pause that followed */
};

bool pause_is_over(const struct pause *pause, uint64_t now_ns);
/* Begins the next pause after a repair at `now_ns`. */
void pause_begin(struct pause *pause, uint64_t now_ns);

#endif
