/*
 * pause.h - how long to wait before the same trouble is mended once more: a pause that doubles
 * while the trouble comes back, and is short again when it stayed away for long. Times are of a
 * monotonic clock.
 */
#ifndef PERSEAS_SERVER_PAUSE_H
#define PERSEAS_SERVER_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PAUSE_LEAST_MS = 1000,
	PAUSE_MOST_MS = 600000,
	PAUSE_CALM = 4, /* so many pauses without trouble make the next one the shortest again */
};

/* All zero at first. */
struct pause {
	uint64_t ended_ns;  /* when something was last mended; 0: never */
	uint64_t length_ms; /* of the pause that followed */
};

bool pause_is_over(const struct pause *pause, uint64_t now_ns);
/* Something was mended at `now_ns`, and the next pause begins. */
void pause_begin(struct pause *pause, uint64_t now_ns);

#endif
