/*
 * test_core_dump.c - which memory a core dump of this process would have, as the kernel tells
 * of each mapping.
 */
#include "../../client/core/ring.h"
#include "../../client/demand/warm.h"
#include "../../proto/base/core_dump.h"
#include "../support/unit.h"

enum { SIZE = 1 << 20 };

/* Returns true if a core dump leaves the page of this address out. */
static bool is_omitted(const void *address)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	unsigned long from, to;
	bool here = false, omitted = false, found = false;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)address >= from && (uintptr_t)address < to;
		if (!here || strncmp(line, "VmFlags:", 8) != 0)
			continue;
		found = true;
		omitted = strstr(line, " dd") != NULL;
	}
	fclose(maps);
	assert_true(found);
	return omitted;
}

static bool omits(void)
{
	void *base = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool omitted;

	assert_ptr_not_equal(base, MAP_FAILED);
	assert_false(is_omitted(base));
	ps_core_dump_omit(base, SIZE);
	omitted = is_omitted(base);
	munmap(base, SIZE);
	return omitted;
}

static int omits_if_asked_for(void *arg)
{
	setenv(PS_CORE_DUMP_VARIABLE, arg, 1);
	return omits();
}

/* The environment is read once: each value has a process of its own. */
TEST(the_environment_may_ask_for_the_memory)
{
	char on[] = "on";

	assert_false(unit_in_child(omits_if_asked_for, on));
	unsetenv(PS_CORE_DUMP_VARIABLE);
	assert_true(omits());
}

TEST(the_ring_is_left_out)
{
	struct ps_ring ring;

	assert_int_equal(ps_ring_init(&ring, SIZE), 0);
	assert_true(is_omitted(ring.base));
	ps_ring_free(&ring);
}
