/*
 * verbs_pair.h - what an RDMA connection has of its device: completion queue, queue pair, pad, and
 * the descriptor that wakes up for all of its events.
 */
#ifndef PERSEAS_CLIENT_VERBS_PAIR_H
#define PERSEAS_CLIENT_VERBS_PAIR_H

#include "verbs_refuse.h"

/* Makes them for a connection whose id is routed. 0 or a code; what was made then is closed with
 * the connection. */
int ps_pair_make(struct ps_attempt *attempt);

/* The lesser one, where a device says a limit; 0 or less: it does not. */
static inline uint32_t ps_lesser(uint32_t a, int b)
{
	return b > 0 && (uint32_t)b < a ? (uint32_t)b : a;
}

#endif
