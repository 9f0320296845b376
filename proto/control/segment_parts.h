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
bool ps_part_is_name(const char *name);

/* Writes the name of part `number`, from 1, into `to` of `size` bytes. Returns false and writes
 * nothing if the name is too long for a segment. */
bool ps_part_name(char *to, size_t size, const char *segment, unsigned number);

/* Returns true if a segment with this name and address is the next part after one that has the name
 * `before` and ends at the address `end`. */
bool ps_part_follows(const char *name, uint64_t address, const char *before, uint64_t end);

/* Return the part that follows `segment` in a header's table, and the segment that it follows as a
 * part, or NULL. Do not check whether they are published. */
const Perseas__Segment *ps_part_next(const Perseas__Header *header,
                                     const Perseas__Segment *segment);
const Perseas__Segment *ps_part_before(const Perseas__Header *header,
                                       const Perseas__Segment *segment);

/* Returns how many segments of the table are not parts. */
size_t ps_part_count_wholes(const Perseas__Header *header);

#endif
