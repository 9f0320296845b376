/*
 * mistakes_grow.c - faults in how segments grow. mistakes.c and schedule.c call these; without its
 * mistake none changes anything.
 */
#include "mistakes.h"

#include "../../client/core/handle.h"
#include "../../proto/control/segment_parts.h"
#include "../../server/store/store_private.h"
#include "mirror.h"

bool sim_mistake_grows(const struct sim_world *w)
{
	return w->mistake == SIM_MISTAKE_GROWN_EARLY || w->mistake == SIM_MISTAKE_NOT_ZEROS;
}

/* Memory of a part is given out as somebody else left it. */
void sim_mistake_after_growth(struct ps_control *control, const struct sim_message *message)
{
	const struct session *session = &control->server.session;
	const Perseas__Header *header;

	if (!sim_mistake_is(control->mirror->world, SIM_MISTAKE_NOT_ZEROS) ||
	    message->a != PERSEAS__REQUEST__BODY_ADD_SEGMENTS || !session->store)
		return;
	header = session_header((struct session *)session);
	for (size_t i = 0; i < header->n_segments; i++) {
		const Perseas__Segment *s = header->segments[i];
		const struct piece *piece = &session_image((struct session *)session)
		                                     ->regions[PS_REGION_SEGMENT + s->id];

		if (!s->born && ps_segment_part_is_name(s->name) && piece->base)
			memset(piece->base, 0xa5, s->size);
	}
}

/* Nor is it overwritten. */
bool sim_mistake_unsent(const struct ps_link *link, const struct ps_chain *chain)
{
	struct perseas *p = link->owner->handle;
	const struct ps_segment *segment;

	if (!sim_mistake_is(link->owner->world, SIM_MISTAKE_NOT_ZEROS) || !p ||
	    chain->undo_write_count || chain->slot.length || !chain->write_count ||
	    chain->writes[0].region < PS_REGION_SEGMENT)
		return false;
	segment = ps_segment_by_id(p, chain->writes[0].region - PS_REGION_SEGMENT);
	return segment && !segment->born && ps_segment_part_is_name(segment->name);
}
