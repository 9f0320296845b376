/*
 * map.c - perseas_map and perseas_map_at (PERSEAS_malloc, PERSEAS section 3), and the creation of
 * new segments for the heap and for growing ones.
 *
 * Mapping a new segment only has mirrors reserve memory for it. Publishing it (publish.c) makes it
 * a part of the store. If the owner dies in between, the next claim frees the memory.
 */
#include "map.h"

#include "segment_destroy.h"
#include "placement.h"
#include "publish.h"
#include "../core/commit.h"
#include "../core/demand.h"
#include "../keeper/copy.h"
#include "../keeper/exclusive.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "../core/segment.h"
#include "../core/shadow.h"
#include "../core/tx.h"
#include "../core/grown_segment.h"
#include "../../proto/control/segment_parts.h"
#include "../keeper/rpc.h"
#include "../core/cancel.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void ps_map_drop_segment_on_mirrors(struct perseas *p, uint32_t id)
{
	Perseas__DropSegmentsRequest drop = PERSEAS__DROP_SEGMENTS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(drop_segments, DROP_SEGMENTS, &drop);

	drop.n_ids = 1;
	drop.ids = &id;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		struct ps_error error;
		Perseas__Reply *reply;
		int fds[PS_REGIONS_MAX];

		if (!m->is_active ||
		    ps_ask_mirror_and_wait(p, m, &request,
		                           ps_now(p) + ps_ms(p->options.connect_timeout_ms), &reply,
		                           fds, &error))
			continue;
		ps_mirror_regrant(p, m, reply->drop_segments->grant, fds, &error);
		perseas__reply__free_unpacked(reply, NULL);
	}
}

static void break_mirror_link(struct perseas *p, struct ps_mirror *m, const char *why)
{
	pthread_mutex_lock(&p->lock);
	if (m->is_active)
		ps_mirror_break_link(p, m, PS_LINK_BROKEN, why);
	pthread_mutex_unlock(&p->lock);
}

/* Has every live mirror reserve memory for the segment. Drops mirrors that do not answer. If one
 * refuses for lack of memory, fails for all. */
static int reserve_segment_on_mirrors(struct perseas *p, struct ps_segment *segment)
{
	Perseas__AddSegmentsRequest add = PERSEAS__ADD_SEGMENTS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(add_segments, ADD_SEGMENTS, &add);
	Perseas__Segment message, *list = &message;
	struct ps_error last = { 0 };
	uint32_t made = 0;

	ps_segment_fill_message(segment, &message);
	add.n_segments = 1;
	add.segments = &list;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		struct ps_error error = { 0 };
		Perseas__Reply *reply;
		int fds[PS_REGIONS_MAX], rc;

		if (!m->is_active)
			continue;
		rc = ps_ask_mirror_and_wait(p, m, &request,
		                            ps_now(p) + ps_ms(p->options.connect_timeout_ms),
		                            &reply, fds, &error);
		if (!rc) {
			rc = ps_mirror_regrant(p, m, reply->add_segments->grant, fds, &error);
			perseas__reply__free_unpacked(reply, NULL);
		}
		if (rc == PERSEAS_EMIRRORMEM || rc == PERSEAS_ELIMIT)
			return ps_fail_error(p, &error);
		if (rc) {
			break_mirror_link(p, m, error.text);
			last = error;
		} else {
			made |= ps_mirror_bit(p, m);
		}
	}
	if (!ps_quorum_is_w(p, made & ps_mirrors_with_whole_image(p)))
		return ps_fail(p, PERSEAS_EUNREACHABLE,
		               "only %u of %u mirrors could make segment '%s', and %u must hold "
		               "it%s%s",
		               ps_quorum_count_settled_members(p, made), p->member_count,
		               segment->name, p->acks, last.text[0] ? "; of the others: " : "",
		               last.text);
	return 0;
}

static const struct ps_placement recorded_placement = { .where = PS_PLACE_RECORDED };

static int map_new_segment(struct perseas *p, const char *name, uint64_t size,
                           const struct ps_placement *placement, struct ps_segment **mapped)
{
	struct ps_segment *segment;
	int rc = ps_free_destroyed_segments_on_mirrors(p);

	if (rc)
		return rc;
	pthread_mutex_lock(&p->lock);
	segment = ps_segment_add(p, name, size);
	pthread_mutex_unlock(&p->lock);
	if (!segment)
		return ps_fail(p, PERSEAS_ELIMIT,
		               "store '%s' has %d segments, and can have no more", p->store,
		               PS_SEGMENTS_MAX);
	rc = ps_place_new_segment(p, segment, placement);
	if (!rc)
		rc = reserve_segment_on_mirrors(p, segment);
	if (!rc)
		rc = ps_layout_refresh(p);
	if (rc) {
		ps_map_drop_segment_on_mirrors(p, segment->id);
		pthread_mutex_lock(&p->lock);
		ps_segment_forget(p, segment);
		pthread_mutex_unlock(&p->lock);
		return rc;
	}
	*mapped = segment;
	return 0;
}

static void undo_map_existing(struct perseas *p, const struct ps_segment *segment,
                              const struct ps_placement *placement)
{
	struct ps_segment hidden[PS_SEGMENTS_MAX];
	uint32_t ids[PS_SEGMENTS_MAX];
	const unsigned count = ps_grown_part_ids(p, segment, ids);

	pthread_mutex_lock(&p->lock);
	ps_map_hide_segments(p, ids, count, hidden);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < count; i++) {
		ps_demand_unmap(p, ps_segment_by_id(p, ids[i]));
		if (placement->where == PS_PLACE_OVER)
			hidden[i].base = NULL; /* the memory belongs to the caller again */
		ps_segment_unmap(&hidden[i]);
	}
}

/* Makes the contents and the shadow of a mapped segment available: on demand if the handle can
 * fetch memory later, otherwise by copying all of it before this returns. */
static int make_contents_available(struct perseas *p, struct ps_segment *segment)
{
	uint8_t *room;
	int rc = ps_shadow_reserve(p, segment, &room);

	if (rc)
		return rc;
	if (ps_demand_map(p, segment, room)) {
		ps_shadow_install(p, segment, room, p->written != NULL);
		return 0;
	}
	ps_shadow_free_room(segment, room);
	rc = ps_copy_segment_from_mirror(p, segment);
	return rc ? rc : ps_shadow_make_from_memory(p, segment);
}

/* Maps an existing segment and all of its parts, or none of them. */
static int map_existing(struct perseas *p, struct ps_segment *segment,
                        const struct ps_placement *placement)
{
	int rc = ps_place_existing_segment(p, segment, placement);

	if (rc)
		return rc;
	for (struct ps_segment *s = segment; s && !rc; s = ps_grown_next_part(p, s))
		rc = make_contents_available(p, s);
	if (!rc)
		rc = ps_layout_refresh(p);
	if (rc)
		undo_map_existing(p, segment, placement);
	return rc;
}

static int check_map_request(struct perseas *p, const char *name, const struct ps_segment *segment,
                             uint64_t size, const struct ps_placement *placement)
{
	const uint64_t whole = segment ? ps_grown_size(p, segment) : 0;
	const struct ps_segment *before = segment ? ps_grown_previous_part(p, segment) : NULL;

	if (before)
		return ps_fail(p, PERSEAS_EINVAL,
		               "'%s' is a part of a segment that has grown, behind '%s': map that "
		               "segment, and its parts are mapped with it",
		               name, before->name);
	if (!segment && ps_segment_part_is_name(name) && placement->where != PS_PLACE_BEHIND)
		return ps_fail(p, PERSEAS_EINVAL,
		               "'%s': names that end with .grown.NUMBER are those of parts of "
		               "segments that have grown: choose another one",
		               name);
	if (segment && size && size != whole && !placement->accepts_any_size)
		return ps_fail(p, PERSEAS_ESIZE,
		               "segment '%s' has %llu bytes, not %llu: map it with size 0, or "
		               "use another name%s",
		               name, (unsigned long long)whole, (unsigned long long)size,
		               size > whole ? "; perseas_segment_grow makes it larger" : "");
	return 0;
}

/* Maps the segment, and creates it if it does not exist. Sets *mapped only if it returns 0. */
static int map_or_create_segment(struct perseas *p, const char *name, uint64_t size,
                                 const struct ps_placement *placement, struct ps_segment **mapped)
{
	struct ps_segment *segment = ps_segment_by_name(p, name);
	int rc;

	ps_assert_admin(p);
	rc = check_map_request(p, name, segment, size, placement);
	if (rc)
		return rc;
	if (segment) {
		rc = segment->base ? ps_place_check_mapped(p, segment, placement)
		                   : map_existing(p, segment, placement);
		if (!rc)
			*mapped = segment;
		return rc;
	}
	if (!size)
		return ps_fail(p, PERSEAS_ENOSEGMENT,
		               "store '%s' has no segment '%s': give a size to make it", p->store,
		               name);
	if (p->is_salvage)
		return ps_check_may_transact(p);
	return map_new_segment(p, name, size, placement, mapped);
}

int ps_map_check_can_change_segments(struct perseas *p)
{
	int rc;

	pthread_mutex_lock(&p->lock);
	rc = p->is_salvage ? 0 : ps_check_may_transact(p);
	if (!rc && p->is_renewing)
		rc = ps_fail_renewing(p);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

static int check_arguments(struct perseas *p, const char *segment, size_t size,
                           const struct ps_placement *placement)
{
	if (!segment || !ps_name_valid(segment) || size > PS_SEGMENT_MAX)
		return ps_fail(p, PERSEAS_EINVAL,
		               "a segment's name is 1 to 63 of A-Z a-z 0-9 . _ -, not beginning "
		               "with a dot; its size is at most 1 TiB");
	if (placement->address % PS_PAGE ||
	    placement->address > UINT64_MAX - PS_SEGMENT_MAX - PS_PAGE)
		return ps_fail(
			p, PERSEAS_EINVAL,
			"address 0x%llx is not a multiple of %d, or leaves no room for a segment",
			(unsigned long long)placement->address, PS_PAGE);
	return ps_map_check_can_change_segments(p);
}

int ps_map_with_placement(perseas_t *p, const char *name, size_t size,
                          const struct ps_placement *placement, void **addr, ptrdiff_t *moved,
                          size_t *whole)
{
	struct ps_segment *segment = NULL;
	int rc;

	if (moved)
		*moved = 0;
	if (!p || !addr)
		return ps_fail(p, PERSEAS_EINVAL, "map needs a handle and a place for the address");
	*addr = NULL;
	rc = check_arguments(p, name, size, placement);
	if (rc)
		return rc;
	ps_exclusive_enter(p);
	rc = ps_map_check_can_change_segments(p);
	if (!rc)
		rc = map_or_create_segment(p, name, size, placement, &segment);
	assert(rc || segment);
	if (!rc) {
		segment->heap_count += placement->is_for_heap;
		*addr = segment->base;
		if (whole)
			*whole = ps_grown_size(p, segment);
		if (moved)
			*moved = (ptrdiff_t)(ps_segment_start_address(segment) - segment->address);
	}
	ps_exclusive_leave(p);
	return p->is_salvage ? rc : ps_judge_failed_session(p, rc);
}

int perseas_map(perseas_t *p, const char *segment, size_t size, void **addr)
{
	PS_UNCANCELLED;
	return ps_map_with_placement(p, segment, size, &recorded_placement, addr, NULL, NULL);
}

int perseas_map_at(perseas_t *p, const char *segment, size_t size, void *at, void **addr,
                   ptrdiff_t *moved)
{
	PS_UNCANCELLED;
	const struct ps_placement placement = { .where = at ? PS_PLACE_AT : PS_PLACE_ANY,
		                                .address = (uint64_t)(uintptr_t)at };

	return ps_map_with_placement(p, segment, size, &placement, addr, moved, NULL);
}

int perseas_map_over(perseas_t *p, const char *segment, void *retained)
{
	PS_UNCANCELLED;
	const struct ps_placement placement = { .where = PS_PLACE_OVER,
		                                .address = (uint64_t)(uintptr_t)retained };
	void *addr;

	if (!retained)
		return ps_fail(p, PERSEAS_EINVAL, "there is no memory at NULL to map over");
	return ps_map_with_placement(p, segment, 0, &placement, &addr, NULL, NULL);
}

int ps_map_for_heap(struct perseas *p, const char *segment, bool anywhere, void **addr)
{
	const struct ps_placement placement = { .where = anywhere ? PS_PLACE_ANY
		                                                  : PS_PLACE_RECORDED,
		                                .is_for_heap = true };

	return ps_map_with_placement(p, segment, 0, &placement, addr, NULL, NULL);
}

void ps_map_send_to_live_mirrors(struct perseas *p, const Perseas__Request *request)
{
	struct ps_round round;

	memset(round.errors, 0, sizeof(round.errors));
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		round.is_asked[i] = i < p->mirror_count && p->mirrors[i].is_active;
		round.requests[i] = request;
	}
	ps_round_run(p, &round, ps_now(p) + ps_ms(p->options.connect_timeout_ms));
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (round.is_asked[i] && !round.replies[i])
			break_mirror_link(p, &p->mirrors[i], round.errors[i].text);
	ps_round_free(&round);
}

int ps_map_drop_unpublished(struct perseas *p, struct ps_segment *segment)
{
	uint8_t *base = segment->base;
	int rc;

	segment->base = NULL;
	rc = ps_layout_refresh(p);
	segment->base = base;
	if (rc)
		return rc;
	ps_map_drop_segment_on_mirrors(p, segment->id);
	pthread_mutex_lock(&p->lock);
	ps_segment_forget(p, segment);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* Unmaps and drops the segments of `new_segments` that were not published. If there is no memory
 * for a new layout, they stay until perseas_unmap or close. */
static void drop_unpublished_segments(struct perseas *p, const struct ps_new_segments *new_segments)
{
	for (unsigned i = 0; i < new_segments->count; i++) {
		struct ps_segment *segment = ps_segment_by_name(p, new_segments->segments[i].name);

		if (segment && !segment->born)
			(void)ps_map_drop_unpublished(p, segment);
	}
}

/* Fails if a segment of `new_segments` exists already: another caller made it, so it must be
 * neither filled nor dropped. */
static int check_new_names_free(struct perseas *p, const struct ps_new_segments *new_segments)
{
	for (unsigned i = 0; i < new_segments->count; i++)
		if (ps_segment_by_name(p, new_segments->segments[i].name))
			return ps_fail(p, PERSEAS_EEXIST,
			               "segment '%s' cannot be created: store '%s' already has one",
			               new_segments->segments[i].name, p->store);
	return 0;
}

static int map_fill_and_publish(struct perseas *p, struct ps_new_segments *new_segments,
                                uint64_t *seq)
{
	struct ps_segment *segment = NULL;
	int rc = check_new_names_free(p, new_segments);

	if (rc)
		return rc;
	for (unsigned i = 0; i < new_segments->count && !rc; i++) {
		rc = map_or_create_segment(p, new_segments->segments[i].name,
		                           new_segments->segments[i].size,
		                           new_segments->placement ? new_segments->placement
		                                                   : &recorded_placement,
		                           &segment);
		assert(rc || segment);
		if (!rc)
			new_segments->segments[i].addr = segment->base;
	}
	if (!rc) {
		new_segments->fill(new_segments, new_segments->arg);
		rc = ps_publish_send_and_record(p, new_segments, seq);
	}
	if (*seq)
		new_segments->on_published(new_segments, new_segments->arg);
	else
		drop_unpublished_segments(p, new_segments);
	return rc;
}

int ps_map_create_and_publish_segments(struct perseas *p, struct ps_new_segments *new_segments)
{
	uint64_t seq = 0;
	int rc = p->is_salvage ? ps_check_may_transact(p) : ps_map_check_can_change_segments(p);

	if (rc)
		return rc;
	ps_exclusive_enter(p);
	rc = ps_map_check_can_change_segments(p);
	if (!rc && new_segments->is_wanted(new_segments->arg))
		rc = map_fill_and_publish(p, new_segments, &seq);
	ps_exclusive_leave(p);
	return ps_map_await_durable(p, rc, seq);
}
