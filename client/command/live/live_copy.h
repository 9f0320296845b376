/*
 * live_copy.h - segments of one mirror's image, all or some, as they were at one transaction.
 */
#ifndef PERSEAS_COMMAND_LIVE_COPY_H
#define PERSEAS_COMMAND_LIVE_COPY_H

#include "live_read.h"

struct ps_copy {
	Perseas__Header *header;  /* the image's, with the segments that exist, wanted or not */
	struct ps_slot slot;      /* the transaction that it is the state after */
	struct ps_record *record; /* that transaction's own, whole; NULL: no more in the log */
	uint8_t *segments[PS_SEGMENTS_MAX]; /* by id; NULL: none, or not wanted */
	uint64_t sizes[PS_SEGMENTS_MAX];    /* of these segments */
	uint64_t bytes;                     /* of them all */
	bool live;                          /* an owner was there */
	unsigned tries;
};

/*
 * Copies the store from the only peer. It takes memory for all of its segments. Nothing
 * but PS_EXIT_OK leaves something to free; the reason was complained about.
 */
enum ps_exit ps_copy_take(struct ps_copy *copy, struct ps_peers *peers, const char *store);

/* Copies only the segments that wants() returns true for. The header has all that exist. */
struct ps_copy_wish {
	bool (*wants)(const struct ps_copy_wish *wish, const Perseas__Header *header,
	              const Perseas__Segment *segment);
};
enum ps_exit ps_copy_take_some(struct ps_copy *copy, struct ps_peers *peers, const char *store,
                               const struct ps_copy_wish *wish);

void ps_copy_free(struct ps_copy *copy);

/* Returns true if both are the same whole image, with the same segments up to transaction `seq`,
 * and only transactions changed it. A resync, or another image, changes bytes without a record. */
bool ps_copy_same(const Perseas__StoreStatus *a, const Perseas__StoreStatus *b, uint64_t seq);

/* Asks the only peer after everything was read, with the result `step`, whether its image is still
 * the same. Returns PS_LOG_OVERTAKEN if it is not: then the bytes may belong to no state, and a
 * failure may come from a destroyed segment or a reused id. Returns PS_LOG_FAILED, with the peer's
 * error, if the image does not explain the failure. No request may be in flight on the
 * connection. */
enum ps_log_step ps_copy_check_same(struct ps_peers *peers, const char *store, uint64_t seq,
                                    const Perseas__StoreStatus *before, enum ps_log_step step);

/* Complains that the store changes too fast. */
enum ps_exit ps_copy_too_fast(const char *store, uint64_t log_size);

#endif
