/*
 * segment_key.h - identifies a segment among all segments that a store ever had (proto/PROTOCOL.md,
 * "An id that comes again"). Everything that outlives a segment compares by this key: the segment
 * tables of two images, a standby's copy, what commands read.
 */
#ifndef PERSEAS_PROTO_SEGMENT_KEY_H
#define PERSEAS_PROTO_SEGMENT_KEY_H

#include "layout.h"

#include <stdbool.h>

/* The id and `born` are not unique. Two owners, one of which never got W mirrors, both assign the
 * lowest free id and the next seq, so they may publish two segments of the same size under one id
 * and seq. If the name and the address are also the same, only the random ids differ. An owner
 * draws one for each segment that it adds at level 1. It is all zeros if the segment was added at
 * level 0. A segment never gains or loses its random id, so a segment with one differs from a
 * segment without one. */
struct ps_segment_key {
	uint64_t id, born, size, address;
	uint8_t random_id[PS_ID_SIZE];
	char name[PS_NAME_MAX + 1];
};

/* Returns the key with these fields. Truncates names longer than PS_NAME_MAX; no checked message
 * has one. random_id has PS_ID_SIZE bytes; NULL stands for zeros. */
struct ps_segment_key ps_segment_key_of(uint32_t id, const char *name, uint64_t size,
                                        uint64_t address, uint64_t born, const uint8_t *random_id);

/* Returns true if both keys name the same segment. */
bool ps_segment_key_equal(const struct ps_segment_key *a, const struct ps_segment_key *b);

#endif
