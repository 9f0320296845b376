/*
 * copy_told.h - says how much of a store's memory the copy of a standby has (perseas run --warm).
 * runner.c calls it while it stands by. It decides nothing: a takeover never waits for the copy.
 */
#ifndef PERSEAS_COMMAND_COPY_TOLD_H
#define PERSEAS_COMMAND_COPY_TOLD_H

#include <stdbool.h>
#include <stdint.h>

struct ps_warmth;

/* All zeros at first. */
struct ps_copy_told {
	uint64_t next_ns;  /* not before */
	uint64_t quiet_ns; /* people are told of no loss before */
	uint64_t drops;    /* copies that were given up until the last time */
	unsigned told;     /* percent + 1 that the service manager was told; 0: nothing */
	bool most;         /* people were told that most of it is here */
};

/* What else is said of the state has taken the place of what the service manager was told. */
void ps_copy_told_again(struct ps_copy_told *told);

/* Tells the service manager, behind `standing`, at most once a second and where it changed. Tells
 * people when the copy has nine tenths for the first time, and when such a copy was given up.
 * Returns when it is to be called again. */
uint64_t ps_copy_tell(struct ps_copy_told *told, struct ps_warmth *warmth, const char *store,
                      const char *standing, uint64_t now_ns);

#endif
