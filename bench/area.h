/*
 * area.h - memory of the kind that the library asks for, so that what is measured beside it works
 * on the same: of large pages where the system has some.
 */
#ifndef PERSEAS_BENCH_AREA_H
#define PERSEAS_BENCH_AREA_H

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

/* Zeros, whose pages come when they are touched. NULL, and errno set, on failure. */
static inline void *area_new(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, size, MADV_HUGEPAGE);
	return at;
}

/* The same with every page there; each byte is `value`. */
static inline void *area_filled(size_t size, int value)
{
	void *at = area_new(size);

	return at ? memset(at, value, size) : NULL;
}

/* NULL is allowed. */
static inline void area_free(void *at, size_t size)
{
	if (at)
		munmap(at, size);
}

#endif
