/*
 * test_core_dump.c - which memory a core dump of this process would have, as the kernel tells
 * of each mapping.
 */
#include "../../client/core/ring.h"
#include "../../client/demand/fetch_connection.h"
#include "../../client/demand/warm.h"
#include "../../proto/base/core_dump.h"
#include "../../proto/image/sigbus_guard.h"
#include "../../server/memory/piece_file.h"
#include "../../server/store/memory.h"
#include "../support/unit.h"
#include "owner.h"

enum { LARGE = 1 << 20 };

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
	void *base = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool omitted;

	assert_ptr_not_equal(base, MAP_FAILED);
	assert_false(is_omitted(base));
	ps_core_dump_omit(base, LARGE);
	omitted = is_omitted(base);
	munmap(base, LARGE);
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

	assert_int_equal(ps_ring_init(&ring, LARGE), 0);
	assert_true(is_omitted(ring.base));
	ps_ring_free(&ring);
}

/* The copy of a store that a standby keeps: the bytes of a segment, and the states of its pages. */
TEST(the_copy_of_a_standby_is_left_out)
{
	static const uint8_t store_id[PS_ID_SIZE];
	const struct ps_segment_key key = { .size = LARGE };
	struct ps_warm_copy *warm = ps_warm_new(store_id);

	assert_non_null(warm);
	assert_true(ps_warm_add_segment(warm, &key, 0));
	assert_true(is_omitted(warm->parts[0].bytes));
	assert_true(is_omitted(warm->parts[0].state));
	ps_warm_free(warm);
}

TEST(what_is_fetched_on_demand_is_left_out)
{
	struct ps_fetch_connection reach;

	assert_true(ps_fetch_connection_init(&reach));
	assert_true(is_omitted(reach.memory));
	assert_true(is_omitted(reach.room));
	ps_fetch_connection_free(&reach);
}

/* The memory of an image, as its daemon maps it. */
TEST(the_memory_of_a_mirror_is_left_out)
{
	const int fd = memfd_create("piece", MFD_CLOEXEC);
	struct piece piece;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, LARGE), 0);
	assert_int_equal(piece_file_map(AT_FDCWD, "segment", fd, LARGE, &piece), 0);
	assert_true(is_omitted(piece.base));
	ps_guard_free(piece.guard);
	munmap(piece.base, LARGE);
	close(fd);
}

/* A segment, and the copy of its committed contents that tracked transactions are compared with. */
TEST(segments_and_their_shadows_are_left_out)
{
	struct owner *o = owner_new(1);

	owner_begin(o);
	owner_die(o);
	assert_int_equal(owner_open(o, PERSEAS_TRACKED), 0);
	owner_map(o);
	assert_true(is_omitted(o->p->segments[0].base));
	assert_non_null(o->p->segments[0].shadow);
	assert_true(is_omitted(o->p->segments[0].shadow));
	owner_free(o);
}
