/*
 * test_memory_limit.c - a segment for which there is no memory: the message names what limits it.
 */
#include "owner.h"

#include "../../proto/base/memory_limit.h"

#include <sys/resource.h>

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

#define GIB ((uint64_t)1 << 30)

static uint64_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu", &pages), 1);
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The process may have 1 GiB more; a new segment needs 4 GiB, at any address or a given one. */
TEST(the_limit_of_the_address_space_is_named, struct owner *o)
{
	struct rlimit before, least;
	void *addr = NULL;
	int any, at;
	char told[2][300];

	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	least = before;
	least.rlim_cur = address_space() + GIB;
	assert_int_equal(setrlimit(RLIMIT_AS, &least), 0);
	any = perseas_map(o->p, "large", 4 * GIB, &addr);
	snprintf(told[0], sizeof(told[0]), "%s", perseas_message(o->p));
	at = perseas_map_at(o->p, "large", 4 * GIB, (void *)0x5a0000000000, &addr, NULL);
	snprintf(told[1], sizeof(told[1]), "%s", perseas_message(o->p));
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(any, PERSEAS_ENOMEM);
	assert_int_equal(at, PERSEAS_ENOMEM);
	for (unsigned i = 0; i < 2; i++)
		if (!strstr(told[i], "(ulimit -v)"))
			fail_msg("%s", told[i]);
}

/* The process may not map one more page, at any address. */
TEST(a_process_without_a_page_is_not_told_that_the_address_is_wrong, struct owner *o)
{
	struct rlimit before, least;
	void *addr = NULL;
	int at;

	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	least = before;
	least.rlim_cur = address_space();
	assert_int_equal(setrlimit(RLIMIT_AS, &least), 0);
	at = perseas_map_at(o->p, "large", 4 * GIB, (void *)0x5a0000000000, &addr, NULL);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(at, PERSEAS_ENOMEM);
}

/* The limit that is the nearest to the program is named. */
TEST(each_limit_is_named)
{
	static const struct {
		struct ps_memory_limits limits;
		const char *words;
	} rows[] = {
		{ { GIB, GIB, '2' }, "1073741824 bytes (ulimit -v)" },
		{ { UINT64_MAX, GIB, '2' }, "1073741824 bytes (ulimit -d)" },
		{ { UINT64_MAX, UINT64_MAX, '2' }, "vm.overcommit_memory is 2" },
		{ { UINT64_MAX, UINT64_MAX, '0' }, "vm.overcommit_memory is 0" },
		{ { UINT64_MAX, UINT64_MAX, '1' }, "vm.max_map_count" },
		{ { UINT64_MAX, UINT64_MAX, '?' }, "vm.max_map_count" },
	};
	char text[PS_MEMORY_LIMIT_TEXT];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strstr(ps_memory_limit_text(&rows[i].limits, text), rows[i].words))
			fail_msg("%u: %s", i, text);
}
