/*
 * live_fetch.h - bytes of one mirror's image, with several requests under way at once. The command
 * reads stores that run by it, and a standby its copy.
 */
#ifndef PERSEAS_CLIENT_LIVE_FETCH_H
#define PERSEAS_CLIENT_LIVE_FETCH_H

#include "peers.h"

enum {
	PS_FETCH_MAX = 512 << 10, /* bytes of one request */
	PS_FETCH_DEPTH = 16,      /* requests under way */
};

struct ps_fetch {
	struct ps_peers *peers;
	unsigned mirror; /* of the peers */
	const char *store;
	uint64_t asked, collected; /* requests, since it was made */
	struct {
		uint8_t *to;
		uint32_t length;
	} due[PS_FETCH_DEPTH]; /* of request k: due[k % PS_FETCH_DEPTH] */
	bool failed;           /* for good; peers->errors[mirror] says why */
};

void ps_fetch_init(struct ps_fetch *fetch, struct ps_peers *peers, unsigned mirror,
                   const char *store);

/* Asks for `length` bytes of a region, 1 to PS_FETCH_MAX, which will stand at `to` once they are
 * collected. Where too many are under way it collects the oldest. False: failed. */
bool ps_fetch_ask(struct ps_fetch *fetch, uint32_t region, uint64_t offset, uint32_t length,
                  void *to);

/* The same for any length. */
bool ps_fetch_range(struct ps_fetch *fetch, uint32_t region, uint64_t offset, uint64_t length,
                    void *to);

/* Collects until `count` requests in all have been answered. False: failed. */
bool ps_fetch_collect(struct ps_fetch *fetch, uint64_t count);

/* Collects all that is under way. */
bool ps_fetch_drain(struct ps_fetch *fetch);

#endif
