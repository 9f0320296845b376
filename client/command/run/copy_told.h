/*
 * copy_told.h - reports how much of a store's memory the copy of a standby has (perseas run
 * --warm). runner.c calls it while it stands by. It decides nothing: a takeover never waits for the
 * copy.
 */
#ifndef PERSEAS_COMMAND_COPY_TOLD_H
#define PERSEAS_COMMAND_COPY_TOLD_H

#include <stdbool.h>
#include <stdint.h>

struct ps_warm_thread;

/* What was reported about the copy. Initialize to zero. */
struct ps_warm_copy_report {
	uint64_t next_ns; /* earliest time of the next report */
	/* After a copy was given up: earliest time at which people are told of progress. */
	uint64_t quiet_until_ns;
	uint64_t drop_count; /* figures.drop_count at the last report: copies that were given up */
	unsigned manager_percent; /* percent that the service manager was told, plus 1; 0: none */
	bool has_logged_most;     /* people were told that most of the memory is copied */
};

/* Notes that another text has replaced this report in the service manager's status, so that it is
 * sent again. */
void ps_warm_copy_report_mark_unsent(struct ps_warm_copy_report *told);

/* Reports the copy's progress to the service manager, after `standing`, when it changed and at most
 * once a second. Logs when the copy first has nine tenths, and when such a copy is given up.
 * Returns the time of the next call. */
uint64_t ps_warm_copy_report_send(struct ps_warm_copy_report *told, struct ps_warm_thread *warmth,
                                  const char *store, const char *standing, uint64_t now_ns);

#endif
