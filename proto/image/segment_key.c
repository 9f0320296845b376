/*
 * segment_key.c - see segment_key.h. The library, the command and the tests call it. No other code
 * may compare segments by some of their fields.
 */
#include "segment_key.h"

#include <stdio.h>
#include <string.h>

struct ps_segment_key ps_segment_key_of(uint32_t id, const char *name, uint64_t size,
                                        uint64_t address, uint64_t born, const uint8_t *random_id)
{
	struct ps_segment_key key = { .id = id, .born = born, .size = size, .address = address };

	snprintf(key.name, sizeof(key.name), "%s", name);
	if (random_id)
		memcpy(key.random_id, random_id, sizeof(key.random_id));
	return key;
}

bool ps_segment_key_equal(const struct ps_segment_key *a, const struct ps_segment_key *b)
{
	return a->id == b->id && a->born == b->born && a->size == b->size &&
	       a->address == b->address && strcmp(a->name, b->name) == 0 &&
	       memcmp(a->random_id, b->random_id, sizeof(a->random_id)) == 0;
}
