/*
 * warm.h - the copy of a store's segments that a standby keeps while another process owns the
 * store, page by page, with the transaction up to which it is right. client/standby/warmth.c fills
 * it from one mirror. The open proves it against the state that it chose (prove.c), and takes
 * memory from it instead of fetching that (proto/PROTOCOL.md, "A copy that follows"). Without the
 * copy an open has the same result, but is slower.
 */
#ifndef PERSEAS_CLIENT_WARM_H
#define PERSEAS_CLIENT_WARM_H

#include "../../proto/image/segment_key.h"

#include <stdbool.h>

enum { PS_WARM_PAGE = PS_PAGE };

struct perseas;

/* Identifies a transaction by its record. */
struct ps_warm_point {
	uint64_t epoch, seq, position;
	uint32_t crc;
};

/* States of a page. Any other state is the seq of the last transaction that may have changed the
 * page since it was read (0: the part's `since`): it may be read again once a slot covers that
 * seq. */
#define PS_WARM_HERE (UINT64_MAX - 1)
#define PS_WARM_READING UINT64_MAX

/* The copy of a segment. */
struct ps_warm_part {
	uint32_t segment; /* its id, as in `key` */
	struct ps_segment_key key;
	uint64_t size, pages; /* the size as in `key` */
	uint64_t since;       /* seq of the last transaction before the copy had the segment */
	uint64_t here;        /* pages that are PS_WARM_HERE */
	bool left;            /* no memory is taken from it any more */
	uint64_t at;          /* offset in the copy's file of its bytes, which its states follow */
	uint8_t *bytes;
	uint64_t *state; /* one for each page */
};

struct ps_warm_copy {
	int fd;       /* of the file in memory that holds the copy; -1: the copy was inherited */
	uint64_t end; /* bytes of that file */
	bool shared;  /* another process has its memory now */
	uint8_t store_id[PS_ID_SIZE];
	/* Pages that are PS_WARM_HERE are as this transaction left them. seq 0: none is. */
	struct ps_warm_point point;
	struct ps_warm_part parts[PS_SEGMENTS_MAX];
	unsigned count;
	unsigned next_part; /* where ps_warm_next_to_read looks next */
	uint64_t next_page;
};

/* Returns an empty copy, or NULL if there is no memory or no descriptor. */
struct ps_warm_copy *ps_warm_new(const uint8_t store_id[PS_ID_SIZE]);
/* Frees the copy's memory, even if others have the descriptor, unless it was shared. NULL is
 * allowed. */
void ps_warm_free(struct ps_warm_copy *warm);

/* Adds a segment that transaction `since` or an earlier one has published. Returns false if there
 * is no memory for it. */
bool ps_warm_add_segment(struct ps_warm_copy *warm, const struct ps_segment_key *key,
                         uint64_t since);
/* Returns the part of the segment, or NULL if the copy does not have it. */
struct ps_warm_part *ps_warm_part(struct ps_warm_copy *warm, uint32_t segment);
/* Returns the part if it is of exactly this segment and memory may be taken from it, or NULL. */
const struct ps_warm_part *ps_warm_find_usable_part(struct ps_warm_copy *warm,
                                                    const struct ps_segment_key *key);
/* Removes the segment, and frees its memory. */
void ps_warm_remove_segment(struct ps_warm_copy *warm, uint32_t segment);

/* Notes that the pages that a record of the log names were, or will be, changed by its transaction.
 * The record is checked. Ranges outside the copy's segments are ignored. */
void ps_warm_note_changes(struct ps_warm_copy *warm, const struct ps_record *record);

/* Finds at most `most` pages to read, which slot `seq` covers, and marks them READING. Looks at a
 * limited number of pages, from where the last call ended. Returns false if none of them is due. */
bool ps_warm_next_to_read(struct ps_warm_copy *warm, uint64_t seq, unsigned most,
                          struct ps_range *range);
/* Takes bytes that were read. Pages that are still READING become HERE: no record since has named
 * them. Returns false if there is no memory. */
bool ps_warm_store_read(struct ps_warm_copy *warm, const struct ps_range *range,
                        const uint8_t *bytes);

/* Sets *here to the bytes that are right, and *total to those of all segments. */
void ps_warm_count_bytes(const struct ps_warm_copy *warm, uint64_t *here, uint64_t *total);

/* Returns true if all of these bytes are right. */
bool ps_warm_part_has_bytes(const struct ps_warm_part *part, uint64_t offset, uint64_t length);
/* Frees the memory of whole pages in this range, which was taken. */
void ps_warm_free_used_bytes(struct ps_warm_part *part, uint64_t offset, uint64_t length);
/* Frees the segment's memory, from which nothing may be taken any more: the owner may have changed
 * the segment. */
void ps_warm_stop_using_segment(struct ps_warm_copy *warm, uint32_t segment);

/* Completes the copy's file for a process that inherits the descriptor. No more pages are read for
 * the copy afterwards. Returns 0, or -1 if it cannot be handed on. */
int ps_warm_hand_on(struct ps_warm_copy *warm);

/* Takes the copy of this store behind an inherited descriptor, which may be anything, and closes
 * the descriptor. Only one process can take a copy, once. Returns NULL and leaves the descriptor
 * alone if it has no such copy. Returns NULL and frees the copy's memory if taking it failed. */
struct ps_warm_copy *ps_warm_inherit(int fd, const uint8_t store_id[PS_ID_SIZE]);

/* prove.c: proves p->warm_copy against the adopted state, and removes from it what is not right.
 * Frees it if it cannot be proven. It stays right until this owner changes memory. Caller is
 * exclusive, and has adopted. */
void ps_warm_prove(struct perseas *p);

#endif
