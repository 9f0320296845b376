/*
 * copy_told.h - says how much of a store's memory the copy of a standby has (perseas run --warm).
 * runner.c calls it while it stands by. It decides nothing: a takeover never waits for the copy.
 */
#ifndef PERSEAS_COMMAND_COPY_TOLD_H
#define PERSEAS_COMMAND_COPY_TOLD_H

#include <stdbool.h>
#include <stdint.h>

struct ps_warm_thread;

/* The state of the copy that was reported last. Initialize to zero. */
struct ps_copy_told {
	uint64_t next_ns;  /* not before */
	uint64_t quiet_ns; /* people are told of no loss before */
	uint64_t drops;    /* copies that were given up until the last time */
	unsigned told;     /* percent + 1 that the service manager was told; 0: nothing */
	bool most;         /* people were told that most of it is here */
};

/* Notes that another text took the place of the copy's in the service manager's status. */
void ps_copy_told_again(struct ps_copy_told *told);

/* Reports the copy's progress to the service manager, after `standing`, when it changed and at most
 * once a second. Logs when the copy first has nine tenths, and when such a copy is given up.
 * Returns the time of the next call. */
uint64_t ps_copy_tell(struct ps_copy_told *told, struct ps_warm_thread *warmth, const char *store,
                      const char *standing, uint64_t now_ns);

#endif
