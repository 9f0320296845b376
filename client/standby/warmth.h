/*
 * warmth.h - the memory of a store that has another owner, kept up to date by what is read from
 * one of its mirrors: a thread of its own for a standby. The rules are in proto/PROTOCOL.md, "A
 * copy that follows". It claims nothing, and whatever it cannot explain makes it begin again.
 */
#ifndef PERSEAS_CLIENT_WARMTH_H
#define PERSEAS_CLIENT_WARMTH_H

#include "../demand/warm.h"
#include "../perseas_standby.h"
#include "images.h"
#include "live_fetch.h"
#include "../../proto/image/log_reader.h"

enum { PS_WARMTH_RUNS = 64 };

struct ps_warmth_figures {
	uint64_t here, total; /* bytes of the store's segments */
	uint64_t read;        /* bytes of segments, since it began */
	uint64_t drops;       /* copies that it gave up */
};

/* Pages that a round reads. */
struct ps_warmth_run {
	struct ps_range range;
	uint8_t *bytes;
};

struct ps_warmth {
	struct ps_env *env;
	char store[PS_NAME_MAX + 1];
	uint32_t timeout_ms;
	uint64_t rate;

	pthread_mutex_t lock; /* guards these: */
	bool ends;
	bool aimed; /* at the mirror of this address, and at this image */
	char address[sizeof(((struct ps_address *)NULL)->text)];
	uint8_t image_id[PS_ID_SIZE];
	struct ps_warm *copy; /* NULL: there is none */
	struct ps_warmth_figures figures;

	/* The thread's. */
	struct ps_peers peers;
	struct ps_fetch fetch;
	struct ps_log_reader log;
	uint8_t *ring;
	Perseas__Reply *base; /* the status with which the copy began */
	uint8_t *block;
	struct ps_warmth_run runs[PS_WARMTH_RUNS];
	unsigned run_count;
	uint64_t free_at;  /* by the rate, nothing is read before */
	uint64_t begin_at; /* no copy is begun before */
	uint64_t pause;    /* after a round that finds nothing to read */
};

/* Begins, and reads nothing before it is aimed. timeout_ms: of one round of answers. NULL, with
 * *error set. */
struct ps_warmth *ps_warmth_begin(const char *store, const struct perseas_options *options,
                                  uint32_t timeout_ms, struct ps_error *error);

/* The mirror to read from, after each look at the store: that of before, as long as it is as good
 * as any other. */
void ps_warmth_aim(struct ps_warmth *warmth, const struct ps_images *images);

/* Of the last moment. Any thread. */
void ps_warmth_tell(struct ps_warmth *warmth, struct ps_warmth_figures *figures);

/* The copy as it stands, the caller's: the thread reads no more, and nobody waits for it. NULL:
 * there is none of use. */
struct ps_warm *ps_warmth_take(struct ps_warmth *warmth);

/* Waits until the thread has ended. NULL is allowed. */
void ps_warmth_end(struct ps_warmth *warmth);

#endif
