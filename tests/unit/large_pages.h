/*
 * large_pages.h - whether memory lies in large pages, and whether this host can have it there.
 */
#ifndef PERSEAS_TESTS_LARGE_PAGES_H
#define PERSEAS_TESTS_LARGE_PAGES_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE = 2 << 20, COLLAPSE = 25 }; /* MADV_COLLAPSE: Linux 6.1 */

/* Bytes of the kind that smaps calls so, in the mapping that begins there. */
static inline unsigned long count_pages(const void *base, const char *kind)
{
	const size_t length = strlen(kind);
	FILE *file = fopen("/proc/self/smaps", "r");
	unsigned long kib = 0, start, end;
	bool inside = false;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start == (unsigned long)(uintptr_t)base;
		else if (inside && !strncmp(line, kind, length) &&
		         sscanf(line + length, ": %lu", &kib) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kib << 10;
}

/* Bytes of large pages, of the process' own and of a file in memory. */
static inline unsigned long count_large(const void *base)
{
	return count_pages(base, "AnonHugePages");
}

static inline unsigned long count_large_shared(const void *base)
{
	return count_pages(base, "ShmemPmdMapped");
}

/* Returns how often the kernel had no large page for any process. If this rises during a test,
 * small pages are no fault. */
static inline unsigned long count_refused(void)
{
	FILE *file = fopen("/proc/vmstat", "r");
	unsigned long sum = 0, number;
	char name[64];

	while (file && fscanf(file, "%63s %lu", name, &number) == 2)
		if (!strncmp(name, "thp_", 4) &&
		    (strstr(name, "_fallback") || strstr(name, "_alloc_failed")))
			sum += number;
	if (file)
		fclose(file);
	return sum;
}

/* Returns true if the kernel has large pages, and some are free. */
static inline bool can_be_large(void)
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

/* Makes the first page of the file a large one, where files in memory may have large pages. */
static inline bool make_large(int fd)
{
	uint8_t *at = mmap(NULL, 2 * LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *base;
	bool can;

	if (at == MAP_FAILED)
		return false;
	base = at + -(uintptr_t)at % LARGE;
	can = !posix_fallocate(fd, LARGE - 4096, 4096) &&
	      mmap(base, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == base &&
	      !madvise(base, LARGE, COLLAPSE);
	munmap(at, 2 * LARGE);
	return can;
}

/* Returns true if files in the directory of images may have large pages. */
static inline bool can_be_large_shared(void)
{
	char name[] = "/dev/shm/perseas-large-XXXXXX";
	const int fd = mkstemp(name);
	bool can;

	if (fd < 0)
		return false;
	unlink(name);
	can = make_large(fd);
	close(fd);
	if (!can)
		printf("files in /dev/shm have small pages here: MADV_COLLAPSE is refused\n");
	return can;
}

#endif
