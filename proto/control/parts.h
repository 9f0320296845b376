/*
 * parts.h - segments that have grown. What a segment grew by is a segment of its own in the store's
 * table: its part, named NAME.grown.1, NAME.grown.2 and so on, whose recorded address is where the
 * one before ends. Nothing else says that it is a part: so the publish of a part is the one moment
 * at which the segment grows, and mirrors need not know of it. The library asks this of segments
 * that it has, and the command of headers. It must never allocate, or ask a mirror.
 */
#ifndef PERSEAS_PROTO_PARTS_H
#define PERSEAS_PROTO_PARTS_H

#include "control.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Could a part have this name? Applications give it to no segment. */
bool ps_part_is_name(const char *name);

/* The name of the part of this number, from 1, in `to` of `size` bytes. False: it is too long for
 * a segment, and nothing is written. */
bool ps_part_name(char *to, size_t size, const char *segment, unsigned number);

/* Is a segment of this name and address the next part behind one that has the name `before`, and
 * ends at the address `end`? */
bool ps_part_follows(const char *name, uint64_t address, const char *before, uint64_t end);

/* In the table of a header: the part behind it, and what it is the part behind; NULL: there is
 * none. Whether these exist yet is not asked. */
const Perseas__Segment *ps_part_next(const Perseas__Header *header,
                                     const Perseas__Segment *segment);
const Perseas__Segment *ps_part_before(const Perseas__Header *header,
                                       const Perseas__Segment *segment);

/* How many of its segments are no parts. */
size_t ps_part_wholes(const Perseas__Header *header);

#endif
