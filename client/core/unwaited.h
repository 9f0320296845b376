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
	uint64_t seq; /* the last unawaited seq; 0: W mirrors hold all of them */
	/* When W mirrors last came to hold more, or when the first unawaited commit was posted. */
	uint64_t progress_at;
	/* epoch: of new tokens. before: the last seq of all earlier epochs. */
	uint64_t epoch, before;
	/* Each completion must update p->commit.durable: there are unawaited commits, or perseas_fd
	 * is used. */
	bool wanted;
	bool collector; /* the collector's thread was started */
	/* idle: the collector sleeps until it is woken. watching: it sleeps on the links. */
	bool idle, watching;
	bool raised;      /* the flag is raised */
	int flag;         /* the descriptor that perseas_fd returned; -1: not called yet */
	uint64_t look_at; /* when the collector wakes by itself */
	/* A ring of times for flush_within_ms. Commits after the previous stamp's seq, up to `seq`,
	 * were posted at `at` or later. */
	struct ps_stamp {
		uint64_t seq, at;
	} stamps[PS_STAMPS];
	unsigned stamped; /* number of stamps made so far */
};

#endif
