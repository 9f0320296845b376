/*
 * history.c - see history.h.
 *
 * What a transaction made of a byte is the before-image of that byte in the next later record that
 * has it or, if there is none, the present byte. So the present bytes of all ranges that are to be
 * shown are read and undone to the slot, as in any reading of a running store. Then each record is
 * undone after it has been shown.
 */
#include "history.h"

#include <stdlib.h>
#include <string.h>

enum {
	BUCKETS = 1 << 16,
	TRIES_EACH = 3, /* tries with one reach; then it is halved */
};

/* Bytes of a segment that are undone together. */
struct ps_block {
	struct ps_block *next;
	struct ps_window window; /* describes `bytes` */
	uint8_t bytes[PS_BLOCK];
};

enum ps_exit ps_history_init(struct ps_history *history, struct ps_peers *peers,
                             const Perseas__StoreStatus *status, const struct ps_args *args)
{
	memset(history, 0, sizeof(*history));
	history->status = status;
	history->segment = -1;
	history->offset = args->offset;
	history->end = args->length ? args->offset + args->length : UINT64_MAX;
	history->limit = args->last_count             ? args->last_count
	                 : args->segment || args->seq ? UINT64_MAX
	                                              : 20;
	for (size_t k = 0; args->segment && k < status->header->n_segments; k++)
		if (!strcmp(status->header->segments[k]->name, args->segment)) {
			history->segment = (int)status->header->segments[k]->id;
			history->born = status->header->segments[k]->born;
			if (!history->born)
				history->born = UINT64_MAX; /* no record is about it yet */
		}
	if (args->segment && history->segment < 0)
		return ps_complain(PS_EXIT_NO,
		                   "store '%s' has no segment '%s'; perseas status "
		                   "shows those that it has",
		                   args->store, args->segment);
	history->blocks = ps_exit_if_null(calloc(BUCKETS, sizeof(struct ps_block *)));
	return ps_live_reader_init(&history->live, peers, 0, args->store, status->header->log_size)
	               ? PS_EXIT_OK
	               : PS_EXIT_FAILURE;
}

void ps_history_free(struct ps_history *history)
{
	for (unsigned i = 0; history->blocks && i < BUCKETS; i++)
		while (history->blocks[i]) {
			struct ps_block *next = history->blocks[i]->next;

			free(history->blocks[i]);
			history->blocks[i] = next;
		}
	free(history->blocks);
	free(history->positions);
	free(history->shown);
	ps_live_reader_close(&history->live);
}

/* --- blocks --- */

static struct ps_block **bucket_of(const struct ps_history *history, uint32_t segment,
                                   uint64_t number)
{
	uint64_t hash = (number * PS_SEGMENTS_MAX + segment) * 0x9e3779b97f4a7c15u;

	return &history->blocks[hash >> 48];
}

static struct ps_block *find_block(const struct ps_history *history, uint32_t segment,
                                   uint64_t number)
{
	struct ps_block *block = *bucket_of(history, segment, number);

	while (block &&
	       (block->window.segment != segment || block->window.offset != number * PS_BLOCK))
		block = block->next;
	return block;
}

/* Starts to read a block's present bytes, if the block is not tracked yet. */
static bool track_block(struct ps_history *history, const Perseas__Segment *segment,
                        uint64_t number)
{
	struct ps_block **bucket = bucket_of(history, segment->id, number), *block;
	uint64_t rest = segment->size - number * PS_BLOCK;

	if (find_block(history, segment->id, number))
		return true;
	block = ps_exit_if_null(calloc(1, sizeof(*block)));
	block->window = (struct ps_window){ block->bytes, number * PS_BLOCK, PS_BLOCK,
		                            segment->id };
	block->next = *bucket;
	*bucket = block;
	return ps_fetch_ask(&history->live.fetch, PS_REGION_SEGMENT + segment->id,
	                    number * PS_BLOCK, rest < PS_BLOCK ? (uint32_t)rest : PS_BLOCK,
	                    block->bytes);
}

static uint64_t first_block(const struct ps_range *range)
{
	return range->offset / PS_BLOCK;
}

/* Returns the number of the block behind the range's last one, or 0 (no block) for a range without
 * bytes. */
static uint64_t blocks_end(const struct ps_range *range)
{
	return range->length ? (range->offset + range->length - 1) / PS_BLOCK + 1 : 0;
}

static void undo_in_blocks(const void *history, const struct ps_range *range, const void *before)
{
	for (uint64_t k = first_block(range); k < blocks_end(range); k++) {
		const struct ps_block *block = find_block(history, range->segment, k);

		if (block)
			ps_window_restore(&block->window, range, before);
	}
}

void ps_history_undo(const struct ps_history *history, const struct ps_record *record)
{
	ps_undo_record(record, undo_in_blocks, history);
}

void ps_history_bytes_after(const struct ps_history *history, const struct ps_range *range,
                            uint8_t *bytes)
{
	for (uint64_t k = first_block(range); k < blocks_end(range); k++) {
		const struct ps_block *block = find_block(history, range->segment, k);
		struct ps_overlap part;

		if (block && ps_window_overlaps(&block->window, range, &part))
			memcpy(bytes + part.offset_in_range, block->bytes + part.offset_in_window,
			       part.length);
	}
}

/* --- which records were asked for --- */

const Perseas__Segment *ps_history_segment(const struct ps_history *history,
                                           const struct ps_record *record, uint32_t id)
{
	const Perseas__Segment *segment = ps_header_find_segment(history->status->header, id);

	/* A segment that is not published yet or is destroyed is left out: records may know its id
	 * as another segment's, and its memory may vanish at any moment. */
	return segment && record->seq >= segment->born &&
	                       ps_segment_exists_at(segment, history->live.log.from.seq)
	               ? segment
	               : NULL;
}

bool ps_history_wants_range(const struct ps_history *history, const struct ps_range *range)
{
	/* In a publish, a range without bytes stands for the whole segment. */
	uint64_t end = range->length ? range->offset + range->length : UINT64_MAX;

	return history->segment < 0 || (range->segment == (uint32_t)history->segment &&
	                                range->offset < history->end && end > history->offset);
}

static bool record_is_wanted(const struct ps_history *history, const struct ps_record *record,
                             const struct ps_args *args)
{
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *image;

	if ((args->seq && record->seq != args->seq) || record->seq < history->born)
		return false;
	if (history->segment < 0)
		return true;
	ps_record_begin_walk(record, &cursor);
	while (ps_record_next(&cursor, &range, &image))
		if (ps_history_wants_range(history, range))
			return true;
	return false;
}

/* Tracks the blocks of the record's ranges that were asked for and whose segments exist. */
static bool track_record(struct ps_history *history, const struct ps_record *record)
{
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *image;

	if (record->kind != PS_RECORD_TRANSACTION)
		return true;
	ps_record_begin_walk(record, &cursor);
	while (ps_record_next(&cursor, &range, &image)) {
		const Perseas__Segment *segment = ps_history_segment(history, record,
		                                                     range->segment);

		if (!segment || !ps_history_wants_range(history, range) ||
		    !ps_range_inside(range, segment->size))
			continue;
		for (uint64_t k = first_block(range); k < blocks_end(range); k++)
			if (!track_block(history, segment, k))
				return false;
	}
	return true;
}

/* --- reading backwards --- */

static void add_position(struct ps_history *history, uint64_t position, bool shown)
{
	if (history->count == history->capacity) {
		history->capacity = history->capacity ? 2 * history->capacity : 64;
		history->positions = ps_exit_if_null(
			realloc(history->positions,
		                history->capacity * sizeof(*history->positions)));
		history->shown = ps_exit_if_null(
			realloc(history->shown, history->capacity * sizeof(*history->shown)));
	}
	history->positions[history->count] = position;
	history->shown[history->count++] = shown;
}

const struct ps_record *ps_history_record(const struct ps_history *history, size_t i)
{
	return ps_image_record_at(&history->live.log.image, history->positions[i]);
}

static const char *explain_history_end(const struct ps_log_reader *log)
{
	if (log->older.seq == 0)
		return "the store's first transaction";
	return "older records are no more in this mirror's log: they were overwritten, or its "
	       "image was copied without them";
}

/* Reads records from the newest on, until there are as many as were asked for. */
static enum ps_log_step read_records(struct ps_history *history, const struct ps_args *args,
                                     unsigned try)
{
	struct ps_log_reader *log = &history->live.log;
	/* The ring must keep room for records that arrive while data is read. */
	uint64_t reach = args->shows_bytes && history->status->live
	                         ? log->image.ring_size / 4 * 3 >> try / TRIES_EACH
	                         : UINT64_MAX;
	uint64_t found = 0;

	history->count = 0;
	history->why_ends = "as many as were asked for";
	while (found < history->limit && !(args->seq && log->older.seq < args->seq)) {
		const struct ps_record *record;
		bool wanted;
		int rc;

		if (log->next - log->older.position > reach) {
			history->why_ends = "older records may be overwritten while they are read";
			break;
		}
		rc = ps_log_read_older(log, &record);
		/* Even the newest record was overwritten before it was read. */
		if (rc > 0 && !history->count && log->older.seq && history->status->live &&
		    try + 1 < PS_LIVE_TRIES)
			return PS_LOG_OVERTAKEN;
		if (rc) {
			history->why_ends = explain_history_end(log);
			return rc < 0 ? PS_LOG_FAILED : PS_LOG_OK;
		}
		wanted = record_is_wanted(history, record, args);
		found += wanted;
		add_position(history, record->position, wanted);
	}
	return PS_LOG_OK;
}

/* Reads the present bytes of what is shown, undone to the slot. */
static enum ps_log_step read_present_bytes(struct ps_history *history)
{
	struct ps_log_reader *log = &history->live.log;
	const struct ps_record *record;
	struct ps_log_back back;
	enum ps_log_step step;

	for (size_t i = 0; i < history->count; i++) {
		record = ps_history_record(history, i);
		if (history->shown[i] && record && !track_record(history, record))
			return PS_LOG_FAILED;
	}
	step = ps_log_read_tail(log);
	back = ps_log_newest_followed(log);
	while (!step && back.seq > log->from.seq) {
		if (ps_log_older_followed(log, &back, &record))
			return PS_LOG_OVERTAKEN;
		ps_history_undo(history, record);
	}
	return step;
}

enum ps_log_step ps_history_walk(struct ps_history *history, const struct ps_args *args,
                                 unsigned try)
{
	enum ps_log_step step = ps_live_reader_begin(&history->live);

	if (!step)
		step = read_records(history, args, try);
	if (!step && args->shows_bytes)
		step = read_present_bytes(history);
	ps_fetch_collect_all(&history->live.fetch);
	return step;
}
