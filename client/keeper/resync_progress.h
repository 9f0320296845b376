/*
 * resync_progress.h - how far a copy to a mirror has come, why it is a whole copy, and how long it
 * will still take. Everything that shows a copy takes its figures from here.
 */
#ifndef PERSEAS_CLIENT_RESYNC_PROGRESS_H
#define PERSEAS_CLIENT_RESYNC_PROGRESS_H

#include "../core/handle.h"

struct ps_resync_progress {
	/* Bytes sent, and bytes to send; 0: the mirror is not RESYNCING. */
	uint64_t sent_bytes, total_bytes;
	uint64_t bytes_per_s; /* bytes per second during the last 5 to 10 s; 0: unknown */
	uint64_t left_ms;     /* how long the rest takes at this rate; 0: unknown */
	/* Why everything is sent, as a name for programs; "": it is not. */
	const char *whole_reason_name;
};

/* Fills in *progress for mirror `m`; all zero if it is not copied to. Caller holds p->lock. */
void ps_resync_progress(struct perseas *p, const struct ps_mirror *m,
                        struct ps_resync_progress *progress);

/* Notes that the copy begins. Caller holds p->lock. */
void ps_resync_progress_begin(struct perseas *p);

/* Counts bytes that the copy sent. Caller holds p->lock. */
void ps_resync_progress_add(struct perseas *p, uint64_t bytes);

#endif
