/*
 * bench.h - commits on a store of one's own, and the bare round trips below them.
 */
#ifndef PERSEAS_COMMAND_BENCH_H
#define PERSEAS_COMMAND_BENCH_H

#include "../ui/args.h"
#include "histogram.h"
#include "../../core/handle.h"
#include "../../perseas.h"

/* Of one mirror. */
struct ps_bench_trip {
	struct perseas_mirror_stat mirror;
	struct ps_histogram latency; /* ns; nothing in it: it could not be measured */
};

/* Of one size. */
struct ps_bench_size {
	uint32_t bytes;
	double seconds;
	struct ps_histogram commits; /* ns in perseas_commit */
};

/* Too large for a stack. */
struct ps_bench {
	const struct ps_args *args;
	perseas_t *p;
	uint8_t *base; /* of the segment: PS_BENCH_SLICE for each thread */
	struct ps_bench_trip trips[PS_MIRRORS_MAX];
	unsigned trip_count;
	struct ps_bench_size sizes[PS_SIZES_MAX];
	unsigned size_count; /* that were measured */
};

#define PS_BENCH_SLICE ((size_t)1 << 20)

/* Measures the round trips to all mirrors; then, size by size, commits, until a signal says to
 * stop. What was measured is good also after an error, which was complained about. */
enum ps_exit ps_bench_trips(struct ps_bench *bench);
enum ps_exit ps_bench_commits(struct ps_bench *bench);

#endif
