/*
 * segment_table.h - compares the segment tables of two headers. The library does so before it
 * repairs an image from the logs, and the command before it reads several images as one.
 */
#ifndef PERSEAS_PROTO_SEGMENT_TABLE_H
#define PERSEAS_PROTO_SEGMENT_TABLE_H

#include "../image/segment_key.h"
#include "control.pb-c.h"

/* Returns the key of a segment, from its entry in a header. */
struct ps_segment_key ps_segment_entry_key(const Perseas__Segment *segment);

/* Returns true if both entries name the same segment. Does not compare whether they are
 * destroyed. */
bool ps_is_same_segment(const Perseas__Segment *a, const Perseas__Segment *b);

/* Returns true if both headers have the same segments, in any order. */
bool ps_segment_tables_equal(const Perseas__Header *a, const Perseas__Header *b);

/* Returns true if the header has this segment. */
bool ps_segment_table_has(const Perseas__Header *header, const struct ps_segment_key *key);

/* Returns NULL, or a sentence if the store has level 0 and a segment has a random id. Version 8
 * reads headers of level 0 and does not know the field. */
const char *ps_random_ids_fault(const Perseas__Header *header);

#endif
