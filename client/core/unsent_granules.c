/*
 * unsent_granules.c - sets of granules that mirrors must still be sent (unsent_granules.h). A
 * granule must never leave a set before the mirror has it.
 */
#include "unsent_granules.h"

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

enum ps_unsent_base ps_unsent_choose_base(const struct perseas *p, const struct ps_mirror *m,
                                          const Perseas__ClaimReply *claim)
{
	const struct ps_unsent_granules *unsent = m->unsent_granules;

	ps_assert_admin(p);
	if (!is_own_slot(p, m, claim->slot))
		return PS_UNSENT_ALL;
	if (claim->header->state == PERSEAS__STATE__STATE_CONSISTENT)
		return ps_unsent_has_wrong_granules(m) ? PS_UNSENT_REPAIR : PS_UNSENT_CHANGED;
	return unsent && unsent->epoch == p->epoch &&
	                       ps_id_equal(claim->header->image_id, unsent->image_id) &&
	                       claim->slot->seq >= unsent->slot_seq_at_removal
	               ? PS_UNSENT_REST
	               : PS_UNSENT_ALL;
}

void ps_unsent_free(struct ps_mirror *m)
{
	for (unsigned i = 0; m->unsent_granules && i < PS_SEGMENTS_MAX; i++)
		free(m->unsent_granules->unsent_bits[i]);
	free(m->unsent_granules);
	m->unsent_granules = NULL;
}

/* Gives each published segment a set of its own: empty, or of all granules. A segment that gets no
 * memory for it is sent whole. */
static void make_granule_bitmaps(struct perseas *p, struct ps_unsent_granules *unsent, bool all)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *s = &p->segments[i];
		const uint64_t words = (ps_change_granules(s->size) + WORD - 1) / WORD;

		if (!s->born)
			continue;
		unsent->unsent_bits[s->id] = calloc(words, sizeof(uint64_t));
		if (all && unsent->unsent_bits[s->id])
			memset(unsent->unsent_bits[s->id], 0xff, words * sizeof(uint64_t));
	}
}

/* Returns the transaction after which all changes are unsent. Digests compare the image with what
 * is here later, by a key that is drawn later. */
static uint64_t seq_before_unsent_changes(struct perseas *p, enum ps_unsent_base base,
                                          const Perseas__ClaimReply *claim)
{
	uint64_t seq;

	if (base != PS_UNSENT_DIFFERENT)
		return base == PS_UNSENT_ALL ? UINT64_MAX : claim->slot->seq;
	pthread_mutex_lock(&p->lock);
	seq = p->commit.seq;
	pthread_mutex_unlock(&p->lock);
	return seq;
}

int ps_unsent_make_set(struct perseas *p, struct ps_mirror *m, enum ps_unsent_base base,
                       const Perseas__ClaimReply *claim, const uint8_t *image_id)
{
	const uint64_t since = seq_before_unsent_changes(p, base, claim);

	ps_assert_admin(p);
	assert((base != PS_UNSENT_REST && base != PS_UNSENT_REPAIR) || m->unsent_granules);
	if (base != PS_UNSENT_REST && base != PS_UNSENT_REPAIR) {
		ps_unsent_free(m);
		m->unsent_granules = calloc(1, sizeof(*m->unsent_granules));
		if (!m->unsent_granules)
			return -1;
		make_granule_bitmaps(p, m->unsent_granules, base != PS_UNSENT_CHANGED);
		m->unsent_granules->unadded_changes_since_seq = since;
	}
	/* A copy that broke before it had compared all granules compares from the same slot. */
	if (since < m->unsent_granules->unadded_changes_since_seq)
		m->unsent_granules->unadded_changes_since_seq = since;
	m->unsent_granules->next_segment_to_compare = 0;
	m->unsent_granules->next_granule_to_compare = 0;
	m->unsent_granules->epoch = p->epoch;
	memcpy(m->unsent_granules->image_id, image_id, PS_ID_SIZE);
	return 0;
}

int ps_unsent_add_wrong_granule(struct perseas *p, struct ps_mirror *m,
                                const struct ps_segment *segment, uint64_t offset)
{
	const uint64_t granule = offset >> PS_CHANGE_SHIFT;
	uint64_t *bits;

	ps_assert_admin(p);
	if (!ps_unsent_has_wrong_granules(m)) {
		ps_unsent_free(m);
		m->unsent_granules = calloc(1, sizeof(*m->unsent_granules));
		if (!m->unsent_granules)
			return -1;
		make_granule_bitmaps(p, m->unsent_granules, false);
		m->unsent_granules->unadded_changes_since_seq = UINT64_MAX;
		m->unsent_granules->began_with_wrong_granules = true;
	}
	bits = m->unsent_granules->unsent_bits[segment->id];
	if (bits)
		bits[granule / WORD] |= (uint64_t)1 << granule % WORD;
	return 0;
}

bool ps_unsent_has_wrong_granules(const struct ps_mirror *m)
{
	return m->unsent_granules && m->unsent_granules->began_with_wrong_granules;
}

static bool is_granule_unsent(const struct ps_unsent_granules *unsent, uint32_t segment,
                              uint64_t granule)
{
	const uint64_t *bits = unsent->unsent_bits[segment];

	return !bits || bits[granule / WORD] >> granule % WORD & 1;
}

/* Returns the bytes of a granule, which is smaller at the end of a segment. */
static uint64_t granule_length(const struct ps_segment *segment, uint64_t granule)
{
	const uint64_t rest = segment->size - (granule << PS_CHANGE_SHIFT);

	return rest < PS_CHANGE_GRANULE ? rest : PS_CHANGE_GRANULE;
}

/* Compares granules of the segment, `left` at most, and returns how many. */
static uint64_t add_changed_granules(struct perseas *p, struct ps_unsent_granules *unsent,
                                     const struct ps_segment *segment, uint64_t left,
                                     uint64_t *bytes)
{
	const uint64_t count = ps_change_granules(segment->size),
		       first = unsent->next_granule_to_compare;
	uint64_t *bits = unsent->unsent_bits[segment->id];

	for (; unsent->next_granule_to_compare < count && left;
	     unsent->next_granule_to_compare++, left--) {
		if (bits &&
		    ps_change_map_last_seq(p, segment->id, unsent->next_granule_to_compare) >
		            unsent->unadded_changes_since_seq)
			bits[unsent->next_granule_to_compare / WORD] |=
				(uint64_t)1 << unsent->next_granule_to_compare % WORD;
		if (is_granule_unsent(unsent, segment->id, unsent->next_granule_to_compare))
			*bytes += granule_length(segment, unsent->next_granule_to_compare);
	}
	return unsent->next_granule_to_compare - first;
}

bool ps_unsent_add_changed(struct perseas *p, struct ps_mirror *m, uint64_t *bytes)
{
	struct ps_unsent_granules *unsent = m->unsent_granules;
	uint64_t left = COMPARED;

	ps_assert_locked(p);
	*bytes = 0;
	for (; unsent->next_segment_to_compare < PS_SEGMENTS_MAX;
	     unsent->next_segment_to_compare++, unsent->next_granule_to_compare = 0) {
		const struct ps_segment *s = ps_segment_by_id(p, unsent->next_segment_to_compare);

		if (!s || !s->born)
			continue;
		left -= add_changed_granules(p, unsent, s, left, bytes);
		if (!left)
			return true;
	}
	unsent->unadded_changes_since_seq = UINT64_MAX;
	return false;
}

uint64_t ps_unsent_next_part(const struct ps_mirror *m, const struct ps_segment *segment,
                             uint64_t offset)
{
	const uint64_t count = ps_change_granules(segment->size);
	uint64_t granule = offset >> PS_CHANGE_SHIFT;

	assert(offset % PS_CHANGE_GRANULE == 0);
	while (granule < count && !is_granule_unsent(m->unsent_granules, segment->id, granule))
		granule++;
	return granule < count ? granule << PS_CHANGE_SHIFT : segment->size;
}

uint64_t ps_unsent_part_end(const struct ps_mirror *m, const struct ps_segment *segment,
                            uint64_t offset, uint64_t most)
{
	const uint64_t rest = segment->size - offset, limit = offset + (rest < most ? rest : most);
	uint64_t end = offset;

	assert(offset < segment->size && most > 0);
	do
		end = ((end >> PS_CHANGE_SHIFT) + 1) << PS_CHANGE_SHIFT;
	while (end < limit &&
	       is_granule_unsent(m->unsent_granules, segment->id, end >> PS_CHANGE_SHIFT));
	return end < limit ? end : limit;
}

void ps_unsent_remove_sent_part(struct ps_mirror *m, const struct ps_segment *segment,
                                uint64_t offset, uint64_t end, uint64_t held)
{
	const uint64_t past = end == segment->size ? ps_change_granules(end)
	                                           : end >> PS_CHANGE_SHIFT;
	uint64_t *bits = m->unsent_granules->unsent_bits[segment->id];

	assert(offset < end && end <= segment->size &&
	       held >= m->unsent_granules->slot_seq_at_removal);
	m->unsent_granules->slot_seq_at_removal = held;
	for (uint64_t at = offset >> PS_CHANGE_SHIFT; bits && at < past; at++)
		bits[at / WORD] &= ~((uint64_t)1 << at % WORD);
}
