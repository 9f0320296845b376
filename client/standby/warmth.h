/*
 * warmth.h - keeps a warm copy of the memory of a store that another process owns, by reading from
 * one of its mirrors on a thread of its own. The rules are in proto/PROTOCOL.md, "A copy that
 * follows". It claims nothing. It begins again when it reads something that it cannot explain.
 */
#ifndef PERSEAS_CLIENT_WARMTH_H
#define PERSEAS_CLIENT_WARMTH_H

#include "../demand/warm.h"
#include "../perseas_standby.h"
#include "images.h"
#include "live_fetch.h"
#include "../../proto/image/log_reader.h"

enum { PS_WARMTH_RUNS = 64 };

struct ps_warm_thread_figures {
	uint64_t here, total; /* bytes of the store's segments in the copy, and in all */
	uint64_t read;        /* bytes of segments read since the thread began */
	uint64_t drops;       /* copies that were given up */
};

/* Neighboring pages that one request of a round reads. */
struct ps_warmth_run {
	struct ps_range range;
	uint8_t *bytes;
};

struct ps_warm_thread {
	struct ps_env *env;
	char store[PS_NAME_MAX + 1];
	uint32_t timeout_ms;
	uint64_t rate; /* bytes a second to read at most */

	pthread_mutex_t lock; /* guards these: */
	bool is_ending;
	bool has_source; /* address and image_id say which image to read; false: read none */
	char address[sizeof(((struct ps_address *)NULL)->text)];
	uint8_t image_id[PS_ID_SIZE];
	struct ps_warm_copy *copy; /* the copy so far; NULL: none */
	struct ps_warm_thread_figures figures;

	/* Only the thread uses these. */
	struct ps_peers peers;
	struct ps_fetch fetch;
	struct ps_log_reader log;
	uint8_t *ring;        /* the log region of the image, as far as it was read */
	Perseas__Reply *base; /* the status of the image when the copy began */
	uint8_t *block;       /* memory for the pages of a round */
	struct ps_warmth_run runs[PS_WARMTH_RUNS]; /* the pages that the present round reads */
	unsigned run_count;                        /* number of `runs` */
	uint64_t rate_allows_read_at;              /* when the rate limit allows the next read */
	uint64_t next_copy_at;                     /* earliest time for the next copy */
	uint64_t round_pause_ns; /* time to wait after a round that read no pages */
};

/* Starts the thread, which reads nothing before ps_warm_thread_choose_source. timeout_ms: time
 * limit of one round of requests. Returns NULL with *error if the thread cannot be started. */
struct ps_warm_thread *ps_warm_thread_begin(const char *store,
                                            const struct perseas_options *options,
                                            uint32_t timeout_ms, struct ps_error *error);

/* Chooses the mirror to read from, after each look at the store. Stays with the present one while
 * no other is better. */
void ps_warm_thread_choose_source(struct ps_warm_thread *warmth, const struct ps_images *images);

/* Fills in the figures as of now. Any thread may call it. */
void ps_warm_thread_read_figures(struct ps_warm_thread *warmth,
                                 struct ps_warm_thread_figures *figures);

/* Hands the copy over to the caller, and has the thread end without waiting for it. Returns NULL if
 * there is no copy. */
struct ps_warm_copy *ps_warm_thread_take(struct ps_warm_thread *warmth);

/* Ends the thread, waits for that, and frees everything. NULL is allowed. */
void ps_warm_thread_end(struct ps_warm_thread *warmth);

#endif
