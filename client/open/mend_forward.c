/*
 * mend_forward.c - sends a mirror that is only behind the transactions that it missed, one after
 * the other, as their owner would have: undo record, data, slot. The mirror's image is a prefix of
 * history at every moment (I1 to I3), so this needs no other mirrors that hold the state (I8).
 * adopt.c calls it.
 *
 * The logs have before-images, not the data that transactions wrote. The data of a transaction is
 * in the source's segments once the before-images of all later transactions are put back.
 */
#include "mend_forward.h"

#include "../../proto/image/undo.h"
#include "../keeper/copy.h"
#include "../core/mirror.h"
#include "logged_record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Transactions that are sent at most: about as many as concurrent threads leave in
	 * flight. */
	MISSED_MAX = 64,
	ENTRIES_MAX = 4096, /* ranges in all records of these transactions, at most */
};

/* The transactions that a mirror missed, the newest first. */
struct missed_transactions {
	struct ps_logged_record steps[MISSED_MAX];
	unsigned count;
	unsigned range_count; /* ranges in the records of all steps */
};

/* Counts a record. Returns 0, or 1 if its transaction cannot be sent again. */
static int count_missed_record(struct perseas *p, struct missed_transactions *missed,
                               const struct ps_record *record)
{
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *before;

	if (record->kind != PS_RECORD_TRANSACTION ||
	    record->ranges > ENTRIES_MAX - missed->range_count)
		return 1;
	ps_record_begin_walk(record, &cursor);
	while (ps_record_next(&cursor, &range, &before))
		if (!ps_range_exists(p, range))
			return 1;
	missed->range_count += record->ranges;
	missed->count++;
	return 0;
}

/*
 * Reads the log of `from` back to the state of mirror `m`. Returns 0; 1 if that is not possible or
 * the states are of different histories; or -1 if the link broke. An epoch has one owner, so if all
 * missed records have the epoch of the mirror's state, both images have the same history up to that
 * state.
 */
static int read_missed_transactions(struct perseas *p, struct ps_mirror *from,
                                    const struct ps_mirror *m, struct missed_transactions *missed)
{
	const struct ps_image_position *at = &m->probe.position;
	const struct ps_record *oldest;
	struct ps_log_back back = ps_log_back_from(p->epoch, p->commit.seq, p->commit.next_position,
	                                           p->commit.last_position, p->log_size);

	do {
		struct ps_logged_record *step = &missed->steps[missed->count];
		int rc;

		step->back = back;
		rc = ps_logged_record_read_back(p, from, step);
		if (rc)
			return rc;
		back = step->back;
		oldest = step->record;
		if (oldest->epoch != at->epoch || count_missed_record(p, missed, oldest))
			return 1;
	} while (back.seq > at->seq);
	/* A claim of the mirror must find the oldest record where it looks for an unfinished
	 * transaction, to roll it back. */
	return oldest->previous == at->last_position &&
	                       ps_record_position(at->next_position, oldest->length, p->log_size) ==
	                               oldest->position
	               ? 0
	               : 1;
}

static int write_bounce_buffer(struct perseas *p, struct ps_mirror *m, uint32_t region,
                               uint64_t offset, uint32_t length)
{
	struct ps_write write = { ps_ring_bounce_buffer(&p->commit.ring), offset, region, length };
	struct ps_chain chain = { &write, 1, 0, { NULL, 0, 0, 0 } };

	return ps_mirror_write(p, m, &chain) ? -1 : 0;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Sends a record and the terminator behind it. Returns 0, or -1 if the link broke. */
static int send_record(struct perseas *p, struct ps_mirror *m, const struct ps_record *record)
{
	const uint64_t at = PS_RING_OFFSET + record->position % p->log_size;
	const uint64_t next = record->position + ps_align64(record->length);
	const uint64_t end = next - record->position + ps_terminator_size(next, p->log_size);
	uint8_t *bounce = ps_ring_bounce_buffer(&p->commit.ring);

	for (uint64_t done = 0; done < end;) {
		const uint64_t length = min_u64(end - done, PS_BOUNCE);

		memset(bounce, 0, length);
		if (done < record->length)
			memcpy(bounce, (const uint8_t *)record + done,
			       min_u64(record->length - done, length));
		if (write_bounce_buffer(p, m, PS_REGION_LOG, at + done, (uint32_t)length))
			return -1;
		done += length;
	}
	return 0;
}

/* Sends the data that transaction missed->steps[i] wrote to this range. Returns 0, or -1 if a link
 * broke. */
static int send_range(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m,
                      const struct missed_transactions *missed, unsigned i,
                      const struct ps_range *range)
{
	struct ps_window window = { .bytes = ps_ring_bounce_buffer(&p->commit.ring),
		                    .segment = range->segment };
	const uint32_t region = PS_REGION_SEGMENT + range->segment;

	for (uint32_t done = 0; done < range->length; done += (uint32_t)window.length) {
		const uint32_t rest = range->length - done;

		window.offset = range->offset + done;
		window.length = rest < PS_BOUNCE ? rest : PS_BOUNCE;
		if (ps_mirror_read(p, from, region, window.offset, window.bytes, window.length))
			return -1;
		for (unsigned younger = 0; younger < i; younger++)
			ps_undo_record(missed->steps[younger].record, ps_window_restore, &window);
		if (write_bounce_buffer(p, m, region, window.offset, (uint32_t)window.length))
			return -1;
	}
	return 0;
}

static int send_commit_slot(struct perseas *p, struct ps_mirror *m, const struct ps_record *record)
{
	const struct ps_image_position now = {
		record->epoch,
		record->seq,
		record->position + ps_align64(record->length),
		record->position,
		!m->probe.position.valid_slot,
	};
	struct ps_slot slot;
	struct ps_chain chain = {
		NULL, 0, 0, { &slot, ps_slot_offset(now.valid_slot), PS_REGION_LOG, sizeof(slot) }
	};

	ps_slot_encode(&slot, now.epoch, now.seq, now.next_position, now.last_position);
	if (ps_mirror_write(p, m, &chain))
		return -1;
	m->probe.position = now;
	return 0;
}

static int send_transaction(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m,
                            const struct missed_transactions *missed, unsigned i)
{
	const struct ps_record *record = missed->steps[i].record;
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *before;

	if (send_record(p, m, record))
		return -1;
	ps_record_begin_walk(record, &cursor);
	while (ps_record_next(&cursor, &range, &before))
		if (send_range(p, from, m, missed, i, range))
			return -1;
	return send_commit_slot(p, m, record);
}

int ps_mend_forward(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m)
{
	struct missed_transactions *missed;
	int rc;

	assert(!p->is_open);
	if (m->probe.position.seq >= p->commit.seq ||
	    p->commit.seq - m->probe.position.seq > MISSED_MAX)
		return 1;
	missed = calloc(1, sizeof(*missed));
	if (!missed)
		return 1;
	rc = read_missed_transactions(p, from, m, missed);
	for (unsigned i = missed->count; !rc && i > 0; i--)
		rc = send_transaction(p, from, m, missed, i - 1);
	if (!rc)
		rc = ps_copy_write_commit_slot(p, m);
	for (unsigned i = 0; i < MISSED_MAX; i++)
		free(missed->steps[i].bytes);
	free(missed);
	return rc;
}
