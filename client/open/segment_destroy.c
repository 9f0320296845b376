/*
 * segment_destroy.c - perseas_segment_destroy, and segments that a heap destroys. One record
 * destroys one segment or several. First every mirror notes, in each segment's entry, the seq of
 * the record that destroys it; then the record is sent. A mirror frees the memory when it is asked
 * to, or is claimed, after its own slot has reached that seq. Mirrors are asked once W of them hold
 * the record.
 */
#include "segment_destroy.h"

#include "map.h"
#include "../core/commit.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "../core/segment.h"
#include "../core/grown_segment.h"
#include "../demand/warm.h"
#include "../keeper/exclusive.h"
#include "../keeper/resync.h"
#include "../core/cancel.h"

#include <assert.h>

/* Returns true if W mirrors hold the record that destroyed the segments in p->destroyed. Needs
 * admin. */
static bool is_destroy_durable(struct perseas *p)
{
	bool held;

	pthread_mutex_lock(&p->lock);
	held = ps_w_mirrors_hold(p, p->destroyed.destroyed_by_seq);
	pthread_mutex_unlock(&p->lock);
	return held;
}

int ps_free_destroyed_segments_on_mirrors(struct perseas *p)
{
	ps_assert_admin(p);
	if (!p->destroyed.count)
		return 0;
	if (!is_destroy_durable(p))
		return ps_fail(p, PERSEAS_EBLOCKED,
		               "too few mirrors hold that a segment of store '%s' was destroyed: "
		               "try again when perseas_flush returns 0",
		               p->store);
	while (p->destroyed.count)
		ps_map_drop_segment_on_mirrors(p, p->destroyed.ids[--p->destroyed.count]);
	return 0;
}

/* Tells every live mirror that the record `seq` will destroy these segments. */
static void announce_destroy(struct perseas *p, uint32_t *ids, unsigned count, uint64_t seq)
{
	Perseas__DestroyRequest destroy = PERSEAS__DESTROY_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(destroy, DESTROY, &destroy);

	destroy.n_ids = count;
	destroy.ids = ids;
	destroy.seq = seq;
	ps_map_send_to_live_mirrors(p, &request);
}

/* Removes a segment that the record `seq` destroys from the handle. This cannot be undone. */
static void forget_destroyed_segment(struct perseas *p, struct ps_segment *segment, uint64_t seq)
{
	assert(p->destroyed.count < PS_SEGMENTS_MAX && !segment->base);
	p->destroyed.ids[p->destroyed.count++] = segment->id;
	p->destroyed.destroyed_by_seq = seq;
	p->upkeep.publish_generation++;
	/* A standby's copy of the segment is obsolete, even if it would only be read later. */
	ps_warm_stop_using_segment(p->warm_copy, segment->id);
	pthread_mutex_lock(&p->lock);
	ps_segment_forget(p, segment);
	pthread_mutex_unlock(&p->lock);
}

static int check_can_destroy(struct perseas *p, const char *name, struct ps_segment *segment)
{
	if (!segment)
		return ps_fail(p, PERSEAS_ENOSEGMENT, "store '%s' has no segment '%s'", p->store,
		               name);
	if (ps_grown_previous_part(p, segment))
		return ps_fail(p, PERSEAS_EINVAL,
		               "'%s' is a part of a segment that has grown: destroy that segment, "
		               "and its parts go with it",
		               name);
	if (segment->base)
		return ps_fail(p, PERSEAS_ECONFLICT,
		               "segment '%s' is mapped: unmap it before it is destroyed",
		               segment->name);
	return 0;
}

/* Fails if the mirrors cannot take a record that destroys segments now. */
static int check_mirrors_can_destroy(struct perseas *p)
{
	static const struct ps_outgoing none = { .span_count = 0 };
	int rc = ps_free_destroyed_segments_on_mirrors(p);

	if (!rc)
		rc = ps_commit_reserve_chain(p, &none);
	if (rc)
		return rc;
	if (!ps_quorum_is_w(p, ps_mirrors_with_whole_image(p)))
		return ps_fail(p, PERSEAS_EUNREACHABLE,
		               "only %u of %u mirrors are whole, and %u must be: nothing is "
		               "destroyed",
		               ps_quorum_count_settled_members(p, ps_mirrors_with_whole_image(p)),
		               p->member_count, p->acks);
	return 0;
}

/* Destroys the segments, which must be unmapped. Every step that can fail comes before this call:
 * once a mirror was told the seq, no other record may use it. */
static int destroy_unmapped_segments(struct perseas *p, uint32_t *ids, unsigned count,
                                     uint64_t *seq)
{
	ps_assert_admin(p);
	/* Copies to mirrors begin again, because an incomplete image may have parts of these
	 * segments. This comes after every check that may refuse the call: the next call may need
	 * such a copy to complete. */
	ps_resync_restart(p, "it begins again: a segment was destroyed");
	*seq = p->commit.seq + 1;
	for (unsigned i = 0; i < count; i++)
		forget_destroyed_segment(p, ps_segment_by_id(p, ids[i]), *seq);
	announce_destroy(p, ids, count, *seq);
	return ps_map_post_segment_record(p, PS_RECORD_DESTROY, ids, count);
}

static int destroy_segment_by_name(struct perseas *p, const char *name, uint64_t *seq)
{
	struct ps_segment *segment = ps_segment_by_name(p, name);
	uint32_t ids[PS_SEGMENTS_MAX];
	int rc = check_can_destroy(p, name, segment);

	if (!rc)
		rc = check_mirrors_can_destroy(p);
	/* One record destroys all parts: with several, a new owner could find only some of them. */
	return rc ? rc : destroy_unmapped_segments(p, ids, ps_grown_part_ids(p, segment, ids), seq);
}

/* --- segments that are mapped --- */

/* Hides the segments, then unmaps them. Only hiding can fail. The layout hides them from set_range;
 * ps_segment_move_memory hides them from transactions that track their changes, which read every
 * segment under p->lock. */
static int hide_and_unmap_segments(struct perseas *p, const struct ps_destroy_set *destroy_set)
{
	struct ps_segment hidden[PS_SEGMENTS_MAX];
	int rc;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < destroy_set->count; i++)
		ps_segment_move_memory(p, ps_segment_by_id(p, destroy_set->ids[i]), &hidden[i]);
	rc = ps_layout_refresh(p);
	for (unsigned i = 0; rc && i < destroy_set->count; i++)
		*ps_segment_by_id(p, destroy_set->ids[i]) = hidden[i];
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; !rc && i < destroy_set->count; i++) {
		ps_demand_unmap(p, &hidden[i]);
		ps_segment_unmap(&hidden[i]);
	}
	return rc;
}

static int destroy_mapped_set(struct perseas *p, struct ps_destroy_set *destroy_set, uint64_t *seq)
{
	int rc = check_mirrors_can_destroy(p);

	ps_assert_admin(p);
	if (rc)
		return rc;
	destroy_set->choose(destroy_set, destroy_set->arg);
	if (!destroy_set->count)
		return 0;
	rc = hide_and_unmap_segments(p, destroy_set);
	if (!rc)
		return destroy_unmapped_segments(p, destroy_set->ids, destroy_set->count, seq);
	destroy_set->undo_choose(destroy_set->arg);
	return rc;
}

/* Has mirrors free the memory of destroyed segments. If this fails, they free it when they are
 * claimed next. */
static void free_destroyed_on_mirrors(struct perseas *p)
{
	ps_exclusive_enter(p);
	if (!ps_map_check_can_change_segments(p))
		(void)ps_free_destroyed_segments_on_mirrors(p);
	ps_exclusive_leave(p);
}

void ps_map_free_destroyed_on_mirrors(struct perseas *p)
{
	bool any;

	ps_admin_enter(p);
	any = p->destroyed.count > 0 && is_destroy_durable(p);
	ps_admin_leave(p);
	/* Stop commits (ps_exclusive_enter) only if there is something to free. */
	if (any)
		free_destroyed_on_mirrors(p);
}

static int await_destroy_and_free(struct perseas *p, int rc, uint64_t seq)
{
	rc = ps_map_await_durable(p, rc, seq);
	if (!rc && seq)
		free_destroyed_on_mirrors(p);
	return rc;
}

int ps_map_destroy_set(struct perseas *p, struct ps_destroy_set *destroy_set)
{
	uint64_t seq = 0;
	int rc = p->is_salvage ? ps_check_may_transact(p) : ps_map_check_can_change_segments(p);

	if (rc)
		return rc;
	ps_exclusive_enter(p);
	rc = ps_map_check_can_change_segments(p);
	if (!rc)
		rc = destroy_mapped_set(p, destroy_set, &seq);
	ps_exclusive_leave(p);
	return await_destroy_and_free(p, rc, seq);
}

int perseas_segment_destroy(perseas_t *p, const char *segment)
{
	PS_UNCANCELLED;
	uint64_t seq = 0;
	int rc;

	if (!p || !segment || !ps_name_valid(segment))
		return ps_fail(p, PERSEAS_EINVAL,
		               "destroy needs a handle and the name of a segment");
	rc = p->is_salvage ? ps_check_may_transact(p) : ps_map_check_can_change_segments(p);
	if (rc)
		return rc;
	ps_exclusive_enter(p);
	rc = ps_map_check_can_change_segments(p);
	if (!rc)
		rc = destroy_segment_by_name(p, segment, &seq);
	ps_exclusive_leave(p);
	return await_destroy_and_free(p, rc, seq);
}
