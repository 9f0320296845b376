/*
 * verbs_pair.h - makes a connection's objects on its device: completion queue, queue pair, pad, and
 * the descriptor that becomes readable for all of its events.
 */
#ifndef PERSEAS_CLIENT_VERBS_PAIR_H
#define PERSEAS_CLIENT_VERBS_PAIR_H

#include "verbs_refuse.h"

/* Makes the objects for a connection whose id is routed. Returns 0 or a code; closing the
 * connection frees what was made until then. */
int ps_connection_create_objects(struct ps_attempt *attempt);

/* Returns the lesser of a and a device's limit b; b is no limit if it is 0 or less. */
static inline uint32_t ps_apply_limit(uint32_t a, int b)
{
	return b > 0 && (uint32_t)b < a ? (uint32_t)b : a;
}

#endif
