/*
 * publish.h - publishes new segments.
 */
#ifndef PERSEAS_CLIENT_PUBLISH_H
#define PERSEAS_CLIENT_PUBLISH_H

#include "map.h"

/* In all of these, new_segments NULL means the segments of perseas_publish. The caller has
 * exclusive use of the links. */

/* Sends the first contents of the segments to the mirrors. Nothing is published yet. */
int ps_publish_send_contents(struct perseas *p, const struct ps_new_segments *new_segments);

/* Publishes segments whose contents were sent since the caller has exclusive use of the links. Sets
 * *seq to the seq of the publish, or to 0 if there are no such segments or nothing was sent. */
int ps_publish_record(struct perseas *p, const struct ps_new_segments *new_segments, uint64_t *seq);

/* Does both. */
int ps_publish_send_and_record(struct perseas *p, const struct ps_new_segments *new_segments,
                               uint64_t *seq);

#endif
