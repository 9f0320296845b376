/*
 * grown_segment.c - see grown_segment.h. Code that maps, grows, unmaps and destroys segments calls
 * it, with admin. Few segments have parts, so each call searches the table of segments.
 */
#include "grown_segment.h"

#include "../../proto/control/segment_parts.h"

static bool is_part_right_behind(const struct ps_segment *segment, const struct ps_segment *before)
{
	return ps_segment_part_follows(segment->name, segment->address, before->name,
	                               before->address + before->size);
}

struct ps_segment *ps_grown_next_part(struct perseas *p, const struct ps_segment *segment)
{
	for (unsigned i = 0; i < p->segment_count; i++)
		if (is_part_right_behind(&p->segments[i], segment))
			return &p->segments[i];
	return NULL;
}

struct ps_segment *ps_grown_previous_part(struct perseas *p, const struct ps_segment *segment)
{
	for (unsigned i = 0; ps_segment_part_is_name(segment->name) && i < p->segment_count; i++)
		if (is_part_right_behind(segment, &p->segments[i]))
			return &p->segments[i];
	return NULL;
}

struct ps_segment *ps_grown_head(struct perseas *p, struct ps_segment *segment)
{
	struct ps_segment *before;

	/* This loop ends, since the numbers of the parts decrease. */
	while ((before = ps_grown_previous_part(p, segment)))
		segment = before;
	return segment;
}

uint64_t ps_grown_size(struct perseas *p, const struct ps_segment *head)
{
	uint64_t size = head->size;

	while ((head = ps_grown_next_part(p, head)))
		size += head->born ? head->size : 0;
	return size;
}

unsigned ps_grown_part_ids(struct perseas *p, const struct ps_segment *head,
                           uint32_t ids[PS_SEGMENTS_MAX])
{
	unsigned count = 0;

	for (; head; head = ps_grown_next_part(p, head))
		ids[count++] = head->id;
	return count;
}
