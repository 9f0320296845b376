/*
 * huge_pages.c - see huge_pages.h.
 */
#include "huge_pages.h"

#include "../../proto/base/large_page.h"
#include "env.h"
#include "shadow.h"
#include "../../proto/base/core_dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

/* Those of PS_LARGE_PAGE bytes, whatever size the kernel takes by itself. */
enum { IN_HUGE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT };

/* Younger than some headers that this is built with (Linux 5.14). */
#define POPULATE_WRITE 23

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

bool ps_huge_suits(const struct perseas *p, uint64_t address, uint64_t size)
{
	return p->env->huge_pages && !(p->options.flags & PS_SHADOWED) &&
	       address % PS_LARGE_PAGE == 0 && size % PS_LARGE_PAGE == 0;
}

/* That the kernel has promised them does not mean that it gives them: the limit of a cgroup, and
 * nodes of memory that have none, count when they are touched, and give SIGBUS. So all are touched
 * first, where this can fail. */
static void *map_touched(void *address, uint64_t size, int flags)
{
	void *got = mmap(address, size, PROT_READ | PROT_WRITE, IN_HUGE | flags, -1, 0);

	if (got == MAP_FAILED || !madvise(got, size, POPULATE_WRITE))
		return got;
	munmap(got, size);
	return MAP_FAILED;
}

/* What comes on demand must not be there, and touching all of it takes long: one stands for it. */
static bool can_touch_one(void)
{
	void *one = map_touched(NULL, PS_LARGE_PAGE, 0);

	return one != MAP_FAILED && !munmap(one, PS_LARGE_PAGE);
}

static void *map_some(void *address, uint64_t size, int flags, bool on_demand)
{
	if (!on_demand)
		return map_touched(address, size, flags);
	if (!can_touch_one())
		return MAP_FAILED;
	return mmap(address, size, PROT_READ | PROT_WRITE, IN_HUGE | flags, -1, 0);
}

/* What is kept must not be gone if there are too few: so they are had first. */
static void *map_over(void *address, uint64_t size, bool on_demand)
{
	void *got = map_some(NULL, size, 0, on_demand), *there;

	if (got == MAP_FAILED)
		return got;
	there = mremap(got, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, address);
	if (there == MAP_FAILED)
		munmap(got, size);
	return there;
}

bool ps_huge_map(uint64_t address, uint64_t size, bool is_kept, bool on_demand)
{
	void *place = (void *)(uintptr_t)address, *got;

	got = is_kept ? map_over(place, size, on_demand)
	              : map_some(place, size, MAP_FIXED_NOREPLACE, on_demand);
	if (got == MAP_FAILED)
		return false;
	if (got != place) {
		munmap(got, size);
		return false;
	}
	madvise(got, size, MADV_DONTFORK);
	ps_core_dump_omit(got, size);
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
