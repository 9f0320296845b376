/*
 * live_copy.h - copies segments of one mirror's image, all or some, as they were at one
 * transaction.
 */
#ifndef PERSEAS_COMMAND_LIVE_COPY_H
#define PERSEAS_COMMAND_LIVE_COPY_H

#include "live_read.h"

struct ps_live_copy {
	/* Header of the image, with all segments that exist, copied or not. */
	Perseas__Header *header;
	struct ps_slot slot;      /* slot of the transaction at which the segments were */
	struct ps_record *record; /* record of that transaction; NULL: the log no longer has it */
	/* Copied segments by id; NULL: no segment, or not wanted. */
	uint8_t *segments[PS_SEGMENTS_MAX];
	uint64_t sizes[PS_SEGMENTS_MAX]; /* sizes of the copied segments */
	uint64_t bytes;                  /* sum of these sizes */
	bool live;                       /* the store had a live owner */
	unsigned tries;                  /* tries that failed */
};

/*
 * Copies the store from the only peer. It takes memory for all of its segments. After any result
 * but PS_EXIT_OK, which was complained about, there is nothing to free.
 */
enum ps_exit ps_live_copy_take(struct ps_live_copy *copy, struct ps_peers *peers,
                               const char *store);

/* Which segments to copy: those for which wants() returns true. The copy's header has all segments
 * that exist. */
struct ps_live_copy_wish {
	bool (*wants)(const struct ps_live_copy_wish *wish, const Perseas__Header *header,
	              const Perseas__Segment *segment);
};
enum ps_exit ps_live_copy_take_wished(struct ps_live_copy *copy, struct ps_peers *peers,
                                      const char *store, const struct ps_live_copy_wish *wish);

void ps_live_copy_free(struct ps_live_copy *copy);

/* Returns true if both are the same whole image, with the same segments up to transaction `seq`,
 * and only transactions changed it. A resync, or another image, changes bytes without a record. */
bool ps_live_copy_is_same_image(const Perseas__StoreStatus *a, const Perseas__StoreStatus *b,
                                uint64_t seq);

/* Checks whether the image of the only peer is still the same after everything was read, which
 * ended with `step`. Returns PS_LOG_OVERTAKEN if it is not: then the bytes may belong to no state,
 * and a failure may come from a destroyed segment or a reused id. Returns PS_LOG_FAILED, with the
 * peer's error, if the image does not explain the failure. No request may be in flight on the
 * connection. */
enum ps_log_step ps_live_copy_check_unchanged(struct ps_peers *peers, const char *store,
                                              uint64_t seq, const Perseas__StoreStatus *before,
                                              enum ps_log_step step);

/* Complains that the store changes too fast. */
enum ps_exit ps_live_copy_complain_too_fast(const char *store, uint64_t log_size);

#endif
