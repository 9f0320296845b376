/*
 * history.h - reads the transactions that a mirror's log still holds, newest first, and what they
 * changed.
 */
#ifndef PERSEAS_COMMAND_HISTORY_H
#define PERSEAS_COMMAND_HISTORY_H

#include "../ui/args.h"
#include "../ask/ask.h"
#include "live_read.h"

enum { PS_BLOCK = 1024 }; /* bytes of a segment that are read and undone together */

struct ps_block;

struct ps_history {
	struct ps_live_reader live;
	const Perseas__StoreStatus *status;
	int segment; /* id of the segment that is asked for; -1: any segment */
	/* With `segment`: seq of its publish; in older records the id is another segment's. */
	uint64_t born;
	/* Range of bytes that is asked for; end UINT64_MAX: all from offset on. */
	uint64_t offset, end;
	uint64_t limit;         /* how many transactions to show at most */
	const char *why_ends;   /* why the history goes back no further */
	uint64_t *positions;    /* positions of the records in the log, newest first */
	bool *shown;            /* shown[i]: record i was asked for */
	size_t count, capacity; /* number of records, and size of both arrays */
	/* Blocks by hash: first with present bytes, then as they were before each record that is
	 * undone. */
	struct ps_block **blocks;
};

/* Prepares to read the history that args ask for. Returns PS_EXIT_NO, with a complaint, if there is
 * no such segment. */
enum ps_exit ps_history_init(struct ps_history *history, struct ps_peers *peers,
                             const Perseas__StoreStatus *status, const struct ps_args *args);
void ps_history_free(struct ps_history *history);

/* Reads the log backwards, and with args->shows_bytes the segments too. While the store runs, the
 * first `try` (0) reads further back than later ones. */
enum ps_log_step ps_history_walk(struct ps_history *history, const struct ps_args *args,
                                 unsigned try);

/* Returns the segment that a record means by this id, or NULL if it no longer exists. */
const Perseas__Segment *ps_history_segment(const struct ps_history *history,
                                           const struct ps_record *record, uint32_t id);

/* Returns record i, where 0 is the newest one. */
const struct ps_record *ps_history_record(const struct ps_history *history, size_t i);
/* Returns true if args ask for this range. */
bool ps_history_wants_range(const struct ps_history *history, const struct ps_range *range);

/* Sets `bytes` to what the range had after the transaction of its record. Needs args->shows_bytes.
 * All newer records must have been undone. */
void ps_history_bytes_after(const struct ps_history *history, const struct ps_range *range,
                            uint8_t *bytes);
/* Undoes the record in the blocks, so that they are as before its transaction. */
void ps_history_undo(const struct ps_history *history, const struct ps_record *record);

#endif
