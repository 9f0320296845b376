/*
 * counters.h - counters of the daemon. They are plain numbers, changed only inside the lock
 * (lanes.h). Those of data are in lanes.h, those of a store in store.h. metrics.c describes each of
 * them to users.
 */
#ifndef PERSEAS_SERVER_COUNTERS_H
#define PERSEAS_SERVER_COUNTERS_H

#include "../store/control.h"

#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 10, COUNTED_STATUSES = PERSEAS__STATUS__STATUS_OTHER + 1 };

/* Upper bounds of the buckets in ns, ascending. */
extern const uint64_t histogram_bounds_ns[HISTOGRAM_BUCKETS];

struct histogram {
	/* Observations in each bucket, not cumulative. The last bucket has no upper bound. */
	uint64_t buckets[HISTOGRAM_BUCKETS + 1];
	uint64_t count;
	uint64_t sum_ns;
};

/* Why a connection was refused or closed early. */
enum refusal {
	REFUSED_FULL,  /* too many connections in total */
	REFUSED_LIMIT, /* too many connections of its identity */
	REFUSED_TLS,   /* no TLS, or no valid certificate */
	REFUSED_HELLO, /* no hello in time, or another protocol */
	REFUSED_TOKEN, /* a data connection whose token belongs to no session that waits for one */
	REFUSALS,
};

struct counters {
	uint64_t connections_accepted; /* accepted connections of all kinds */
	uint64_t connections_refused[REFUSALS];
	uint64_t http_requests; /* HTTP requests answered */
	/* Refused control requests by status; index OK is unused. */
	uint64_t refusals[COUNTED_STATUSES];
	/* Durations by kind of request; index 0: requests that could not be decoded. */
	struct histogram requests[CONTROL_REQUESTS];
};

void histogram_add(struct histogram *histogram, uint64_t ns);

/* Counts a control request of this kind that was answered with this status after `ns`. */
void counters_add_request(struct counters *counters, unsigned request, unsigned status,
                          uint64_t ns);

#endif
