/*
 * history.h - the transactions that a mirror's log still holds, newest first, and what they
 * changed.
 */
#ifndef PERSEAS_COMMAND_HISTORY_H
#define PERSEAS_COMMAND_HISTORY_H

#include "../ui/args.h"
#include "../ask/ask.h"
#include "live_read.h"

enum { PS_BLOCK = 1024 }; /* bytes that are tracked together */

struct ps_block;

struct ps_history {
	struct ps_live live;
	const Perseas__StoreStatus *status;
	int segment;          /* id that is asked for, -1: any */
	uint64_t born;        /* with it: before that transaction the id was another segment's */
	uint64_t offset, end; /* of its bytes; end UINT64_MAX: all from offset on */
	uint64_t limit;       /* transactions to show */
	const char *ends;     /* why it goes back no further */
	uint64_t *positions;  /* of the records, newest first */
	bool *shown;          /* by the same index: whether the record was asked for */
	size_t count, room;
	struct ps_block **blocks; /* by hash: present data, then that before each record */
};

/* Looks for what args ask for. NO with a complaint: there is no such segment. */
enum ps_exit ps_history_init(struct ps_history *history, struct ps_peers *peers,
                             const Perseas__StoreStatus *status, const struct ps_args *args);
void ps_history_free(struct ps_history *history);

/* Reads the log backwards, and with args->bytes the segments too. While the store runs, the first
 * try reads further back than later ones. */
enum ps_log_step ps_history_walk(struct ps_history *history, const struct ps_args *args,
                                 unsigned try);

/* The segment that a record calls by this id; NULL: it is gone. */
const Perseas__Segment *ps_history_segment(const struct ps_history *history,
                                           const struct ps_record *record, uint32_t id);

/* The record at place i, and whether one of its ranges is asked for. */
const struct ps_record *ps_history_record(const struct ps_history *history, size_t i);
bool ps_history_wants(const struct ps_history *history, const struct ps_range *range);

/* Sets `bytes` to a range's bytes after its record, and then undoes the record. Needs args->bytes,
 * and must be called for the records from the first one on. */
void ps_history_after(const struct ps_history *history, const struct ps_range *range,
                      uint8_t *bytes);
void ps_history_undo(const struct ps_history *history, const struct ps_record *record);

#endif
