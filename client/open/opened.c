/*
 * opened.c - see opened.h. ps_open_filling is in open.c.
 */
#include "opened.h"

#include "examine.h"
#include "publish.h"
#include "../core/handle.h"
#include "../core/segment.h"
#include "../keeper/change.h"
#include "../keeper/copy.h"
#include "../keeper/exclusive.h"

#include <assert.h>
#include <string.h>

void ps_opened_read(perseas_t *p, struct ps_opened *opened)
{
	const struct ps_image_position *newest;

	ps_admin_enter(p);
	newest = ps_newest_state(p);
	*opened = (struct ps_opened){
		.log_size = p->log_size,
		.members = p->member_count,
		.acks = p->acks,
		.state_epoch = newest ? newest->epoch : 0,
		.state_seq = newest ? newest->seq : 0,
		.sent_bytes = p->upkeep.change.copy.sent_bytes,
		.whole_reason = p->upkeep.change.copy.whole_reason
		                        ? p->upkeep.change.copy.whole_reason->name
		                        : "",
	};
	memcpy(opened->store_id, p->store_id, PS_ID_SIZE);
	ps_admin_leave(p);
}

uint32_t ps_opened_segment_id(perseas_t *p, const char *name)
{
	const struct ps_segment *segment;
	uint32_t id;

	ps_admin_enter(p);
	segment = ps_segment_by_name(p, name);
	assert(segment);
	id = segment->id;
	ps_admin_leave(p);
	return id;
}

int ps_opened_send_segments(perseas_t *p, bool (*stop)(void))
{
	int rc = ps_map_check_can_change_segments(p);

	if (rc)
		return rc;
	ps_copy_set_stop(stop);
	ps_exclusive_enter(p);
	rc = ps_map_check_can_change_segments(p);
	if (!rc)
		rc = ps_publish_send_contents(p, NULL);
	if (rc)
		ps_exclusive_leave(p);
	return ps_judge_failed_session(p, rc);
}

void ps_opened_cancel_send(perseas_t *p)
{
	ps_exclusive_leave(p);
}

int ps_opened_publish(perseas_t *p)
{
	uint64_t seq;
	int rc = ps_publish_record(p, NULL, &seq);

	ps_exclusive_leave(p);
	rc = ps_map_await_durable(p, rc, seq);
	if (rc == PERSEAS_EINDOUBT)
		rc = perseas_flush(p);
	/* No record is in flight once this thread has exclusive use of the links. */
	ps_exclusive_enter(p);
	ps_exclusive_leave(p);
	return rc;
}

int ps_opened_change_roster(perseas_t *p, const struct perseas_roster_change *change,
                            uint32_t wait_ms, bool (*stop)(void))
{
	return ps_roster_change_until(p, change, ps_now(p) + ps_ms(wait_ms), stop);
}
