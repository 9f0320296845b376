/*
 * segment_destroy.h - has mirrors free the memory of destroyed segments.
 */
#ifndef PERSEAS_CLIENT_SEGMENT_DESTROY_H
#define PERSEAS_CLIENT_SEGMENT_DESTROY_H

#include "../core/handle.h"

/* Has mirrors free the memory of destroyed segments, so that ids and names can be used again. Needs
 * admin, and exclusive use of the links. Returns 0, or PERSEAS_EBLOCKED if fewer than W mirrors
 * hold the destruction. */
int ps_free_destroyed_segments_on_mirrors(struct perseas *p);

#endif
