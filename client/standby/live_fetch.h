/*
 * live_fetch.h - reads bytes of one mirror's image with several requests in flight. The command
 * reads live stores with it, and a standby its copy.
 */
#ifndef PERSEAS_CLIENT_LIVE_FETCH_H
#define PERSEAS_CLIENT_LIVE_FETCH_H

#include "peers.h"

enum {
	PS_FETCH_MAX = 512 << 10, /* bytes that one request reads at most */
	PS_FETCH_DEPTH = 16,      /* requests in flight at most */
};

struct ps_fetch {
	struct ps_peers *peers;
	unsigned peer_index; /* index of the mirror in `peers` */
	const char *store;
	uint64_t asked_count,
		collected_count; /* requests that were sent and answered since ps_fetch_init */
	struct {
		uint8_t *to;
		uint32_t length;
	} pending[PS_FETCH_DEPTH]; /* where the answer to request k goes: due[k % PS_FETCH_DEPTH] */
	/* A request failed, and so will all later ones; peers->errors[mirror] says why. */
	bool has_failed;
};

void ps_fetch_init(struct ps_fetch *fetch, struct ps_peers *peers, unsigned mirror,
                   const char *store);

/* Sends a request for `length` bytes of a region (1 to PS_FETCH_MAX). They are at `to` once the
 * answer is collected. If PS_FETCH_DEPTH requests are in flight, collects the oldest answer first.
 * Returns false if a request failed. */
bool ps_fetch_ask(struct ps_fetch *fetch, uint32_t region, uint64_t offset, uint32_t length,
                  void *to);

/* Does the same for any length, with as many requests as it takes. */
bool ps_fetch_range(struct ps_fetch *fetch, uint32_t region, uint64_t offset, uint64_t length,
                    void *to);

/* Collects answers until `count` requests have been answered since ps_fetch_init. Returns false if
 * a request failed. */
bool ps_fetch_collect(struct ps_fetch *fetch, uint64_t count);

/* Collects all answers in flight. Returns false if a request failed. */
bool ps_fetch_collect_all(struct ps_fetch *fetch);

#endif
