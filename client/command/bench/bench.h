/*
 * bench.h - measures commits of several sizes on a store that the command made for this.
 * cmd_bench.c makes the store, prints the figures, and deletes the store.
 */
#ifndef PERSEAS_COMMAND_BENCH_H
#define PERSEAS_COMMAND_BENCH_H

#include "../ui/args.h"
#include "histogram.h"
#include "../../perseas.h"

/* The results of one size. */
struct ps_bench_size {
	uint32_t bytes;              /* bytes of a transaction */
	double seconds;              /* measured time */
	struct ps_histogram commits; /* ns in perseas_commit */
};

/* A run of perseas bench: its store and its results. Too large for a stack. */
struct ps_bench {
	const struct ps_args *args;
	perseas_t *p;
	/* Start of the mapped segment, which has PS_BENCH_SLICE bytes for each thread. */
	uint8_t *base;
	struct ps_bench_size sizes[PS_SIZES_MAX];
	unsigned size_count; /* sizes that were measured */
};

#define PS_BENCH_SLICE ((size_t)1 << 20)

/* Measures commits, size by size, until a signal says to stop. What was measured is good also after
 * an error, which was complained about. */
enum ps_exit ps_bench_commits(struct ps_bench *bench);

#endif
