/*
 * area.h - allocates memory the way the library does, with huge pages where the system has them, so
 * that other engines are measured on the same kind of memory.
 */
#ifndef PERSEAS_BENCH_AREA_H
#define PERSEAS_BENCH_AREA_H

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

/* Maps `size` zero bytes; pages are allocated on first touch. Returns NULL with errno set on
 * failure. */
static inline void *area_new(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, size, MADV_HUGEPAGE);
	return at;
}

/* Maps `size` bytes and sets each to `value`, so that every page is allocated. Returns NULL with
 * errno set on failure. */
static inline void *area_filled(size_t size, int value)
{
	void *at = area_new(size);

	return at ? memset(at, value, size) : NULL;
}

/* Unmaps the area. `at` may be NULL. */
static inline void area_free(void *at, size_t size)
{
	if (at)
		munmap(at, size);
}

#endif
