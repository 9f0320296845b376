/*
 * rewind.c - undoes the last transactions of a handle by the records in its ring, whose
 * before-images are what a checkpoint would bring back.
 */
#include "rewind.h"

#include <string.h>

static struct ps_segment *segment_by_id(struct perseas *p, uint32_t id)
{
	for (unsigned i = 0; i < p->segment_count; i++)
		if (p->segments[i].id == id)
			return &p->segments[i];
	return NULL;
}

/* Returns false if a range is of a segment that is not mapped: then nothing was changed. */
static bool undo(struct perseas *p, const struct ps_record *record, bool apply)
{
	const uint8_t *at = (const uint8_t *)(record + 1);

	for (uint32_t i = 0; i < record->ranges; i++) {
		const struct ps_range *range = (const void *)at;
		struct ps_segment *segment = segment_by_id(p, range->segment);

		if (!segment || !segment->base)
			return false;
		if (apply)
			memcpy(segment->base + range->offset, at + sizeof(*range), range->length);
		at += sizeof(*range) + ps_align8(range->length);
	}
	return true;
}

static bool step_back(struct perseas *p)
{
	const struct ps_ring_entry *entry = ps_ring_find_entry(&p->commit.ring, p->commit.seq);
	const struct ps_ring_entry *before = ps_ring_find_entry(&p->commit.ring, p->commit.seq - 1);
	const struct ps_record *record = entry ? (const void *)entry->writes[0].src : NULL;

	/* If the log went on since the previous transaction, only that transaction's entry says
	 * from where. */
	if (!record || !before || entry->record_kind != PS_RECORD_TRANSACTION ||
	    !undo(p, record, false))
		return false;
	undo(p, record, true);
	p->commit.next_position = before->slot.next;
	p->commit.last_position = before->slot.last;
	p->commit.lap_position = p->commit.last_position - p->commit.last_position % p->log_size;
	p->commit.ring.append_position = p->commit.ring.positions[p->commit.seq % PS_RING_ENTRIES];
	p->commit.ring.last_seq--;
	p->commit.seq--;
	return true;
}

unsigned rewind_owner(struct perseas *p, unsigned count)
{
	unsigned done = 0;

	while (done < count && step_back(p))
		done++;
	if (p->commit.durable_seq > p->commit.seq)
		p->commit.durable_seq = p->commit.seq;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->posted_seq = m->posted_seq > p->commit.seq ? p->commit.seq : m->posted_seq;
		m->acked_seq = m->acked_seq > p->commit.seq ? p->commit.seq : m->acked_seq;
	}
	return done;
}
