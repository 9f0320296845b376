/*
 * segment_lookup.c - the handle's table of segments: lookups, and comparison with a mirror's
 * header. segment.c maps the segments' memory.
 */
#include "segment.h"

#include "../../proto/control/envelope.h"
#include "../../proto/control/segment_table.h"

#include <stdio.h>
#include <string.h>

struct ps_segment *ps_segment_by_name(struct perseas *p, const char *name)
{
	for (unsigned i = 0; i < p->segment_count; i++)
		if (!strcmp(p->segments[i].name, name))
			return &p->segments[i];
	return NULL;
}

struct ps_segment *ps_segment_by_id(struct perseas *p, uint32_t id)
{
	for (unsigned i = 0; i < p->segment_count; i++)
		if (p->segments[i].id == id)
			return &p->segments[i];
	return NULL;
}

struct ps_segment_key ps_segment_key(const struct ps_segment *segment)
{
	return ps_segment_key_of(segment->id, segment->name, segment->size, segment->address,
	                         segment->born, segment->random_id);
}

bool ps_segments_match_header(const struct perseas *p, const Perseas__Header *header)
{
	size_t published = 0;

	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment_key key = ps_segment_key(&p->segments[i]);

		if (!key.born)
			continue;
		if (!ps_segment_table_has(header, &key))
			return false;
		published++;
	}
	return published == header->n_segments;
}

void ps_segment_fill_message(struct ps_segment *segment, Perseas__Segment *message)
{
	perseas__segment__init(message);
	message->id = segment->id;
	message->name = segment->name;
	message->size = segment->size;
	message->address = segment->address;
	message->born = segment->born;
	message->random_id = (ProtobufCBinaryData){ PS_ID_SIZE, segment->random_id };
	/* A segment that was added at level 0 has no random id. */
	if (!ps_id_valid(message->random_id))
		message->random_id = (ProtobufCBinaryData){ 0, NULL };
}

void ps_segments_load(struct perseas *p, const Perseas__Header *header)
{
	p->segment_count = 0;
	for (size_t i = 0; i < header->n_segments; i++) {
		const Perseas__Segment *from = header->segments[i];
		struct ps_segment *to = &p->segments[p->segment_count++];

		memset(to, 0, sizeof(*to));
		to->id = from->id;
		to->size = from->size;
		to->address = from->address;
		to->born = from->born;
		if (from->random_id.len == PS_ID_SIZE)
			memcpy(to->random_id, from->random_id.data, PS_ID_SIZE);
		snprintf(to->name, sizeof(to->name), "%s", from->name);
	}
}
