/*
 * segment_parts.h - segments that have grown. The bytes by which a segment grows are a segment of
 * their own in the store's table, its part, named NAME.grown.1, NAME.grown.2 and so on. The
 * recorded address of a part is the end of the part before it. Nothing else marks it as a part: the
 * segment grows at the moment when the part is published, and mirrors need not know. The library
 * asks about its segments and the command about headers. These functions must never allocate or
 * contact a mirror.
 */
#ifndef PERSEAS_PROTO_SEGMENT_PARTS_H
#define PERSEAS_PROTO_SEGMENT_PARTS_H

#include "control.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if the name has the form of a part's name. Applications may not use such names. */
bool ps_segment_part_is_name(const char *name);

/* Writes the name of part `number`, from 1, into `to` of `size` bytes. Returns false and writes
 * nothing if the name is too long for a segment. */
bool ps_segment_part_name(char *to, size_t size, const char *segment, unsigned number);

/* Returns true if a segment with this name and address is the next part after a segment, or part,
 * that has the name `before` and ends at the address `end`. */
bool ps_segment_part_follows(const char *name, uint64_t address, const char *before, uint64_t end);

/* Return the next part of a grown segment: the part that directly follows `segment`, which is the
 * segment itself or one of its parts; and the reverse, what `segment`, a part, directly follows.
 * Return NULL if there is no such entry. Do not check whether entries are published. */
const Perseas__Segment *ps_segment_part_next(const Perseas__Header *header,
                                             const Perseas__Segment *segment);
const Perseas__Segment *ps_segment_part_before(const Perseas__Header *header,
                                               const Perseas__Segment *segment);

/* Returns the number of segments in the table, counting a grown segment and its parts once. */
size_t ps_count_segments_without_parts(const Perseas__Header *header);

#endif
