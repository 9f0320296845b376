/*
 * test_large_page.c - an owner over shared memory maps the large pages of a mirror's files as such,
 * so that the kernel has little to undo when it is killed.
 */
#include "large_pages.h"

#include "../../client/core/address.h"
#include "../../client/core/fabric.h"
#include "../../proto/base/large_page.h"
#include "../support/unit.h"

#include <sys/stat.h>

enum { EPOCH = 7, REGIONS = 3 };

static const struct ps_address here = { .scheme = PS_SCHEME_UNIX, .text = "unix:///mirror" };

/* Log, promise and a segment, as a mirror gives them away: all files in memory. */
struct grant {
	Perseas__Region regions[REGIONS], *list[REGIONS];
	Perseas__Grant grant;
	int fds[REGIONS];
};

static void add_region(struct grant *g, uint32_t id, uint64_t length)
{
	const unsigned i = (unsigned)g->grant.n_regions++;

	g->fds[i] = memfd_create("perseas-large-test", MFD_CLOEXEC);
	assert_true(g->fds[i] >= 0);
	assert_int_equal(ftruncate(g->fds[i], (off_t)length), 0);
	perseas__region__init(&g->regions[i]);
	g->regions[i].id = id;
	g->regions[i].length = length;
	g->list[i] = &g->regions[i];
	g->grant.descriptors++;
}

static void make_grant(struct grant *g, uint64_t size)
{
	const struct ps_promise promise = { .epoch = EPOCH };

	perseas__grant__init(&g->grant);
	g->grant.regions = g->list;
	add_region(g, PS_REGION_LOG, PS_RING_OFFSET + 8192);
	add_region(g, PS_REGION_PROMISE, PS_PAGE);
	add_region(g, PS_REGION_SEGMENT, size);
	assert_int_equal(pwrite(g->fds[1], &promise, sizeof(promise), 0), sizeof(promise));
}

/* Returns where this process has mapped the file with that inode, or NULL. */
static const uint8_t *find_mapping(ino_t file)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start = 0, inode;
	const uint8_t *base = NULL;
	char line[512];

	while (maps && !base && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%*x %*s %*x %*s %lu", &start, &inode) == 2 && inode == file)
			base = (const uint8_t *)(uintptr_t)start;
	if (maps)
		fclose(maps);
	return base;
}

/* More than an owner maps page by page at once, and less. */
TEST(a_mirrors_large_pages_are_mapped_as_such)
{
	static const uint64_t sizes[] = { (uint64_t)300 << 20, 2 * LARGE };
	const uint64_t value = 5;
	struct ps_write write = { &value, 4096, PS_REGION_SEGMENT, sizeof(value) };
	const struct ps_chain chain = { .writes = &write, .write_count = 1 };
	struct ps_error error;

	if (!can_be_large_shared())
		skip();
	for (unsigned i = 0; i < 2; i++) {
		const unsigned long refused = count_refused();
		struct grant g = { .fds = { -1, -1, -1 } };
		const uint8_t *base;
		struct ps_link *link;
		struct stat segment;

		make_grant(&g, sizes[i]);
		assert_int_equal(fstat(g.fds[2], &segment), 0);
		if (!make_large(g.fds[2])) {
			assert_int_not_equal(count_refused(), refused);
			skip();
		}
		link = ps_fabric_shm.attach(NULL, &here, &g.grant, g.fds, EPOCH, 0, &error);
		assert_non_null(link);
		assert_int_equal(ps_fabric_shm.post(link, &chain), PS_LINK_OK);
		base = find_mapping(segment.st_ino);
		assert_non_null(base);
		assert_int_equal(base[4096], value);
		assert_in_range(count_large_shared(base), LARGE, sizes[i]);
		ps_fabric_shm.detach(link);
	}
}

/* The result does not depend on what the kernel would choose. */
TEST(a_place_is_a_multiple_of_a_large_page)
{
	assert_null(ps_large_page_hint(PS_LARGE_PAGE - 1));
	assert_null(ps_large_page_hint(UINT64_MAX));
	for (uint64_t length = PS_LARGE_PAGE; length < 20 * PS_LARGE_PAGE; length += 4096 * 37) {
		const void *place = ps_large_page_hint(length);

		assert_non_null(place);
		assert_int_equal((uintptr_t)place % PS_LARGE_PAGE, 0);
	}
}
