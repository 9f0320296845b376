/*
 * large_pages.h - whether memory lies in large pages, and whether this host can have it there.
 */
#ifndef PERSEAS_TESTS_LARGE_PAGES_H
#define PERSEAS_TESTS_LARGE_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE = 2 << 20, COLLAPSE = 25 }; /* MADV_COLLAPSE: Linux 6.1 */

/* Bytes of large pages in the mapping that begins there. */
static unsigned long count_large(const void *base)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	unsigned long kib = 0, start, end;
	bool inside = false;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start == (unsigned long)(uintptr_t)base;
		else if (inside && sscanf(line, "AnonHugePages: %lu", &kib) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kib << 10;
}

/* Has the kernel large pages, and some left? */
static bool can_be_large(void)
{
	uint8_t *at = mmap(NULL, 2 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	                   0);
	bool can;

	if (at == MAP_FAILED)
		return false;
	memset(at, 1, 2 * LARGE);
	can = !madvise(at + -(uintptr_t)at % LARGE, LARGE, COLLAPSE);
	munmap(at, 2 * LARGE);
	return can;
}

#endif
