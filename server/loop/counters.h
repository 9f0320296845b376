/*
 * counters.h - what the daemon counts as it works. Plain numbers of whoever is inside (lanes.h,
 * where data itself is counted); those of a store are in store.h. metrics.c explains each of them
 * to its readers.
 */
#ifndef PERSEAS_SERVER_COUNTERS_H
#define PERSEAS_SERVER_COUNTERS_H

#include "../store/control.h"

#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 10, COUNTED_STATUSES = PERSEAS__STATUS__STATUS_OTHER + 1 };

/* Upper bounds of the buckets, in ns, rising. */
extern const uint64_t histogram_bounds_ns[HISTOGRAM_BUCKETS];

struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS + 1]; /* each alone; the last has no bound */
	uint64_t count;
	uint64_t sum_ns;
};

/* Why a connection was refused, or closed before it was of use. */
enum refusal {
	REFUSED_FULL,  /* there are too many, of all */
	REFUSED_LIMIT, /* there are too many of its identity */
	REFUSED_TLS,   /* no TLS, or no certificate of use */
	REFUSED_HELLO, /* no greeting in time, or of something else */
	REFUSED_TOKEN, /* a data path for no session that waits for one */
	REFUSALS,
};

struct counters {
	uint64_t connections; /* that were accepted, of all kinds */
	uint64_t connections_refused[REFUSALS];
	uint64_t http_requests;                      /* answered */
	uint64_t refusals[COUNTED_STATUSES];         /* of control requests, by status; of OK: 0 */
	struct histogram requests[CONTROL_REQUESTS]; /* by kind, 0: not understood */
};

void histogram_add(struct histogram *histogram, uint64_t ns);

/* A control request of this kind was answered with this status. */
void counters_note(struct counters *counters, unsigned request, unsigned status, uint64_t ns);

#endif
