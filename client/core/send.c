/*
 * send.c - sends one record, and the memory that follows it, to every active mirror: as a chain
 * that each fabric copies at once, or as an entry of the ring (PERSEAS, section 3, step 3 of figure
 * 3). It knows nothing of open transactions, and never waits.
 */
#include "commit.h"

#include "change_map.h"
#include "mirror.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int ps_commit_reserve_writes(struct perseas *p, unsigned count)
{
	struct ps_write *grown;

	if (count <= p->commit.write_capacity)
		return 0;
	grown = realloc(p->commit.writes, (size_t)2 * count * sizeof(*grown));
	if (!grown)
		return ps_fail(p, PERSEAS_ENOMEM, "no memory for a chain of %u writes", count);
	p->commit.writes = grown;
	p->commit.write_capacity = 2 * count;
	__atomic_fetch_add(&p->commit.stat.allocations, 1, __ATOMIC_RELAXED);
	return 0;
}

int ps_commit_reserve_chain(struct perseas *p, const struct ps_outgoing *out)
{
	const unsigned count = out->span_count + 1;

	return p->commit.uses_ring || count <= p->commit.write_capacity
	               ? 0
	               : ps_commit_reserve_writes(p, count);
}

/* Builds the chain directly from the record and live memory, for fabrics that copy at once. Marks
 * what it changes: nothing fails after this. */
static int build_direct_chain(struct perseas *p, const struct ps_outgoing *out,
                              struct ps_chain *chain)
{
	unsigned count = out->span_count + 1;
	int rc;

	if (count > p->commit.write_capacity) {
		rc = ps_commit_reserve_writes(p, count);
		if (rc)
			return rc;
	}
	for (unsigned i = 0; i < out->span_count; i++) {
		const struct ps_span *span = &out->spans[i];
		const uint64_t offset = span->start - span->base, length = span->end - span->start;

		p->commit.writes[i + 1] = (struct ps_write){ (const void *)span->start, offset,
			                                     PS_REGION_SEGMENT + span->segment,
			                                     (uint32_t)length };
		ps_change_map_mark(p, span->segment, offset, length, p->commit.seq + 1);
	}
	chain->writes = p->commit.writes;
	chain->write_count = count;
	chain->undo_write_count = 1;
	return 0;
}

/* Returns the write of a record and its terminator: zeros up to PS_TERMINATOR bytes past the next
 * position, or up to the end of the log. In memory the zeros follow the record. */
static struct ps_write make_record_write(const struct perseas *p, const void *src,
                                         uint64_t position, uint64_t length)
{
	const uint64_t at = position - p->commit.lap_position, end = at + ps_align64(length);
	const uint64_t zeros = end < p->log_size ? PS_TERMINATOR : 0;

	return (struct ps_write){ src, PS_RING_OFFSET + at, PS_REGION_LOG,
		                  (uint32_t)(end - at + zeros) };
}

/* Copies record and after-images into a ring entry, builds the chain there, and marks what it
 * changes. */
static void build_ring_entry(struct perseas *p, const struct ps_outgoing *out, uint64_t position)
{
	struct ps_ring_entry *entry = ps_ring_append_entry(&p->commit.ring, out->entry_length);
	uint8_t *at = (uint8_t *)&entry->writes[out->span_count + 1];

	entry->seq = p->commit.seq + 1;
	entry->length = out->entry_length;
	entry->write_count = out->span_count + 1;
	entry->record_kind = out->record_kind;
	entry->slot = p->commit.sent_slot;
	memcpy(at, out->record, ps_align64(out->record_length) + PS_TERMINATOR);
	entry->writes[0] = make_record_write(p, at, position, out->record_length);
	at += ps_align64(out->record_length) + PS_TERMINATOR;
	entry->fabric_bytes_of_entry = entry->writes[0].length + sizeof(entry->slot);
	for (unsigned i = 0; i < out->span_count; i++) {
		const struct ps_span *span = &out->spans[i];
		const uint64_t offset = span->start - span->base, length = span->end - span->start;

		memcpy(at, (const void *)span->start, length);
		entry->writes[i + 1] = (struct ps_write){ at, offset,
			                                  PS_REGION_SEGMENT + span->segment,
			                                  (uint32_t)length };
		ps_change_map_mark(p, span->segment, offset, length, entry->seq);
		at += length;
		entry->fabric_bytes_of_entry += length;
	}
}

/* Returns the log position of the next record, of `length` bytes. Does what ps_record_position does
 * without its divisions, which would be the slowest operations of a small commit. */
static uint64_t choose_log_position(struct perseas *p, uint64_t length)
{
	if (p->commit.next_position + length <= p->commit.lap_position + p->log_size)
		return p->commit.next_position;
	p->commit.lap_position += p->log_size;
	p->commit.stat.log_laps++;
	return p->commit.lap_position;
}

/* Posts the chain to every active mirror without the ring. All of these copy it before post
 * returns. */
static void post_direct_chain(struct perseas *p, struct ps_chain *chain, uint64_t bytes)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!m->is_active)
			continue;
		chain->slot = (struct ps_write){ &p->commit.sent_slot,
			                         ps_slot_offset(!m->valid_slot), PS_REGION_LOG,
			                         sizeof(p->commit.sent_slot) };
		if (ps_mirror_post(p, m, chain))
			continue;
		m->posted_seq = p->commit.seq;
		p->commit.stat.bytes_sent += bytes;
	}
}

int ps_commit_send(struct perseas *p, const struct ps_outgoing *out)
{
	struct ps_chain chain = { 0 };
	uint64_t position;
	int rc;

	/* The record is sealed with p->epoch, which must be an epoch that mirrors granted. */
	assert(!p->is_renewing);
	rc = p->commit.uses_ring ? 0 : build_direct_chain(p, out, &chain);

	if (rc)
		return rc;
	position = choose_log_position(p, out->record_length);
	assert(position >= p->commit.next_position); /* I3: the log only goes forward */
	out->record->kind = (uint16_t)out->record_kind;
	out->record->length = (uint32_t)out->record_length;
	out->record->ranges = out->range_count;
	out->record->sum = p->roster->level > 0 ? ps_record_sum(out->record) : 0;
	ps_record_seal(out->record, p->epoch, p->commit.seq + 1, position, p->commit.last_position,
	               p->env->ops->clock(p->env));
	ps_slot_encode(&p->commit.sent_slot, p->epoch, p->commit.seq + 1,
	               position + ps_align64(out->record_length), position);
	memset((uint8_t *)out->record + out->record_length, 0, PS_RECORD_SLACK);
	if (p->commit.uses_ring)
		build_ring_entry(p, out, position);
	else
		p->commit.writes[0] = make_record_write(p, out->record, position,
		                                        out->record_length);
	p->commit.seq++;
	p->commit.last_position = position;
	p->commit.next_position = p->commit.sent_slot.next;
	if (p->commit.uses_ring)
		ps_mirrors_post_from_ring(p);
	else
		post_direct_chain(p, &chain,
		                  p->commit.writes[0].length + out->changed_bytes +
		                          sizeof(p->commit.sent_slot));
	return 0;
}
