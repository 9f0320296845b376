/*
 * publish.h - publishes new segments.
 */
#ifndef PERSEAS_CLIENT_PUBLISH_H
#define PERSEAS_CLIENT_PUBLISH_H

#include "map.h"

/* Publishes the segments of `birth`, or what perseas_publish does if birth is NULL. Sets *seq to
 * the seq of the publish, or to 0 if nothing was sent. The caller has exclusive use of the
 * links. */
int ps_publish_exclusive(struct perseas *p, const struct ps_new_segments *birth, uint64_t *seq);

#endif
