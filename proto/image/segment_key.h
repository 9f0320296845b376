/*
 * segment_key.h - what tells a segment from every other segment that a store ever had
 * (proto/PROTOCOL.md, "An id that comes again"). Everything that outlives a segment compares by
 * this key: segment tables of two images, a standby's copy, what commands read.
 */
#ifndef PERSEAS_PROTO_SEGMENT_KEY_H
#define PERSEAS_PROTO_SEGMENT_KEY_H

#include "layout.h"

#include <stdbool.h>

/*
 * Id and `born` are not enough. Two owners, one of which never got W mirrors, both give the lowest
 * free id and the next seq, so they may publish two segments of the same size under one id and seq.
 * If name and address are the same, too, only the random ids differ. An owner draws one for each
 * segment that it adds at level 1. Zeros: the segment was added at level 0. A segment never gets or
 * loses its random id, so a segment with one differs from a segment without one.
 */
struct ps_segment_key {
	uint64_t id, born, size, address;
	uint8_t random_id[PS_ID_SIZE];
	char name[PS_NAME_MAX + 1];
};

/*
 * Returns the key of these fields. Names longer than PS_NAME_MAX are cut off; no checked message
 * has one. random_id is PS_ID_SIZE bytes, or NULL: zeros.
 */
struct ps_segment_key ps_segment_key_of(uint32_t id, const char *name, uint64_t size,
                                        uint64_t address, uint64_t born, const uint8_t *random_id);

/* Returns true if both keys are of the same segment. */
bool ps_segment_key_equal(const struct ps_segment_key *a, const struct ps_segment_key *b);

#endif
