/*
 * grown_segment.h - segments that have grown: a segment and its parts
 * (proto/control/segment_parts.h) are mapped one behind another, come and go together, and are one
 * segment for the application. A segment that never grew has no parts.
 */
#ifndef PERSEAS_CLIENT_GROWN_SEGMENT_H
#define PERSEAS_CLIENT_GROWN_SEGMENT_H

#include "handle.h"

/* The part behind it, and what it is the part behind; NULL: there is none. */
struct ps_segment *ps_whole_next(struct perseas *p, const struct ps_segment *segment);
struct ps_segment *ps_whole_before(struct perseas *p, const struct ps_segment *segment);

/* The segment that it is a part of; itself, if it is no part. */
struct ps_segment *ps_whole_head(struct perseas *p, struct ps_segment *segment);

/* The bytes of a segment and of its parts that are published. */
uint64_t ps_whole_size(struct perseas *p, const struct ps_segment *head);

/* Their ids, in the order of their addresses. Returns how many. */
unsigned ps_whole_ids(struct perseas *p, const struct ps_segment *head,
                      uint32_t ids[PS_SEGMENTS_MAX]);

#endif
