/*
 * forward.c - a mirror that is only behind is sent the transactions that it missed, one after the
 * other, as their owner would have sent them: undo record, data, slot. So its image is a prefix of
 * history at every moment (I1 to I3), which harms nobody, however few others hold the state (I8).
 *
 * The logs keep before-images. What a transaction wrote is what lies there now, less what those
 * after it did: their before-images put back.
 */
#include "claim.h"
#include "copy.h"
#include "mirror.h"
#include "step.h"

#include <stdlib.h>
#include <string.h>

enum {
	MISSED_MAX = 64,    /* transactions: what many threads have under way at once */
	ENTRIES_MAX = 4096, /* in all of their records */
};

/* A range that one of the records names, with what was there before it. */
struct entry {
	struct ps_range range;
	const uint8_t *before;
};

/* The transactions that a mirror missed, the newest first; entries[first[i]] is where those of
 * steps[i] begin. */
struct missed {
	struct ps_step steps[MISSED_MAX];
	unsigned count;
	unsigned first[MISSED_MAX + 1];
	struct entry entries[ENTRIES_MAX];
};

/* Takes note of what a record names. 0, or 1: it is none that can be sent again. */
static int note(struct perseas *p, struct missed *missed, const struct ps_record *record)
{
	unsigned count = missed->first[missed->count];
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *before;

	if (record->kind != PS_RECORD_TRANSACTION || record->ranges > ENTRIES_MAX - count)
		return 1;
	ps_record_walk(record, &cursor);
	while (ps_record_next(&cursor, &range, &before)) {
		if (!ps_step_names(p, range))
			return 1;
		missed->entries[count++] = (struct entry){ *range, before };
	}
	missed->first[++missed->count] = count;
	return 0;
}

/*
 * Follows the log back to where the mirror stands. An epoch has one owner: where all that is
 * missing is of the epoch that the mirror stands at, their histories are the same up to there.
 */
static int follow(struct perseas *p, struct ps_mirror *from, const struct ps_mirror *m,
                  struct missed *missed)
{
	const struct ps_standing *at = &m->found.at;
	const struct ps_record *oldest;
	uint64_t position = p->last, seq = p->seq;

	do {
		struct ps_step *step = &missed->steps[missed->count];
		int rc;

		step->position = position;
		rc = ps_step_read(p, from, step, seq);
		if (rc)
			return rc;
		oldest = step->record;
		if (oldest->epoch != at->epoch || note(p, missed, oldest))
			return 1;
		position = oldest->previous;
	} while (--seq > at->seq);
	/* Where a claim of the mirror would look for it, to roll it back. */
	return oldest->previous == at->last &&
	                       ps_place(at->next, oldest->length, p->log_size) == oldest->position
	               ? 0
	               : 1;
}

static int write_piece(struct perseas *p, struct ps_mirror *m, uint32_t region, uint64_t offset,
                       uint32_t length)
{
	struct ps_write write = { ps_ring_bounce(&p->ring), offset, region, length };
	struct ps_chain chain = { &write, 1, 0, { NULL, 0, 0, 0 } };

	return ps_mirror_write(p, m, &chain) ? -1 : 0;
}

static int send_record(struct perseas *p, struct ps_mirror *m, const struct ps_record *record)
{
	const uint64_t at = PS_RING_OFFSET + record->position % p->log_size;

	for (uint32_t done = 0; done < record->length;) {
		const uint32_t rest = record->length - done;
		const uint32_t length = rest < PS_BOUNCE ? rest : PS_BOUNCE;

		memcpy(ps_ring_bounce(&p->ring), (const uint8_t *)record + done, length);
		if (write_piece(p, m, PS_REGION_LOG, at + done, length))
			return -1;
		done += length;
	}
	return 0;
}

/* Puts back in `bytes`, which are of this place, what lay there before an entry. */
static void put_back(const struct entry *entry, uint32_t segment, uint64_t offset, uint8_t *bytes,
                     uint64_t length)
{
	const struct ps_range *range = &entry->range;
	uint64_t start = offset, end = offset + length;

	if (range->segment != segment)
		return;
	if (range->offset > start)
		start = range->offset;
	if (range->offset + range->length < end)
		end = range->offset + range->length;
	if (start < end)
		memcpy(bytes + (start - offset), entry->before + (start - range->offset),
		       end - start);
}

/* Sends what missed->steps[i] wrote to a range. */
static int send_range(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m,
                      const struct missed *missed, unsigned i, const struct ps_range *range)
{
	uint8_t *bounce = ps_ring_bounce(&p->ring);

	for (uint32_t done = 0; done < range->length;) {
		const uint32_t rest = range->length - done;
		const uint32_t length = rest < PS_BOUNCE ? rest : PS_BOUNCE;
		const uint64_t offset = range->offset + done;
		const uint32_t region = PS_REGION_SEGMENT + range->segment;

		if (ps_mirror_read(p, from, region, offset, bounce, length))
			return -1;
		/* The newest first; and of one record the last entry first. */
		for (unsigned younger = 0; younger < i; younger++)
			for (unsigned k = missed->first[younger + 1]; k > missed->first[younger];
			     k--)
				put_back(&missed->entries[k - 1], range->segment, offset, bounce,
				         length);
		if (write_piece(p, m, region, offset, length))
			return -1;
		done += length;
	}
	return 0;
}

static int send_slot(struct perseas *p, struct ps_mirror *m, const struct ps_record *record)
{
	const struct ps_standing now = {
		record->epoch,    record->seq,        record->position + ps_align64(record->length),
		record->position, !m->found.at.index,
	};
	struct ps_slot slot;
	struct ps_chain chain = {
		NULL, 0, 0, { &slot, ps_slot_offset(now.index), PS_REGION_LOG, sizeof(slot) }
	};

	ps_slot_encode(&slot, now.epoch, now.seq, now.next, now.last);
	if (ps_mirror_write(p, m, &chain))
		return -1;
	m->found.at = now;
	return 0;
}

static int send(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m,
                const struct missed *missed, unsigned i)
{
	const struct ps_record *record = missed->steps[i].record;

	if (send_record(p, m, record))
		return -1;
	for (unsigned k = missed->first[i]; k < missed->first[i + 1]; k++)
		if (send_range(p, from, m, missed, i, &missed->entries[k].range))
			return -1;
	return send_slot(p, m, record);
}

int ps_mend_forward(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m)
{
	struct missed *missed;
	int rc;

	if (m->found.at.seq >= p->seq || p->seq - m->found.at.seq > MISSED_MAX)
		return 1;
	missed = calloc(1, sizeof(*missed));
	if (!missed)
		return 1;
	rc = follow(p, from, m, missed);
	for (unsigned i = missed->count; !rc && i > 0; i--)
		rc = send(p, from, m, missed, i - 1);
	if (!rc)
		rc = ps_copy_slot(p, m);
	for (unsigned i = 0; i < MISSED_MAX; i++)
		free(missed->steps[i].bytes);
	free(missed);
	return rc;
}
