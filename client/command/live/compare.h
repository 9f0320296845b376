/*
 * compare.h - compares one piece of a segment on several mirrors of a store that may be running,
 * byte for byte as the piece was at one transaction.
 */
#ifndef PERSEAS_COMMAND_COMPARE_H
#define PERSEAS_COMMAND_COMPARE_H

#include "../ask/ask.h"
#include "live_read.h"

/* Bytes of the longest piece. */
#define PS_COMPARE_PIECE ((uint64_t)2 << 20)

struct ps_compare {
	struct ps_peers *peers;
	const char *store;
	const struct ps_images *images;
	struct {
		struct ps_live_reader live;
		uint8_t *bytes; /* buffer of PS_COMPARE_PIECE; NULL: the mirror takes no part */
		struct ps_slot before; /* the mirror's slot at the previous try */
		bool has_failed; /* the mirror failed, and `why` was not complained about yet */
		struct ps_error why;
	} of[PS_MIRRORS_MAX];
	/* An owner commits: mirrors at different transactions may meet a moment later. */
	bool waits_for_progress;
	uint64_t seq; /* transaction at which the last piece was compared */
};

/* A piece of a segment, and the result of comparing it. */
struct ps_piece {
	uint32_t ids[PS_MIRRORS_MAX]; /* id of the segment on each mirror */
	uint64_t size;                /* size of the whole segment */
	uint64_t offset, length;
	/* The mirror takes part; cleared if that turns out impossible. */
	bool takes_part[PS_MIRRORS_MAX];
	uint64_t differing_set; /* result: the mirrors that differ, as bits */
	/* result: offset of the first byte in which a mirror differs */
	uint64_t first_difference[PS_MIRRORS_MAX];
	/* result: number of bytes in which a mirror differs */
	uint64_t difference_bytes[PS_MIRRORS_MAX];
};

enum ps_comparison {
	PS_SAME,
	PS_DIFFERENT,
	PS_CHANGED,  /* an image was repaired or replaced, or lost segments: begin again */
	PS_TOO_FAST, /* the log was overwritten before it was read: try a shorter piece */
};

/* A mirror's entry of a segment, next to that of the newest state. */
enum ps_table_entry_match {
	PS_ENTRY_SAME,
	PS_ENTRY_DIFFERENT, /* one transaction made both, and they are not the same */
	PS_ENTRY_MISSING,   /* although the mirror has the transaction that made the segment */
	PS_ENTRY_BEHIND,    /* the mirror answered before it had that transaction */
};

/* Compares what a mirror told, which has a slot, with a segment of the newest state. Mirrors answer
 * at different moments: between two answers a segment may be destroyed and made anew under its
 * name. */
enum ps_table_entry_match ps_compare_table_entry(const Perseas__StoreStatus *told,
                                                 const Perseas__Segment *segment);

/* Prepares to compare the mirrors with take[i] set. Returns false, with a complaint, if memory is
 * short. The caller must close it either way. */
bool ps_compare_open(struct ps_compare *compare, struct ps_peers *peers,
                     const struct ps_images *images, const char *store, const bool *take);
void ps_compare_close(struct ps_compare *compare);

/*
 * Compares one piece. Complains about each mirror that cannot take part, and leaves it out: it
 * failed, is further behind than the logs reach, or has another history. If no bytes have a
 * majority, those of the mirror `base` count as right.
 */
enum ps_comparison ps_compare_piece(struct ps_compare *compare, struct ps_piece *piece,
                                    unsigned base);

#endif
