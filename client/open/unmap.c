/*
 * unmap.c - perseas_unmap and perseas_retain. An unmapped segment, with its parts, leaves this
 * process and stays in the store. It must never unmap memory that a transaction can still find.
 */
#include "map.h"

#include "../core/demand.h"
#include "../keeper/exclusive.h"
#include "../core/segment.h"
#include "../core/tx.h"
#include "../core/grown_segment.h"
#include "../core/cancel.h"

#include <stdatomic.h>

void ps_map_hide_segments(struct perseas *p, const uint32_t *ids, unsigned count,
                          struct ps_segment *hidden)
{
	ps_assert_locked(p);
	for (unsigned i = 0; i < count; i++)
		ps_segment_move_memory(p, ps_segment_by_id(p, ids[i]), &hidden[i]);
}

bool ps_map_has_open_transaction(struct perseas *p, const struct ps_segment *segment)
{
	struct perseas_tx *tx = p->commit.open_list;

	ps_assert_locked(p);
	for (; tx; tx = tx->next)
		if (atomic_load_explicit(&tx->touched_segments[segment->id / 64],
		                         memory_order_relaxed) >>
		            segment->id % 64 &
		    1)
			return true;
	return false;
}

static bool has_open_transaction(struct perseas *p, const uint32_t *ids, unsigned count)
{
	bool used = false;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < count; i++)
		used |= ps_map_has_open_transaction(p, ps_segment_by_id(p, ids[i]));
	pthread_mutex_unlock(&p->lock);
	return used;
}

/* Hides the segments from transactions before they are unmapped. Returns 0, or PERSEAS_ENOMEM,
 * which changes nothing. */
static int hide_mapped_segments(struct perseas *p, const uint32_t *ids, unsigned count,
                                struct ps_segment *hidden)
{
	int rc;

	pthread_mutex_lock(&p->lock);
	ps_map_hide_segments(p, ids, count, hidden);
	rc = ps_layout_refresh(p);
	for (unsigned i = 0; rc && i < count; i++)
		*ps_segment_by_id(p, ids[i]) = hidden[i];
	pthread_mutex_unlock(&p->lock);
	return rc;
}

static void unmap_hidden_segment(struct perseas *p, struct ps_segment *hidden)
{
	struct ps_segment *segment = ps_segment_by_id(p, hidden->id);

	if (segment->born) {
		segment->last_unmap_seq = p->commit.seq;
		ps_demand_unmap(p, segment);
	} else {
		ps_map_drop_segment_on_mirrors(p, segment->id);
		pthread_mutex_lock(&p->lock);
		ps_segment_forget(p, segment);
		pthread_mutex_unlock(&p->lock);
	}
	ps_segment_unmap(hidden);
}

static int unmap_segment_with_parts(struct perseas *p, struct ps_segment *segment)
{
	struct ps_segment hidden[PS_SEGMENTS_MAX];
	uint32_t ids[PS_SEGMENTS_MAX];
	const unsigned count = ps_grown_part_ids(p, segment, ids);
	int rc;

	if (segment->heap_count)
		return ps_fail(p, PERSEAS_ECONFLICT,
		               "segment '%s' is a part of a heap that is open: close the store to "
		               "unmap it",
		               segment->name);
	if (has_open_transaction(p, ids, count))
		return ps_fail(p, PERSEAS_ECONFLICT,
		               "an open transaction has ranges in segment '%s': end it first",
		               segment->name);
	rc = hide_mapped_segments(p, ids, count, hidden);
	for (unsigned i = 0; !rc && i < count; i++)
		unmap_hidden_segment(p, &hidden[i]);
	return rc;
}

static struct ps_segment *find_segment_mapped_at(struct perseas *p, const void *addr)
{
	for (unsigned i = 0; i < p->segment_count; i++)
		if (addr && p->segments[i].base == addr &&
		    !ps_grown_previous_part(p, &p->segments[i]))
			return &p->segments[i];
	ps_fail(p, PERSEAS_ERANGE, "%p is not the address of a mapped segment", addr);
	return NULL;
}

int perseas_unmap(perseas_t *p, void *addr)
{
	PS_UNCANCELLED;
	struct ps_segment *segment;
	int rc;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "p is NULL");
	ps_exclusive_enter(p);
	segment = find_segment_mapped_at(p, addr);
	rc = segment ? unmap_segment_with_parts(p, segment) : PERSEAS_ERANGE;
	ps_exclusive_leave(p);
	return rc;
}

static bool has_unfetched_memory(struct perseas *p, const struct ps_segment *segment)
{
	for (; segment; segment = ps_grown_next_part(p, segment))
		if (ps_demand_has_missing(p, segment))
			return true;
	return false;
}

int perseas_retain(perseas_t *p, void *addr)
{
	PS_UNCANCELLED;
	struct ps_segment *segment;
	int rc = 0;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "p is NULL");
	ps_exclusive_enter(p);
	segment = find_segment_mapped_at(p, addr);
	if (!segment)
		rc = PERSEAS_ERANGE;
	else if (has_unfetched_memory(p, segment))
		rc = ps_fail(p, PERSEAS_EAGAIN,
		             "some memory of segment '%s' is not fetched yet, and could not be "
		             "fetched after the close: call perseas_wait_whole first",
		             segment->name);
	for (struct ps_segment *s = segment; !rc && s; s = ps_grown_next_part(p, s))
		s->memory_outlives_handle = true;
	ps_exclusive_leave(p);
	return rc;
}
