/*
 * clock.h - reads clocks for the benchmarks.
 */
#ifndef PERSEAS_BENCH_CLOCK_H
#define PERSEAS_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

/* Returns the nanoseconds of a clock that never steps back. */
static inline uint64_t clock_ns(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

/* Returns the nanoseconds of processor time that the calling thread has used. */
static inline uint64_t clock_thread_ns(void)
{
	return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

#endif
