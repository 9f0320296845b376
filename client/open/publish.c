/*
 * publish.c - perseas_publish (PERSEAS_init_remote_db, PERSEAS section 3): sends the first contents
 * of segments to the mirrors, and makes the segments a part of the store by one record. It must
 * never change the layout after the seq of a publish was announced to a mirror.
 */
#include "publish.h"

#include "map.h"
#include "../core/cancel.h"
#include "../core/commit.h"
#include "../core/mirror.h"
#include "../core/nowait.h"
#include "../core/quorum.h"
#include "../core/segment.h"
#include "../core/shadow.h"
#include "../keeper/copy.h"
#include "../keeper/exclusive.h"
#include "../../proto/control/segment_parts.h"

#include <string.h>

/* Tells every live mirror that the record `seq` will publish these segments. */
static void announce_publish(struct perseas *p, uint32_t *ids, unsigned count, uint64_t seq)
{
	Perseas__PublishRequest publish = PERSEAS__PUBLISH_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(publish, PUBLISH, &publish);

	publish.n_ids = count;
	publish.ids = ids;
	publish.seq = seq;
	ps_map_send_to_live_mirrors(p, &request);
}

int ps_map_post_segment_record(struct perseas *p, enum ps_record_kind kind, const uint32_t *ids,
                               unsigned count)
{
	struct {
		struct ps_record head;
		struct ps_range ranges[PS_SEGMENTS_MAX];
		uint8_t slack[PS_RECORD_SLACK];
	} record;
	struct ps_range *ranges = record.ranges;
	struct ps_outgoing out = { .record = &record.head };
	int rc;

	memset(&record, 0, sizeof(record));
	out.record_length = sizeof(struct ps_record) + count * sizeof(struct ps_range);
	for (unsigned i = 0; i < count; i++)
		ranges[i].segment = ids[i];
	out.range_count = count;
	out.record_kind = kind;
	out.entry_length = ps_entry_length(out.record_length, 0, 0);
	pthread_mutex_lock(&p->lock);
	rc = ps_commit_send(p, &out);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* Marks the segments as published by `seq`, or as unpublished again if seq is 0. No commit can run
 * meanwhile. */
static int set_published_seq(struct perseas *p, const uint32_t *ids, unsigned count, uint64_t seq)
{
	int rc = 0;

	ps_assert_admin(p);
	p->upkeep.publish_generation++;
	for (unsigned i = 0; i < count; i++) {
		struct ps_segment *segment = ps_segment_by_id(p, ids[i]);

		segment->born = seq;
		if (seq && !rc)
			rc = ps_shadow_make_from_memory(p, segment);
	}
	return rc ? rc : ps_layout_refresh(p);
}

static bool is_one_of_new_segments(const struct ps_new_segments *new_segments,
                                   const struct ps_segment *segment)
{
	for (unsigned i = 0; i < new_segments->count; i++)
		if (!strcmp(new_segments->segments[i].name, segment->name))
			return true;
	return false;
}

/* new_segments NULL: perseas_publish, which includes all unpublished segments except parts of
 * others. */
static bool is_in_publish(const struct ps_new_segments *new_segments,
                          const struct ps_segment *segment)
{
	if (segment->born)
		return false;
	return new_segments ? is_one_of_new_segments(new_segments, segment)
	                    : !ps_segment_part_is_name(segment->name);
}

/* Sets ids[] to the segments of the publish, and returns their number. */
static unsigned list_segments_to_publish(struct perseas *p,
                                         const struct ps_new_segments *new_segments, uint32_t *ids)
{
	unsigned count = 0;

	for (unsigned i = 0; i < p->segment_count; i++)
		if (is_in_publish(new_segments, &p->segments[i]))
			ids[count++] = p->segments[i].id;
	return count;
}

int ps_publish_send_contents(struct perseas *p, const struct ps_new_segments *new_segments)
{
	uint32_t ids[PS_SEGMENTS_MAX];
	const unsigned count = list_segments_to_publish(p, new_segments, ids);
	int rc = 0;

	for (unsigned i = 0; i < count && !rc; i++)
		rc = ps_copy_segment_to_mirrors(p, ps_segment_by_id(p, ids[i]));
	return rc;
}

int ps_publish_record(struct perseas *p, const struct ps_new_segments *new_segments, uint64_t *seq)
{
	uint32_t ids[PS_SEGMENTS_MAX];
	const unsigned count = list_segments_to_publish(p, new_segments, ids);
	int rc;

	*seq = 0;
	if (!count)
		return 0;
	if (!ps_quorum_is_w(p, ps_mirrors_with_whole_image(p)))
		return ps_fail(p, PERSEAS_EUNREACHABLE,
		               "only %u of %u mirrors took the contents, and %u must hold them: "
		               "nothing is published",
		               ps_quorum_count_settled_members(p, ps_mirrors_with_whole_image(p)),
		               p->member_count, p->acks);
	/* Every step that can fail comes before the announcement: afterwards no other record may
	 * use this seq. */
	rc = set_published_seq(p, ids, count, p->commit.seq + 1);
	if (rc) {
		set_published_seq(p, ids, count, 0);
		return rc;
	}
	*seq = p->commit.seq + 1;
	announce_publish(p, ids, count, *seq);
	return ps_map_post_segment_record(p, PS_RECORD_PUBLISH, ids, count);
}

int ps_publish_send_and_record(struct perseas *p, const struct ps_new_segments *new_segments,
                               uint64_t *seq)
{
	int rc = ps_publish_send_contents(p, new_segments);

	*seq = 0;
	return rc ? rc : ps_publish_record(p, new_segments, seq);
}

int ps_map_await_durable(struct perseas *p, int rc_before, uint64_t seq)
{
	uint64_t since = 0;
	int rc;

	if (rc_before || !seq)
		return ps_judge_failed_session(p, rc_before);
	pthread_mutex_lock(&p->lock);
	rc = ps_commit_await_w_mirrors(p, seq, &since);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* A seq that W mirrors held once stays durable, even while one of them is being copied anew. */
int ps_map_await_ever_durable(struct perseas *p, uint64_t seq)
{
	bool durable;

	pthread_mutex_lock(&p->lock);
	durable = ps_update_durable_seq(p) >= seq;
	pthread_mutex_unlock(&p->lock);
	return durable ? 0 : ps_map_await_durable(p, 0, seq);
}

/* Returns the seq of the newest publish. */
static uint64_t last_published_seq(const struct perseas *p)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < p->segment_count; i++)
		last = p->segments[i].born > last ? p->segments[i].born : last;
	return last;
}

int perseas_publish(perseas_t *p)
{
	PS_UNCANCELLED;
	uint64_t seq = 0, before = 0;
	int rc;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "p is NULL");
	rc = p->is_salvage ? ps_check_may_transact(p) : ps_map_check_can_change_segments(p);
	if (rc)
		return rc;
	ps_exclusive_enter(p);
	rc = ps_map_check_can_change_segments(p);
	if (!rc)
		rc = ps_publish_send_and_record(p, NULL, &seq);
	if (!rc && !seq)
		before = last_published_seq(p);
	ps_exclusive_leave(p);
	/* Another thread may have published this thread's segments, and may still wait for
	 * mirrors. */
	return before ? ps_map_await_ever_durable(p, before) : ps_map_await_durable(p, rc, seq);
}
