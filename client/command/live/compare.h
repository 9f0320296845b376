/*
 * compare.h - one piece of a segment, on several mirrors of a store that may run, compared byte
 * for byte as it was at one transaction.
 */
#ifndef PERSEAS_COMMAND_COMPARE_H
#define PERSEAS_COMMAND_COMPARE_H

#include "../ask/ask.h"
#include "live_read.h"

#define PS_COMPARE_PIECE ((uint64_t)2 << 20)

struct ps_compare {
	struct ps_peers *peers;
	const char *store;
	const struct ps_images *images;
	struct {
		struct ps_live live;
		uint8_t *bytes;        /* PS_COMPARE_PIECE; NULL: the mirror takes no part */
		struct ps_slot before; /* where it stood at the try before */
		bool left;             /* it failed, and `why` was not complained about yet */
		struct ps_error why;
	} of[PS_MIRRORS_MAX];
	bool patient; /* an owner commits: mirrors that are apart may meet a moment later */
	uint64_t seq; /* at which the last piece was compared */
};

struct ps_piece {
	uint32_t ids[PS_MIRRORS_MAX]; /* of the segment, as each mirror has it */
	uint64_t size;                /* of the segment */
	uint64_t offset, length;
	bool ask[PS_MIRRORS_MAX];       /* takes part; cleared where that turns out impossible */
	uint64_t differing;             /* set to the mirrors that differ, as bits */
	uint64_t first[PS_MIRRORS_MAX]; /* where a mirror first differs: an offset */
	uint64_t bytes[PS_MIRRORS_MAX]; /* of a mirror that differ */
};

enum ps_verdict {
	PS_SAME,
	PS_DIFFERENT,
	PS_CHANGED,  /* an image was repaired or replaced, or lost segments: begin again */
	PS_TOO_FAST, /* try a shorter piece: it is read, and its log, in less time */
};

/* Prepares to compare the mirrors with take[i] set. Returns false, with a complaint, if memory is
 * short. The caller must close it either way. */
bool ps_compare_open(struct ps_compare *compare, struct ps_peers *peers,
                     const struct ps_images *images, const char *store, const bool *take);
void ps_compare_close(struct ps_compare *compare);

/*
 * Compares one piece. Complains about each mirror that cannot take part, and leaves it out: it
 * failed, is further behind than the logs reach, or has another history. `base` is the mirror that
 * is right where votes are equal.
 */
enum ps_verdict ps_compare_piece(struct ps_compare *compare, struct ps_piece *piece, unsigned base);

#endif
