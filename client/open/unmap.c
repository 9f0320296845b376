/*
 * unmap.c - perseas_unmap: a segment leaves this process, and stays in the store. It must never
 * unmap memory that a transaction can still find.
 */
#include "map.h"

#include "../core/demand.h"
#include "../core/segment.h"
#include "../core/tx.h"

#include <stdatomic.h>

bool ps_map_in_use(struct perseas *p, const struct ps_segment *segment)
{
	struct perseas_tx *tx = p->commit.open_list;

	ps_assert_locked(p);
	for (; tx; tx = tx->next)
		if (atomic_load_explicit(&tx->touched[segment->id / 64], memory_order_relaxed) >>
		            segment->id % 64 &
		    1)
			return true;
	return false;
}

static int unmap_exclusive(struct perseas *p, struct ps_segment *segment)
{
	struct ps_segment hidden;
	bool used;
	int rc;

	if (segment->held)
		return ps_fail(p, PERSEAS_ECONFLICT,
		               "segment '%s' is a part of a heap that is open: close the store to "
		               "unmap it",
		               segment->name);
	pthread_mutex_lock(&p->lock);
	used = ps_map_in_use(p, segment);
	pthread_mutex_unlock(&p->lock);
	if (used)
		return ps_fail(p, PERSEAS_ECONFLICT,
		               "an open transaction has ranges in segment '%s': end it first",
		               segment->name);
	/* Out of sight first, as where segments are destroyed: this alone can fail. */
	pthread_mutex_lock(&p->lock);
	ps_segment_hide(p, segment, &hidden);
	rc = ps_layout_renew(p);
	if (rc)
		*segment = hidden;
	pthread_mutex_unlock(&p->lock);
	if (rc)
		return rc;
	if (segment->born) {
		segment->left = p->commit.seq;
		ps_demand_unmap(p, segment);
	} else {
		ps_map_drop(p, segment->id);
		pthread_mutex_lock(&p->lock);
		ps_segment_forget(p, segment);
		pthread_mutex_unlock(&p->lock);
	}
	ps_segment_unplace(&hidden);
	return 0;
}

static struct ps_segment *find_mapped(struct perseas *p, const void *addr)
{
	for (unsigned i = 0; i < p->segment_count; i++)
		if (addr && p->segments[i].base == addr)
			return &p->segments[i];
	ps_fail(p, PERSEAS_ERANGE, "%p is not the address of a mapped segment", addr);
	return NULL;
}

int perseas_unmap(perseas_t *p, void *addr)
{
	struct ps_segment *segment;
	int rc;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "p is NULL");
	ps_exclusive_enter(p);
	segment = find_mapped(p, addr);
	rc = segment ? unmap_exclusive(p, segment) : PERSEAS_ERANGE;
	ps_exclusive_leave(p);
	return rc;
}

int perseas_retain(perseas_t *p, void *addr)
{
	struct ps_segment *segment;
	int rc = 0;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "p is NULL");
	ps_exclusive_enter(p);
	segment = find_mapped(p, addr);
	if (!segment)
		rc = PERSEAS_ERANGE;
	else if (ps_demand_lacks(p, segment))
		rc = ps_fail(p, PERSEAS_EAGAIN,
		             "memory of segment '%s' is not here yet, and nobody would bring it "
		             "later: call perseas_wait_whole before",
		             segment->name);
	else
		segment->is_retained = true;
	ps_exclusive_leave(p);
	return rc;
}
