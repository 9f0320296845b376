/*
 * destroy.h - the memory that mirrors still have of segments that are destroyed.
 */
#ifndef PERSEAS_CLIENT_DESTROY_H
#define PERSEAS_CLIENT_DESTROY_H

#include "../core/handle.h"

/* Has mirrors give back the memory of segments that were destroyed, so that their ids and names can
 * be used again. Admin, and the links to itself. 0, or EBLOCKED: W mirrors do not hold it yet. */
int ps_graves_clear(struct perseas *p);

#endif
