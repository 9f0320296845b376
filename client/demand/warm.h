/*
 * warm.h - a copy of a store's segments that a standby kept while another process owned the store,
 * page by page, with the transaction up to which it is right. client/standby/warmth.c fills it
 * from one mirror. What opens the store has it proven against the state that was chosen
 * (prove.c), and takes from it what it would otherwise fetch (proto/PROTOCOL.md, "A copy that
 * follows"). The copy never decides anything: without it everything is as it is, but slower.
 */
#ifndef PERSEAS_CLIENT_WARM_H
#define PERSEAS_CLIENT_WARM_H

#include "../../proto/image/segment_key.h"

#include <stdbool.h>

enum { PS_WARM_PAGE = PS_PAGE };

struct perseas;

/* A transaction, by its own record. An epoch has one owner, who gives a seq once. */
struct ps_warm_point {
	uint64_t epoch, seq, position;
	uint32_t crc;
};

/* What is known of a page. Any other value is the last transaction that may have changed it since
 * it was read: it may be read again when a slot covers that one. 0: of the part's `since`. */
#define PS_WARM_HERE (UINT64_MAX - 1)
#define PS_WARM_READING UINT64_MAX

/* Of a segment. */
struct ps_warm_part {
	uint32_t segment; /* its id, as in `key` */
	struct ps_segment_key key;
	uint64_t size, pages; /* the size as in `key` */
	uint64_t since; /* the last transaction that was followed before the copy had the segment */
	uint64_t here;  /* pages that are PS_WARM_HERE */
	bool left;      /* nothing is taken of it any more */
	uint64_t at;    /* where its bytes are in the copy's file, and behind them its states */
	uint8_t *bytes;
	uint64_t *state; /* of each page */
};

struct ps_warm {
	int fd; /* of a file in memory, which has all of it; -1: it is mapped, and that is all */
	uint64_t end; /* bytes of that file */
	bool shared;  /* its memory is for another process now */
	uint8_t store_id[PS_ID_SIZE];
	/* Whatever is PS_WARM_HERE is as this transaction left it. seq 0: nothing is known. */
	struct ps_warm_point point;
	struct ps_warm_part parts[PS_SEGMENTS_MAX];
	unsigned count;
	unsigned next_part; /* what is looked at next for what is to be read */
	uint64_t next_page;
};

/* NULL: no memory, or no descriptor. */
struct ps_warm *ps_warm_new(const uint8_t store_id[PS_ID_SIZE]);
/* Gives its memory back, whoever else has the descriptor, unless it was shared. NULL is allowed. */
void ps_warm_free(struct ps_warm *warm);

/* A segment that transaction `since`, or one before it, has published. False: no memory for it. */
bool ps_warm_add(struct ps_warm *warm, const struct ps_segment_key *key, uint64_t since);
/* NULL: the copy has not got it. */
struct ps_warm_part *ps_warm_part(struct ps_warm *warm, uint32_t segment);
/* The same, if it is of this very segment and something may be taken of it; or NULL. */
const struct ps_warm_part *ps_warm_useful(struct ps_warm *warm, const struct ps_segment_key *key);
/* Gives its memory back. */
void ps_warm_forget(struct ps_warm *warm, uint32_t segment);

/* What the log's record names is no longer right: it was, or will be, changed by that one, and
 * perhaps by a younger one. The record is checked; what it names beyond segments is nothing of the
 * copy's. */
void ps_warm_change(struct ps_warm *warm, const struct ps_record *record);

/* Pages that are to be read, `most` at most, all of which slot `seq` covers: READING from now on.
 * Looks at some of the pages, from where it ended before. False: none of these. */
bool ps_warm_next(struct ps_warm *warm, uint64_t seq, unsigned most, struct ps_range *range);
/* They were read, and nothing that was followed since has changed those that still are READING.
 * False: there is no memory for them. */
bool ps_warm_arrived(struct ps_warm *warm, const struct ps_range *range, const uint8_t *bytes);

/* So many bytes of segments are right, and so many there are. */
void ps_warm_figures(const struct ps_warm *warm, uint64_t *here, uint64_t *total);

/* Are all of these bytes right? */
bool ps_warm_holds(const struct ps_warm_part *part, uint64_t offset, uint64_t length);
/* They were taken: their memory is given back, as far as it is whole pages. */
void ps_warm_spent(struct ps_warm_part *part, uint64_t offset, uint64_t length);
/* Nothing of the segment is taken any more: what is here may have been changed since. */
void ps_warm_leave(struct ps_warm *warm, uint32_t segment);

/*
 * For a process that inherits the descriptor: what is in the copy's file now says all of it. Nobody
 * reads for the copy any more. 0; or -1, and it cannot be handed on.
 */
int ps_warm_share(struct ps_warm *warm);

/* The copy of that store behind a descriptor that was inherited, for one process, which takes it
 * once; the descriptor is closed then. Whatever it is: NULL where it is nothing of that, and the
 * descriptor stays what it is; or where it cannot be taken after all, and the memory is given back,
 * which others that have the descriptor would keep. */
struct ps_warm *ps_warm_inherit(int fd, const uint8_t store_id[PS_ID_SIZE]);

/* prove.c: what is left of p->warm_copy is right for the state that was adopted, and for as long as
 * this owner has not changed it; it is freed where that cannot be shown. Exclusive, after adoption.
 * */
void ps_warm_prove(struct perseas *p);

#endif
