/*
 * prove.c - proves a standby's copy against the state that the open has chosen. The record of the
 * copy's transaction must be in the chosen log. Ranges that later records name are dropped from the
 * copy. The log is read from an adopted mirror, newest record first. A copy that cannot be proven
 * is not used, and its memory is fetched instead.
 */
#include "warm.h"

#include "../core/env.h"
#include "../core/handle.h"
#include "../core/mirror.h"
#include "../core/segment.h"
#include "../../proto/image/log_reader.h"

#include <stdlib.h>
#include <string.h>

enum {
	BLOCK = 1 << 20,    /* bytes of log for one read; no record is longer */
	READ_MAX = 16 << 20 /* bytes in all, because the first commit waits for it */
};

/* A view's other error: the record is not in the part of the log that may be read. */
enum { NOWHERE = 2 };

/* A part of the log within one lap of the ring. */
struct block {
	struct perseas *p;
	struct ps_mirror *mirror;
	struct ps_log_back back; /* the walk, which knows where the next record ends */
	uint64_t lowest;         /* position of the copy's record: the walk ends there */
	uint64_t from, end;
	uint64_t *read; /* bytes that were read from all mirrors */
	uint8_t *bytes;
};

/* Reads the block that contains `position` and ends no later than the next record. Returns 0,
 * NOWHERE or -1. */
static int fill_block(struct block *block, uint64_t position)
{
	const uint64_t ring = block->p->log_size, lap = position - position % ring;
	const uint64_t end = block->back.end < lap + ring ? block->back.end : lap + ring;
	uint64_t from = end > BLOCK ? end - BLOCK : 0;

	if (from < lap)
		from = lap;
	if (from < block->lowest)
		from = block->lowest;
	if (position < from || *block->read + (end - from) > READ_MAX)
		return NOWHERE;
	block->from = from;
	block->end = end;
	*block->read += end - from;
	return ps_mirror_read(block->p, block->mirror, PS_REGION_LOG, PS_RING_OFFSET + from % ring,
	                      block->bytes, end - from)
	               ? -1
	               : 0;
}

static int view_log(void *source, uint64_t position, uint64_t length, const void **bytes)
{
	struct block *block = source;
	int rc = 0;

	if (position < block->from || position >= block->end)
		rc = fill_block(block, position);
	if (!rc && length > block->end - position)
		rc = NOWHERE;
	if (!rc)
		*bytes = block->bytes + (position - block->from);
	return rc;
}

static bool is_record_of_point(const struct ps_warm_point *point, const struct ps_record *record)
{
	return record->epoch == point->epoch && record->seq == point->seq &&
	       record->position == point->position && record->crc == point->crc;
}

/* Drops from the copy what records after the copy's own name. Returns 0 if the copy's record is in
 * the log, or 1 if this mirror's log is damaged. Other values mean that no mirror can help. */
static int remove_later_changes(struct ps_warm_copy *warm, struct block *block)
{
	const struct perseas *p = block->p;
	const struct ps_record *record;

	block->back = ps_log_back_from(p->epoch, p->commit.seq, p->commit.next_position,
	                               p->commit.last_position, p->log_size);
	while (block->back.seq >= warm->point.seq) {
		const int rc = ps_log_back(&block->back, p->log_size, view_log, block, &record);

		if (rc)
			return rc;
		if (record->seq == warm->point.seq)
			return is_record_of_point(&warm->point, record) ? 0 : NOWHERE;
		ps_warm_note_changes(warm, record);
	}
	return NOWHERE;
}

static int prove_copy_by_mirror(struct perseas *p, struct ps_mirror *mirror, uint64_t *read)
{
	struct block block = { .p = p, .mirror = mirror, .lowest = p->warm_copy->point.position };
	int rc = NOWHERE;

	block.read = read;
	block.bytes = malloc(BLOCK);
	if (block.bytes)
		rc = remove_later_changes(p->warm_copy, &block);
	free(block.bytes);
	return rc;
}

/* Removes segments that the chosen state does not have. The id alone is not enough: a segment that
 * was never committed may have had the same one. */
static void remove_changed_segments(struct perseas *p)
{
	for (unsigned i = p->warm_copy->count; i-- > 0;) {
		const struct ps_warm_part *part = &p->warm_copy->parts[i];
		const struct ps_segment *segment = ps_segment_by_id(p, part->segment);
		struct ps_segment_key key;

		if (segment)
			key = ps_segment_key(segment);
		if (!segment || !ps_segment_key_equal(&part->key, &key))
			ps_warm_remove_segment(p->warm_copy, part->segment);
	}
}

/* Returns true if the log of the chosen state may still have the copy's transaction. */
static bool is_in_log(const struct perseas *p, const struct ps_warm_point *point)
{
	return point->seq && point->seq <= p->commit.seq &&
	       point->position < p->commit.next_position &&
	       point->position >= ps_lowest_intact_position(p->commit.next_position, p->log_size);
}

static bool prove_copy(struct perseas *p)
{
	uint64_t read = 0;
	int rc = 1;

	if (!is_in_log(p, &p->warm_copy->point) ||
	    memcmp(p->warm_copy->store_id, p->store_id, PS_ID_SIZE) != 0)
		return false;
	for (unsigned i = 0; i < p->mirror_count && rc == 1; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (m->is_active && m->state == PERSEAS_MIRROR_LIVE)
			rc = prove_copy_by_mirror(p, m, &read);
	}
	return rc == 0;
}

void ps_warm_prove(struct perseas *p)
{
	uint64_t here, total;

	if (!p->warm_copy && p->env->told_by_run && p->env->told_by_run->warm_fd > 0)
		p->warm_copy = ps_warm_inherit(p->env->told_by_run->warm_fd, p->store_id);
	if (!p->warm_copy)
		return;
	if (!prove_copy(p)) {
		ps_report_add_line(
			p, "the standby's copy is not used: it is not known to be of the state "
			   "that was chosen");
		ps_warm_free(p->warm_copy);
		p->warm_copy = NULL;
		return;
	}
	remove_changed_segments(p);
	ps_warm_count_bytes(p->warm_copy, &here, &total);
	ps_report_add_line(
		p, "%llu of %llu bytes are in the standby's copy, as transaction %llu left them",
		(unsigned long long)here, (unsigned long long)total,
		(unsigned long long)p->commit.seq);
}
