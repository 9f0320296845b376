/*
 * test_pages.c - whether pages of this process are large, as the kernel says.
 */
#include "../../client/demand/pages.h"
#include "large_pages.h"
#include "../support/unit.h"

static struct {
	uint8_t *mapping, *base; /* two places for large pages; the second one has small pages */
	int pages;
	bool large; /* the first is one */
} memory;

static int setup(void **state)
{
	(void)state;
	memory.mapping = mmap(NULL, 3 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	                      -1, 0);
	assert_ptr_not_equal(memory.mapping, MAP_FAILED);
	memory.base = memory.mapping + -(uintptr_t)memory.mapping % LARGE;
	madvise(memory.base + LARGE, LARGE, MADV_NOHUGEPAGE);
	memset(memory.base, 1, 2 * LARGE);
	memory.large = !madvise(memory.base, LARGE, COLLAPSE);
	memory.pages = ps_pages_open();
	return memory.pages < 0;
}

static int teardown(void **state)
{
	(void)state;
	close(memory.pages);
	return munmap(memory.mapping, 3 * LARGE);
}

struct unit_fixture unit_group = { setup, teardown };

TEST(small_pages_are_not_large)
{
	assert_false(ps_pages_are_large(memory.pages, memory.base + LARGE, LARGE));
	assert_false(ps_pages_are_large(memory.pages, memory.base, 2 * LARGE));
}

TEST(a_large_page_is_one)
{
	if (!memory.large)
		skip();
	assert_true(ps_pages_are_large(memory.pages, memory.base, LARGE));
}

TEST(nobody_can_say)
{
	assert_false(ps_pages_are_large(-1, memory.base, LARGE));
}
