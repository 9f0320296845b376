/*
 * test_pages.c - whether pages of this process are large, as the kernel says.
 */
#include "../../client/demand/pages.h"
#include "large_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
	uint8_t *mapping,
		*base; /* two places for large pages, of which the second has small ones */
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

static void small_pages_are_not_large(void **state)
{
	(void)state;
	assert_false(ps_pages_large(memory.pages, memory.base + LARGE, LARGE));
	assert_false(ps_pages_large(memory.pages, memory.base, 2 * LARGE));
}

static void a_large_page_is_one(void **state)
{
	(void)state;
	if (!memory.large)
		skip();
	assert_true(ps_pages_large(memory.pages, memory.base, LARGE));
}

static void nobody_can_say(void **state)
{
	(void)state;
	assert_false(ps_pages_large(-1, memory.base, LARGE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_pages_are_not_large),
		cmocka_unit_test(a_large_page_is_one),
		cmocka_unit_test(nobody_can_say),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
