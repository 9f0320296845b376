/*
 * clock.h - the time, for the benchmarks.
 */
#ifndef PERSEAS_BENCH_CLOCK_H
#define PERSEAS_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of a clock that never steps back. */
static inline uint64_t clock_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

/* Nanoseconds that the calling thread has had a processor for. */
static inline uint64_t clock_thread_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

#endif
