/*
 * oracle.h - what a process that may be killed was promised: a page in a file, shared with
 * the system's cache, so that it outlives the process. It has nothing to do with the
 * store that it is the witness of.
 */
#ifndef PERSEAS_BENCH_ORACLE_H
#define PERSEAS_BENCH_ORACLE_H

#include <stdatomic.h>
#include <stdint.h>

struct oracle {
	_Atomic uint64_t acked; /* transactions that were acknowledged */
};

/* Maps the page of `path`, which is made when missing. NULL, and errno set, on failure. */
struct oracle *oracle_open(const char *path);

void oracle_close(struct oracle *oracle);

static inline void oracle_note(struct oracle *oracle, uint64_t acked)
{
	atomic_store_explicit(&oracle->acked, acked, memory_order_release);
}

static inline uint64_t oracle_read(struct oracle *oracle)
{
	return atomic_load_explicit(&oracle->acked, memory_order_acquire);
}

#endif
