/*
 * huge_pages.c - see huge_pages.h.
 */
#include "huge_pages.h"

#include "../../proto/base/large_page.h"
#include "env.h"
#include "shadow.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

/* Those of PS_LARGE_PAGE bytes, whatever size the kernel takes by itself. */
enum { IN_HUGE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT };

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

bool ps_huge_suits(const struct perseas *p, uint64_t address, uint64_t size)
{
	return p->env->huge_pages && !(p->options.flags & PS_SHADOWED) &&
	       address % PS_LARGE_PAGE == 0 && size % PS_LARGE_PAGE == 0;
}

/* What is kept must not be gone if there are too few: so they are had first. */
static void *map_over(void *address, uint64_t size)
{
	void *got = mmap(NULL, size, PROT_READ | PROT_WRITE, IN_HUGE, -1, 0), *there;

	if (got == MAP_FAILED)
		return got;
	there = mremap(got, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, address);
	if (there == MAP_FAILED)
		munmap(got, size);
	return there;
}

bool ps_huge_map(uint64_t address, uint64_t size, bool is_kept)
{
	void *place = (void *)(uintptr_t)address, *got;

	got = is_kept ? map_over(place, size)
	              : mmap(place, size, PROT_READ | PROT_WRITE, IN_HUGE | MAP_FIXED_NOREPLACE, -1,
	                     0);
	if (got == MAP_FAILED)
		return false;
	if (got != place) {
		munmap(got, size);
		return false;
	}
	madvise(got, size, MADV_DONTFORK);
	return true;
}

static uint64_t read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	uint64_t number = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%" SCNu64, &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

/* Those that are free, and are not promised to somebody who has not touched them yet. */
static uint64_t count_free(void)
{
	const uint64_t unused = read_number(POOL "free_hugepages");
	const uint64_t promised = read_number(POOL "resv_hugepages");

	return unused > promised ? unused - promised : 0;
}

void ps_huge_report(struct perseas *p)
{
	uint64_t bytes = 0, pages, count;

	for (unsigned i = 0; i < p->segment_count; i++)
		if (p->segments[i].born &&
		    ps_huge_suits(p, p->segments[i].address, p->segments[i].size))
			bytes += p->segments[i].size;
	if (!bytes)
		return;
	pages = bytes / PS_LARGE_PAGE;
	count = count_free();
	ps_report(p,
	          "the segments take %" PRIu64 " huge pages of 2 MiB, and %" PRIu64 " are free%s",
	          pages, count,
	          count < pages
	                  ? ": those that find too few lie in ordinary memory (vm.nr_hugepages)"
	                  : "");
}
