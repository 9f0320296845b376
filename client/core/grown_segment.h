/*
 * grown_segment.h - segments that have grown. Such a segment is followed by parts
 * (proto/control/segment_parts.h), which are mapped right behind it and behind each other. They are
 * mapped and unmapped together, and the application sees one segment. A segment that never grew has
 * no parts.
 */
#ifndef PERSEAS_CLIENT_GROWN_SEGMENT_H
#define PERSEAS_CLIENT_GROWN_SEGMENT_H

#include "handle.h"

/* Return the part right behind a segment or part, and the segment or part right before a part.
 * Return NULL if there is none. */
struct ps_segment *ps_grown_next_part(struct perseas *p, const struct ps_segment *segment);
struct ps_segment *ps_grown_previous_part(struct perseas *p, const struct ps_segment *segment);

/* Returns the segment that a part belongs to, or `segment` itself if it is not a part. */
struct ps_segment *ps_grown_head(struct perseas *p, struct ps_segment *segment);

/* Returns the bytes of a segment and of its published parts. */
uint64_t ps_grown_size(struct perseas *p, const struct ps_segment *head);

/* Writes the ids of a segment and its parts, in the order of addresses. Returns how many there
 * are. */
unsigned ps_grown_part_ids(struct perseas *p, const struct ps_segment *head,
                           uint32_t ids[PS_SEGMENTS_MAX]);

#endif
