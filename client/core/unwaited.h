/*
 * unwaited.h - what a handle keeps of commits that nobody waits for. nowait.c and durable.c change
 * it, and nowait.h says what it means.
 */
#ifndef PERSEAS_CLIENT_UNWAITED_H
#define PERSEAS_CLIENT_UNWAITED_H

#include <stdbool.h>
#include <stdint.h>

enum { PS_STAMPS = 9 };

/* Commits that were posted, and that nobody waits for (nowait.h). */
struct ps_unwaited {
	uint64_t seq;           /* the last of them; 0: W mirrors hold them all */
	uint64_t progress_at;   /* when W came to hold more last, or the first was posted */
	uint64_t epoch, before; /* of tokens; the last seq of the epochs before that one */
	bool wanted;            /* somebody wants to know how far W are */
	bool collector;         /* its thread was begun */
	bool idle, watching;    /* it sleeps until it is woken; it sleeps on the links */
	bool raised;            /* the flag */
	int flag;               /* that perseas_fd gave; -1: none */
	uint64_t look_at;       /* when its thread looks again, unless it is woken before */
	struct ps_stamp {
		uint64_t seq, at;
	} stamps[PS_STAMPS]; /* up to `seq` none was posted before `at` (flush_within_ms) */
	unsigned stamped;    /* so many were */
};

#endif
