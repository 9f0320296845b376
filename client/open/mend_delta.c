/*
 * mend_delta.c - copies a delta that two logs describe. Two images whose histories diverged differ
 * only in the ranges of the transactions after the last common one. These ranges and the log are
 * copied. Two transactions with the same epoch and seq are the same transaction, because an epoch
 * has one owner. adopt.c calls it. It must never change an image before W other mirrors hold the
 * state (I8).
 */
#include "mend_delta.h"

#include "../keeper/claims.h"
#include "../keeper/copy.h"
#include "../core/quorum.h"
#include "../core/mirror.h"
#include "../keeper/rejoin.h"
#include "../../proto/control/segment_table.h"
#include "logged_record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 4096 }; /* records read from both logs together, at most */

/* Adds the ranges of a record to `changed`. Returns 0, or 1 if a delta cannot describe the
 * record. */
static int add_ranges_of_record(struct perseas *p, const struct ps_logged_record *step,
                                struct ps_cover *changed)
{
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *image;

	if (step->record->kind != PS_RECORD_TRANSACTION)
		return 1;
	ps_record_begin_walk(step->record, &cursor);
	while (ps_record_next(&cursor, &range, &image)) {
		uint64_t base = (uint64_t)range->segment << 41, start = base + range->offset;
		struct ps_span span = { start, start + range->length, base, range->segment };

		if (!ps_range_exists(p, range))
			return 1;
		if (ps_cover_reserve_span(changed) < 0)
			return 1;
		ps_cover_add_and_merge_span(changed, &span);
	}
	return 0;
}

/* Adds the bytes of the log that the record occupies to `log`. Returns 0, or 1 without memory. */
static int add_log_bytes_of_record(const struct perseas *p, const struct ps_logged_record *step,
                                   struct ps_cover *log)
{
	uint64_t at = PS_RING_OFFSET + step->record->position % p->log_size;
	struct ps_span span = { at, at + ps_align64(step->record->length), 0, 0 };

	if (ps_cover_reserve_span(log) < 0)
		return 1;
	ps_cover_add_and_merge_span(log, &span);
	return 0;
}

/*
 * Adds the part of the log that mirror `m` may have overwritten by records after the common
 * history, although the slot that it is about to get still reaches back to it. Otherwise
 * application data in that part could pass for old records. Returns 0, or 1 without memory.
 */
static int add_overwritten_log_bytes(const struct perseas *p, const struct ps_mirror *m,
                                     struct ps_cover *log)
{
	uint64_t from = ps_lowest_intact_position(p->commit.next_position, p->log_size);
	uint64_t end = ps_lowest_intact_position(m->probe.position.next_position, p->log_size);

	if (end > p->commit.next_position)
		end = p->commit.next_position;
	for (uint64_t length; from < end; from += length) {
		const uint64_t at = PS_RING_OFFSET + from % p->log_size;
		struct ps_span span = { at, at, 0, 0 };

		length = p->log_size - from % p->log_size;
		if (length > end - from)
			length = end - from;
		span.end += length;
		if (ps_cover_reserve_span(log) < 0)
			return 1;
		ps_cover_add_and_merge_span(log, &span);
	}
	return 0;
}

/* Returns the seq of the record that was read last, or 0 at the beginning of history. */
static uint64_t last_read_seq(const struct ps_logged_record *step)
{
	return step->record ? step->record->seq : 0;
}

/* Reads the next older record into step->record, or sets it to NULL at the beginning of history.
 * Returns as ps_logged_record_read_back. */
static int read_older_record(struct perseas *p, struct ps_mirror *m, struct ps_logged_record *step)
{
	step->record = NULL;
	return step->back.seq ? ps_logged_record_read_back(p, m, step) : 0;
}

/* Adds the current record to `changed` and, unless log is NULL, to `log`, and reads the next older
 * one. */
static int collect_and_read_older(struct perseas *p, struct ps_mirror *m,
                                  struct ps_logged_record *step, struct ps_cover *changed,
                                  struct ps_cover *log)
{
	int rc = add_ranges_of_record(p, step, changed);

	if (!rc && log)
		rc = add_log_bytes_of_record(p, step, log);
	return rc ? rc : read_older_record(p, m, step);
}

/*
 * Reads both logs back to the newest common transaction. `changed` gets the ranges of both sides
 * since then, `log` the records of the source since then. `source_log` reads the log of the source,
 * `target_log` that of mirror `m`. Returns 0, 1 or -1 as ps_mend_delta.
 */
static int collect_since_common_transaction(struct perseas *p, struct ps_mirror *from,
                                            struct ps_mirror *m,
                                            struct ps_logged_record *source_log,
                                            struct ps_logged_record *target_log,
                                            struct ps_cover *changed, struct ps_cover *log)
{
	const struct ps_image_position *at = &m->probe.position;
	int rc;

	source_log->back = ps_log_back_from(p->epoch, p->commit.seq, p->commit.next_position,
	                                    p->commit.last_position, p->log_size);
	target_log->back = ps_log_back_from(at->epoch, at->seq, at->next_position,
	                                    at->last_position, p->log_size);
	rc = read_older_record(p, from, source_log);
	if (!rc)
		rc = read_older_record(p, m, target_log);
	for (int steps = 0; !rc && steps < STEPS_MAX; steps++) {
		const uint64_t a = last_read_seq(source_log), b = last_read_seq(target_log);

		if (a == b && (!a || source_log->record->epoch == target_log->record->epoch))
			return 0;
		if (a >= b)
			rc = collect_and_read_older(p, from, source_log, changed, log);
		else
			rc = collect_and_read_older(p, m, target_log, changed, NULL);
	}
	return rc ? rc : 1;
}

static bool has_same_regions(const Perseas__Header *a, const Perseas__Header *b)
{
	return a->log_size == b->log_size && ps_segment_tables_equal(a, b);
}

static int copy_delta(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m,
                      const struct ps_cover *changed, const struct ps_cover *log)
{
	struct ps_error error = { 0 };

	if (ps_rejoin_begin_in_place(p, m, false, &error))
		return -1;
	for (unsigned i = 0; i < changed->span_count; i++) {
		const struct ps_span *span = &changed->spans[i];

		if (ps_copy_between_mirrors(p, from, m, PS_REGION_SEGMENT + span->segment,
		                            span->start - span->base, span->end - span->start))
			return -1;
	}
	for (unsigned i = 0; i < log->span_count; i++)
		if (ps_copy_between_mirrors(p, from, m, PS_REGION_LOG, log->spans[i].start,
		                            log->spans[i].end - log->spans[i].start))
			return -1;
	if (ps_copy_write_commit_slot(p, m))
		return -1;
	return ps_rejoin_have_image_counted(p, m, &error) ? -1 : 0;
}

int ps_mend_delta(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m)
{
	struct ps_cover changed = { 0 }, log = { 0 };
	struct ps_logged_record source_log = { 0 }, target_log = { 0 };
	uint64_t whole = 0;
	int rc = 1;

	/* I8: W mirrors hold the chosen state before this image is changed. */
	assert(!p->is_open && ps_quorum_is_w_for_open(p, ps_probe_sets(p).adopted_set));
	for (unsigned i = 0; i < p->segment_count; i++)
		whole += p->segments[i].size;
	if (has_same_regions(from->probe.header, m->probe.header))
		rc = collect_since_common_transaction(p, from, m, &source_log, &target_log,
		                                      &changed, &log);
	if (!rc)
		rc = add_overwritten_log_bytes(p, m, &log);
	if (!rc && changed.covered_bytes > whole)
		rc = 1;
	if (!rc)
		rc = copy_delta(p, from, m, &changed, &log);
	ps_cover_free(&changed);
	ps_cover_free(&log);
	free(source_log.bytes);
	free(target_log.bytes);
	return rc;
}
