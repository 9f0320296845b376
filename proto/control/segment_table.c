/*
 * segment_table.c - see segment_table.h. Headers are checked before, so no table has an id twice.
 */
#include "segment_table.h"

#include "key.h"

struct ps_segment_key ps_segment_entry_key(const Perseas__Segment *segment)
{
	return ps_segment_key_of(segment->id, segment->name, segment->size, segment->address,
	                         segment->born,
	                         segment->random_id.len == PS_ID_SIZE ? segment->random_id.data
	                                                              : NULL);
}

bool ps_is_same_segment(const Perseas__Segment *a, const Perseas__Segment *b)
{
	const struct ps_segment_key x = ps_segment_entry_key(a), y = ps_segment_entry_key(b);

	return ps_segment_key_equal(&x, &y);
}

bool ps_segment_table_has(const Perseas__Header *header, const struct ps_segment_key *key)
{
	for (size_t i = 0; i < header->n_segments; i++) {
		const struct ps_segment_key other = ps_segment_entry_key(header->segments[i]);

		if (ps_segment_key_equal(&other, key))
			return true;
	}
	return false;
}

bool ps_segment_tables_equal(const Perseas__Header *a, const Perseas__Header *b)
{
	if (a->n_segments != b->n_segments)
		return false;
	for (size_t i = 0; i < a->n_segments; i++) {
		const struct ps_segment_key key = ps_segment_entry_key(a->segments[i]);

		if (!ps_segment_table_has(b, &key))
			return false;
	}
	return true;
}

const char *ps_random_ids_fault(const Perseas__Header *header)
{
	if (ps_store_level(header->roster, header->next_roster) > 0)
		return NULL;
	for (size_t i = 0; i < header->n_segments; i++)
		if (header->segments[i]->random_id.len != 0)
			return "a segment of a store of level 0 has no random id";
	return NULL;
}
