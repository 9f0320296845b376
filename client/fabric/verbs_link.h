/*
 * verbs_link.h - counters of a link over RDMA, for tests.
 */
#ifndef PERSEAS_CLIENT_VERBS_LINK_H
#define PERSEAS_CLIENT_VERBS_LINK_H

#include "../core/fabric.h"
#include "verbs_queue.h"

/* Returns the link's counts since it was attached. */
struct ps_link_counts ps_verbs_counts(const struct ps_link *link);

#endif
