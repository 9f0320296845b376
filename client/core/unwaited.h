/*
 * unwaited.h - the handle's state of unawaited commits (PERSEAS_NOWAIT). nowait.c and durable.c
 * change it; nowait.h explains it.
 */
#ifndef PERSEAS_CLIENT_UNWAITED_H
#define PERSEAS_CLIENT_UNWAITED_H

#include <stdbool.h>
#include <stdint.h>

enum { PS_STAMPS = 9 };

/* Commits that were posted and that no thread waits for (nowait.h). */
struct ps_unwaited {
	uint64_t last_unawaited_seq; /* the last unawaited seq; 0: W mirrors hold all of them */
	/* When W mirrors last came to hold more, or when the first unawaited commit was posted. */
	uint64_t durable_progress_at;
	/* epoch: the epoch of new tokens. seq_before_epoch: the last seq of all earlier epochs. */
	uint64_t token_epoch, seq_before_epoch;
	/* Each completion must update p->commit.durable_seq: there are unawaited commits, or
	 * perseas_fd is used. */
	bool updates_durable_seq_at_completions;
	bool has_collector_thread; /* the collector's thread was started */
	/* is_collector_idle: the collector sleeps until it is woken. collector_watches_links: it
	 * sleeps on the links. */
	bool is_collector_idle, collector_watches_links;
	bool is_flag_raised; /* perseas_fd's flag is raised */
	/* the descriptor that perseas_fd returned; -1: perseas_fd was not called yet */
	int flag_fd;
	uint64_t collector_wakes_at; /* when the collector wakes by itself */
	/* A ring of times for flush_within_ms. Commits after the previous stamp's seq, up to `seq`,
	 * were posted at `at` or later. */
	struct ps_stamp {
		uint64_t seq, at;
	} stamps[PS_STAMPS];
	unsigned stamp_count; /* number of stamps made so far */
};

#endif
