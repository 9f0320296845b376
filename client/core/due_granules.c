/*
 * due_granules.c - sets of granules that mirrors must still be sent (due_granules.h). A granule
 * must never leave a set before the mirror has it.
 */
#include "due_granules.h"

#include "change_map.h"
#include "mirror.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORD = 64,
	COMPARED = 1 << 14, /* granules that are compared in one call, within microseconds */
};

/* Returns true if this owner wrote the slot, to this very image. Under the present epoch nobody
 * else can have written one, because the mirror granted that epoch to this owner alone. */
static bool is_own_slot(const struct perseas *p, const struct ps_mirror *m,
                        const Perseas__Slot *slot)
{
	return slot && slot->seq <= p->commit.seq &&
	       (slot->epoch == p->epoch || ps_mirror_may_have_own_slot(m, slot->epoch));
}

enum ps_due_base ps_due_choose_base(const struct perseas *p, const struct ps_mirror *m,
                                    const Perseas__ClaimReply *claim)
{
	const struct ps_due_granules *due = m->due_granules;

	ps_assert_admin(p);
	if (!is_own_slot(p, m, claim->slot))
		return PS_DUE_ALL;
	if (claim->header->state == PERSEAS__STATE__STATE_CONSISTENT)
		return ps_due_has_repairs(m) ? PS_DUE_REPAIR : PS_DUE_CHANGED;
	return due && due->epoch == p->epoch &&
	                       ps_id_equal(claim->header->image_id, due->image_id) &&
	                       claim->slot->seq >= due->held_seq
	               ? PS_DUE_REST
	               : PS_DUE_ALL;
}

void ps_due_free(struct ps_mirror *m)
{
	for (unsigned i = 0; m->due_granules && i < PS_SEGMENTS_MAX; i++)
		free(m->due_granules->bits[i]);
	free(m->due_granules);
	m->due_granules = NULL;
}

/* Gives each published segment a set of its own: empty, or of all granules. A segment that gets no
 * memory for it is sent whole. */
static void make_granule_sets(struct perseas *p, struct ps_due_granules *due, bool all)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *s = &p->segments[i];
		const uint64_t words = (ps_change_granules(s->size) + WORD - 1) / WORD;

		if (!s->born)
			continue;
		due->bits[s->id] = calloc(words, sizeof(uint64_t));
		if (all && due->bits[s->id])
			memset(due->bits[s->id], 0xff, words * sizeof(uint64_t));
	}
}

/* Returns the transaction after which all changes are due. Digests compare the image with what is
 * here later, by a key that is drawn later. */
static uint64_t changes_since(struct perseas *p, enum ps_due_base base,
                              const Perseas__ClaimReply *claim)
{
	uint64_t seq;

	if (base != PS_DUE_DIFFERENT)
		return base == PS_DUE_ALL ? UINT64_MAX : claim->slot->seq;
	pthread_mutex_lock(&p->lock);
	seq = p->commit.seq;
	pthread_mutex_unlock(&p->lock);
	return seq;
}

int ps_due_make_set(struct perseas *p, struct ps_mirror *m, enum ps_due_base base,
                    const Perseas__ClaimReply *claim, const uint8_t *image_id)
{
	const uint64_t since = changes_since(p, base, claim);

	ps_assert_admin(p);
	assert((base != PS_DUE_REST && base != PS_DUE_REPAIR) || m->due_granules);
	if (base != PS_DUE_REST && base != PS_DUE_REPAIR) {
		ps_due_free(m);
		m->due_granules = calloc(1, sizeof(*m->due_granules));
		if (!m->due_granules)
			return -1;
		make_granule_sets(p, m->due_granules, base != PS_DUE_CHANGED);
		m->due_granules->compared_since_seq = since;
	}
	/* A copy that broke before it had compared all granules compares from the same slot. */
	if (since < m->due_granules->compared_since_seq)
		m->due_granules->compared_since_seq = since;
	m->due_granules->next_segment = 0;
	m->due_granules->next_granule = 0;
	m->due_granules->epoch = p->epoch;
	memcpy(m->due_granules->image_id, image_id, PS_ID_SIZE);
	return 0;
}

int ps_due_add_wrong(struct perseas *p, struct ps_mirror *m, const struct ps_segment *segment,
                     uint64_t offset)
{
	const uint64_t granule = offset >> PS_CHANGE_SHIFT;
	uint64_t *bits;

	ps_assert_admin(p);
	if (!ps_due_has_repairs(m)) {
		ps_due_free(m);
		m->due_granules = calloc(1, sizeof(*m->due_granules));
		if (!m->due_granules)
			return -1;
		make_granule_sets(p, m->due_granules, false);
		m->due_granules->compared_since_seq = UINT64_MAX;
		m->due_granules->repairs = true;
	}
	bits = m->due_granules->bits[segment->id];
	if (bits)
		bits[granule / WORD] |= (uint64_t)1 << granule % WORD;
	return 0;
}

bool ps_due_has_repairs(const struct ps_mirror *m)
{
	return m->due_granules && m->due_granules->repairs;
}

static bool is_due(const struct ps_due_granules *due, uint32_t segment, uint64_t granule)
{
	const uint64_t *bits = due->bits[segment];

	return !bits || bits[granule / WORD] >> granule % WORD & 1;
}

/* Returns the bytes of a granule, which is smaller at the end of a segment. */
static uint64_t granule_length(const struct ps_segment *segment, uint64_t granule)
{
	const uint64_t rest = segment->size - (granule << PS_CHANGE_SHIFT);

	return rest < PS_CHANGE_GRANULE ? rest : PS_CHANGE_GRANULE;
}

/* Compares granules of the segment, `left` at most, and returns how many. */
static uint64_t add_changed_granules(struct perseas *p, struct ps_due_granules *due,
                                     const struct ps_segment *segment, uint64_t left,
                                     uint64_t *bytes)
{
	const uint64_t count = ps_change_granules(segment->size), first = due->next_granule;
	uint64_t *bits = due->bits[segment->id];

	for (; due->next_granule < count && left; due->next_granule++, left--) {
		if (bits && ps_change_map_last_seq(p, segment->id, due->next_granule) >
		                    due->compared_since_seq)
			bits[due->next_granule / WORD] |= (uint64_t)1 << due->next_granule % WORD;
		if (is_due(due, segment->id, due->next_granule))
			*bytes += granule_length(segment, due->next_granule);
	}
	return due->next_granule - first;
}

bool ps_due_add_changed(struct perseas *p, struct ps_mirror *m, uint64_t *bytes)
{
	struct ps_due_granules *due = m->due_granules;
	uint64_t left = COMPARED;

	ps_assert_locked(p);
	*bytes = 0;
	for (; due->next_segment < PS_SEGMENTS_MAX; due->next_segment++, due->next_granule = 0) {
		const struct ps_segment *s = ps_segment_by_id(p, due->next_segment);

		if (!s || !s->born)
			continue;
		left -= add_changed_granules(p, due, s, left, bytes);
		if (!left)
			return true;
	}
	due->compared_since_seq = UINT64_MAX;
	return false;
}

uint64_t ps_due_next_part(const struct ps_mirror *m, const struct ps_segment *segment,
                          uint64_t offset)
{
	const uint64_t count = ps_change_granules(segment->size);
	uint64_t granule = offset >> PS_CHANGE_SHIFT;

	assert(offset % PS_CHANGE_GRANULE == 0);
	while (granule < count && !is_due(m->due_granules, segment->id, granule))
		granule++;
	return granule < count ? granule << PS_CHANGE_SHIFT : segment->size;
}

uint64_t ps_due_part_end(const struct ps_mirror *m, const struct ps_segment *segment,
                         uint64_t offset, uint64_t most)
{
	const uint64_t rest = segment->size - offset, limit = offset + (rest < most ? rest : most);
	uint64_t end = offset;

	assert(offset < segment->size && most > 0);
	do
		end = ((end >> PS_CHANGE_SHIFT) + 1) << PS_CHANGE_SHIFT;
	while (end < limit && is_due(m->due_granules, segment->id, end >> PS_CHANGE_SHIFT));
	return end < limit ? end : limit;
}

void ps_due_remove_part(struct ps_mirror *m, const struct ps_segment *segment, uint64_t offset,
                        uint64_t end, uint64_t held)
{
	const uint64_t past = end == segment->size ? ps_change_granules(end)
	                                           : end >> PS_CHANGE_SHIFT;
	uint64_t *bits = m->due_granules->bits[segment->id];

	assert(offset < end && end <= segment->size && held >= m->due_granules->held_seq);
	m->due_granules->held_seq = held;
	for (uint64_t at = offset >> PS_CHANGE_SHIFT; bits && at < past; at++)
		bits[at / WORD] &= ~((uint64_t)1 << at % WORD);
}
