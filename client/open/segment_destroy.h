/*
 * segment_destroy.h - has mirrors free the memory of destroyed segments.
 */
#ifndef PERSEAS_CLIENT_SEGMENT_DESTROY_H
#define PERSEAS_CLIENT_SEGMENT_DESTROY_H

#include "../core/handle.h"

/* Has mirrors give back the memory of segments that were destroyed, so that their ids and names can
 * be used again. Admin, and the links to itself. 0, or EBLOCKED: W mirrors do not hold it yet. */
int ps_graves_clear(struct perseas *p);

#endif
