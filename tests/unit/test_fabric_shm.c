/*
 * test_fabric_shm.c - the data path over shared memory, against files that stand for a mirror's.
 */
#include "../../client/core/address.h"
#include "../../client/core/fabric.h"
#include "../../proto/image/sigbus_guard.h"
#include "../support/unit.h"

#define FILE_NAME "perseas-shm-test"

enum {
	EPOCH = 7,
	LOG_SIZE = PS_RING_OFFSET + 8192,
	SEGMENT_SIZE = 16384,
	FILES = 4, /* log, promise, segments 0 and 5 */
};

static const uint32_t ids[FILES] = {
	PS_REGION_LOG,
	PS_REGION_PROMISE,
	PS_REGION_SEGMENT,
	PS_REGION_SEGMENT + 5,
};

static const uint64_t sizes[FILES] = { LOG_SIZE, PS_PAGE, SEGMENT_SIZE, SEGMENT_SIZE };

/* A mirror's files, and the grant that gives them away. */
struct fixture {
	int files[FILES];
	uint8_t *memory[FILES];
	Perseas__Region regions[FILES];
	Perseas__Region *list[FILES];
	Perseas__Grant grant;
	int fds[FILES]; /* given to the link, which closes them */
	int open_before;
};

static const struct ps_address here = { .scheme = PS_SCHEME_UNIX, .text = "unix:///mirror" };

static int open_descriptors(void)
{
	int count = 0, fd;

	for (fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Descriptors of the first `count` files, as a reply would bring them. */
static void give(struct fixture *f, unsigned count)
{
	unsigned i;

	f->open_before = open_descriptors();
	for (i = 0; i < count; i++) {
		/* An owner gets a promise that it cannot write. */
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", f->files[i]);
		f->fds[i] = open(path,
		                 (ids[i] == PS_REGION_PROMISE ? O_RDONLY : O_RDWR) | O_CLOEXEC);
		assert_true(f->fds[i] >= 0);
		perseas__region__init(&f->regions[i]);
		f->regions[i].id = ids[i];
		f->regions[i].length = sizes[i];
		f->list[i] = &f->regions[i];
	}
	perseas__grant__init(&f->grant);
	f->grant.regions = f->list;
	f->grant.n_regions = count;
	f->grant.descriptors = count;
}

static struct ps_promise *promise(struct fixture *f)
{
	return (struct ps_promise *)(void *)f->memory[1];
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int i;

	for (i = 0; i < FILES; i++) {
		f->files[i] = memfd_create(FILE_NAME, MFD_CLOEXEC);
		if (f->files[i] < 0 || ftruncate(f->files[i], (off_t)sizes[i]))
			return -1;
		f->memory[i] = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_SHARED, f->files[i],
		                    0);
	}
	promise(f)->epoch = EPOCH;
	give(f, FILES);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int i;

	for (i = 0; i < FILES; i++) {
		munmap(f->memory[i], sizes[i]);
		close(f->files[i]);
	}
	free(f);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static struct ps_link *attach(struct fixture *f)
{
	struct ps_error error;
	struct ps_link *link = ps_fabric_shm.attach(NULL, &here, &f->grant, f->fds, EPOCH, 0,
	                                            &error);

	if (!link)
		fail_msg("%s", error.text);
	return link;
}

static struct ps_write write_of(const void *src, uint32_t region, uint64_t offset, uint32_t length)
{
	return (struct ps_write){ src, offset, region, length };
}

static int post_one(struct ps_link *link, struct ps_write write)
{
	struct ps_chain chain = { .writes = &write, .write_count = 1 };

	return ps_fabric_shm.post(link, &chain);
}

/* A commit's chain is posted: its sources may change at once afterwards. */
TEST(a_chain_is_in_the_mirrors_memory_when_post_returns, struct fixture *f)
{
	struct ps_link *link = attach(f);
	char record[100], data[300], slot[40];
	struct ps_write writes[] = {
		write_of(record, PS_REGION_LOG, PS_RING_OFFSET + 64, sizeof(record)),
		write_of(data, PS_REGION_SEGMENT, 1, sizeof(data)),
		write_of(data + 7, PS_REGION_SEGMENT + 5, SEGMENT_SIZE - 9, 9),
	};
	struct ps_chain chain = { writes, 3, 1, write_of(slot, PS_REGION_LOG, 128, 40) };

	memset(record, 'r', sizeof(record));
	memset(data, 'd', sizeof(data));
	memset(slot, 's', sizeof(slot));
	assert_false(ps_fabric_shm.staged);
	assert_int_equal(ps_fabric_shm.poll(link), 0);
	assert_int_equal(ps_fabric_shm.post(link, &chain), PS_LINK_OK);
	assert_int_equal(ps_fabric_shm.post(link, &chain), PS_LINK_OK);
	assert_memory_equal(f->memory[0] + PS_RING_OFFSET + 64, record, sizeof(record));
	assert_memory_equal(f->memory[2] + 1, data, sizeof(data));
	assert_memory_equal(f->memory[3] + SEGMENT_SIZE - 9, data, 9);
	assert_memory_equal(f->memory[0] + 128, slot, sizeof(slot));
	assert_int_equal(ps_fabric_shm.poll(link), 2);
	assert_int_equal(ps_fabric_shm.poll(link), 0);
	assert_false(ps_fabric_shm.waits(link, NULL));
	ps_fabric_shm.detach(link);
}

/* Writes of every short length at odd places arrive as a whole, and change nothing else. */
TEST(a_write_changes_its_own_bytes_only, struct fixture *f)
{
	struct ps_link *link = attach(f);
	uint8_t source[640], expected[1024];
	uint32_t length, at;

	for (length = 0; length < sizeof(source); length++)
		source[length] = (uint8_t)(length * 7 + 1);
	for (length = 1; length <= 600; length++) {
		at = 64 + length % 31;
		memset(f->memory[2], 0xee, sizeof(expected));
		memset(expected, 0xee, sizeof(expected));
		memcpy(expected + at, source + length % 13, length);
		assert_int_equal(post_one(link, write_of(source + length % 13, PS_REGION_SEGMENT,
		                                         at, length)),
		                 PS_LINK_OK);
		assert_memory_equal(f->memory[2], expected, sizeof(expected));
	}
	assert_int_equal(ps_fabric_shm.poll(link), 600);
	ps_fabric_shm.detach(link);
}

/* Other promises of a mirror, and the link's state with each. A mirror that ends retires its
 * promise and gives it to nobody: the owner may connect again. */
static const struct {
	uint64_t epoch;
	int result;
} promises[] = {
	{ EPOCH + 1, PS_LINK_FENCED },
	{ PS_PROMISE_RETIRED, PS_LINK_BROKEN },
};

/* Between two commits. */
TEST(a_chain_after_another_promise_does_not_complete, struct fixture *f)
{
	uint64_t value = 0;
	struct ps_write write = write_of(&value, PS_REGION_SEGMENT, 0, sizeof(value));

	for (unsigned i = 0; i < sizeof(promises) / sizeof(promises[0]); i++) {
		struct ps_link *link = attach(f);

		value = 1;
		assert_int_equal(post_one(link, write), PS_LINK_OK);
		promise(f)->epoch = promises[i].epoch;
		assert_int_equal(post_one(link, write), promises[i].result);
		/* A chain that was complete before still counts, once. */
		assert_int_equal(ps_fabric_shm.poll(link), 1);
		assert_int_equal(ps_fabric_shm.poll(link), promises[i].result);
		/* For good, whatever the page says later; and nothing more is stored. */
		promise(f)->epoch = EPOCH;
		value = 2;
		assert_int_equal(post_one(link, write), promises[i].result);
		assert_int_equal(f->memory[2][0], 1);
		ps_fabric_shm.detach(link);
		give(f, FILES);
	}
	ps_fabric_shm.detach(attach(f));
}

/* A mistake of ours: writes and reads that are not inside a region that may be written. */
TEST(what_lies_outside_a_region_is_refused, struct fixture *f)
{
	static const struct {
		uint64_t offset;
		uint32_t region, length;
	} bad[] = {
		{ SEGMENT_SIZE, PS_REGION_SEGMENT, 1 },
		{ SEGMENT_SIZE - 7, PS_REGION_SEGMENT, 8 },
		{ UINT64_MAX - 3, PS_REGION_SEGMENT, 8 },
		{ 0, PS_REGION_SEGMENT, SEGMENT_SIZE + 1 },
		{ 0, PS_REGION_SEGMENT + 1, 8 },
		{ 0, PS_REGION_SEGMENT - 1, 8 },
		{ 0, PS_REGIONS_MAX, 8 },
		{ 0, UINT32_MAX, 8 },
		{ 0, PS_REGION_PROMISE, 8 },
	};
	static uint8_t source[SEGMENT_SIZE + 1];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ps_link *link = attach(f);

		assert_int_equal(post_one(link, write_of(source, bad[i].region, bad[i].offset,
		                                         bad[i].length)),
		                 PS_LINK_BROKEN);
		assert_int_equal(ps_fabric_shm.poll(link), PS_LINK_BROKEN);
		ps_fabric_shm.detach(link);
		give(f, FILES);
		if (bad[i].region == PS_REGION_PROMISE)
			continue;
		link = attach(f);
		assert_int_equal(ps_fabric_shm.read(link, bad[i].region, bad[i].offset, source,
		                                    bad[i].length, 0),
		                 PS_LINK_BROKEN);
		ps_fabric_shm.detach(link);
		give(f, FILES);
	}
	ps_fabric_shm.detach(attach(f));
}

TEST(every_region_can_be_read, struct fixture *f)
{
	struct ps_link *link = attach(f);
	uint8_t bytes[64];
	int i;

	for (i = 0; i < FILES; i++) {
		if (ids[i] != PS_REGION_PROMISE)
			memset(f->memory[i], 'a' + i, sizes[i]);
		memset(bytes, 0, sizeof(bytes));
		assert_int_equal(ps_fabric_shm.read(link, ids[i], sizes[i] - 64, bytes, 64, 0),
		                 PS_LINK_OK);
		assert_memory_equal(bytes, f->memory[i] + sizes[i] - 64, 64);
	}
	ps_fabric_shm.detach(link);
}

static void expect_refusal(struct fixture *f, int code, const char *word)
{
	struct ps_error error = { 0 };

	assert_null(ps_fabric_shm.attach(NULL, &here, &f->grant, f->fds, EPOCH, 0, &error));
	assert_int_equal(error.code, code);
	if (!strstr(error.text, word) || !strstr(error.text, here.text))
		fail_msg("said: %s", error.text);
	assert_int_equal(open_descriptors(), f->open_before);
	give(f, FILES);
}

/* A mirror grants memory that does not match its description: the owner uses none of it, and leaves
 * no descriptor open. */
TEST(a_grant_that_does_not_fit_its_files_is_refused, struct fixture *f)
{
	static const struct {
		unsigned file;
		uint32_t id;
		uint64_t length;
		const char *word;
	} bad[] = {
		{ 2, PS_REGION_SEGMENT, SEGMENT_SIZE + 1, "shorter" },
		{ 2, PS_REGION_SEGMENT, 0, "cannot be" },
		{ 2, PS_REGION_SEGMENT, UINT64_MAX, "shorter" },
		{ 2, PS_REGIONS_MAX, SEGMENT_SIZE, "cannot be" },
		{ 3, PS_REGION_SEGMENT, SEGMENT_SIZE, "cannot be" },
		{ 0, PS_REGION_SEGMENT + 9, LOG_SIZE, "no log" },
		{ 0, PS_REGION_LOG, PS_RING_OFFSET, "no log" },
		{ 1, PS_REGION_PROMISE, sizeof(struct ps_promise) - 1, "no promise" },
	};
	int ends[2];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		f->regions[bad[i].file].id = bad[i].id;
		f->regions[bad[i].file].length = bad[i].length;
		expect_refusal(f, PERSEAS_EPROTOCOL, bad[i].word);
	}
	f->grant.n_regions = FILES - 1;
	expect_refusal(f, PERSEAS_EPROTOCOL, "descriptors");

	close(f->fds[2]);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	f->fds[2] = ends[0];
	close(ends[1]);
	expect_refusal(f, PERSEAS_EPROTOCOL, "shorter");

	promise(f)->epoch = EPOCH + 3;
	expect_refusal(f, PERSEAS_EFENCED, "another owner");
	promise(f)->epoch = EPOCH - 1;
	expect_refusal(f, PERSEAS_EPROTOCOL, "promise");
	promise(f)->epoch = EPOCH;
	ps_fabric_shm.detach(attach(f));
	assert_int_equal(open_descriptors(), f->open_before);
}

/* Lines of this process's map that are of the mirror's files. */
static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	while (fgets(line, sizeof(line), maps))
		count += strstr(line, FILE_NAME) != NULL;
	fclose(maps);
	return count;
}

/* A segment is made, and later dropped again, while the store is open. */
TEST(an_update_maps_what_is_new_and_unmaps_what_went, struct fixture *f)
{
	struct ps_link *link;
	uint64_t value = 5;
	int before;

	ps_fabric_shm.detach(attach(f));
	before = mappings();
	give(f, 3);
	link = attach(f);
	assert_int_equal(mappings(), before + 3);
	give(f, 4);
	assert_int_equal(ps_fabric_shm.update(link, &f->grant, f->fds, NULL), 0);
	assert_int_equal(open_descriptors(), f->open_before);
	assert_int_equal(mappings(), before + 4);
	assert_int_equal(post_one(link, write_of(&value, PS_REGION_SEGMENT + 5, 0, 8)), PS_LINK_OK);
	assert_int_equal(f->memory[3][0], 5);
	give(f, 3);
	assert_int_equal(ps_fabric_shm.update(link, &f->grant, f->fds, NULL), 0);
	assert_int_equal(mappings(), before + 3);
	assert_int_equal(post_one(link, write_of(&value, PS_REGION_SEGMENT, 8, 8)), PS_LINK_OK);
	assert_int_equal(ps_fabric_shm.poll(link), 2);
	assert_int_equal(post_one(link, write_of(&value, PS_REGION_SEGMENT + 5, 0, 8)),
	                 PS_LINK_BROKEN);
	ps_fabric_shm.detach(link);
	assert_int_equal(mappings(), before);
}

/* The image is made anew next to the old one: the same regions in other files. */
TEST(an_update_moves_to_other_files, struct fixture *f)
{
	struct ps_link *link = attach(f);
	uint64_t value = 6;
	int file = memfd_create(FILE_NAME, MFD_CLOEXEC);
	uint64_t found = 0;

	assert_int_equal(ftruncate(file, SEGMENT_SIZE), 0);
	give(f, FILES);
	close(f->fds[2]);
	f->fds[2] = dup(file);
	assert_int_equal(ps_fabric_shm.update(link, &f->grant, f->fds, NULL), 0);
	assert_int_equal(post_one(link, write_of(&value, PS_REGION_SEGMENT, 0, 8)), PS_LINK_OK);
	assert_int_equal(pread(file, &found, 8, 0), 8);
	assert_int_equal(found, 6);
	assert_int_equal(f->memory[2][0], 0);
	ps_fabric_shm.detach(link);
	close(file);
}

/* An update brings a file that is too short: the link goes on with what it had. */
TEST(a_failed_update_leaves_the_link_as_it_was, struct fixture *f)
{
	struct ps_link *link = attach(f);
	uint64_t value = 9;
	int before = mappings();

	give(f, FILES);
	f->regions[3].length = SEGMENT_SIZE * 2;
	assert_int_equal(ps_fabric_shm.update(link, &f->grant, f->fds, NULL), PERSEAS_EPROTOCOL);
	assert_int_equal(open_descriptors(), f->open_before);
	assert_int_equal(mappings(), before);
	assert_int_equal(post_one(link, write_of(&value, PS_REGION_SEGMENT + 5, 0, 8)), PS_LINK_OK);
	assert_int_equal(ps_fabric_shm.poll(link), 1);
	ps_fabric_shm.detach(link);
}

/* The application forks: its child must not be able to write to the mirror. */
TEST(a_child_does_not_inherit_the_memory, struct fixture *f)
{
	int before = mappings();
	struct ps_link *link = attach(f);
	int status = -1;
	pid_t child;

	assert_int_equal(mappings(), before + FILES);
	child = fork();
	if (child == 0)
		_exit(mappings() == before ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	ps_fabric_shm.detach(link);
}

/* Somebody who had the store before cuts a file short: a segment, and the log. */
TEST(a_link_whose_memory_is_cut_short_breaks, struct fixture *f)
{
	struct ps_link *link = attach(f);
	struct ps_write data = write_of("data", PS_REGION_SEGMENT, 8192, 4);
	struct ps_chain chain = { .writes = &data, .write_count = 1 };
	uint8_t read[64];

	ps_guard_reinstall_handler(); /* over the one of cmocka */
	assert_int_equal(ps_fabric_shm.post(link, &chain), PS_LINK_OK);
	assert_int_equal(ftruncate(f->files[2], 4096), 0);
	assert_int_equal(ps_fabric_shm.post(link, &chain), PS_LINK_BROKEN);
	assert_true(ps_fabric_shm.peek(link, PS_REGION_SEGMENT, 0, read, 64) == PS_LINK_BROKEN);
	ps_fabric_shm.detach(link);
	assert_int_equal(ftruncate(f->files[2], SEGMENT_SIZE), 0);
	give(f, FILES);
	link = attach(f);
	assert_int_equal(ftruncate(f->files[0], 0), 0);
	assert_true(ps_fabric_shm.read(link, PS_REGION_LOG, 64, read, 64, 0) == PS_LINK_BROKEN);
	ps_fabric_shm.detach(link);
}

/* Torn memory is mapped anew, even though the file is as long as before. */
TEST(an_update_maps_torn_memory_anew, struct fixture *f)
{
	struct ps_link *link = attach(f);
	struct ps_error error;
	uint8_t read[4];

	ps_guard_reinstall_handler(); /* over the one of cmocka */
	assert_int_equal(ftruncate(f->files[2], 0), 0);
	/* A peek tears the memory, and leaves the link as it is. */
	assert_int_equal(ps_fabric_shm.peek(link, PS_REGION_SEGMENT, 0, read, 4), PS_LINK_BROKEN);
	assert_int_equal(ftruncate(f->files[2], SEGMENT_SIZE), 0);
	memcpy(f->memory[2], "good", 4);
	give(f, FILES);
	assert_int_equal(ps_fabric_shm.update(link, &f->grant, f->fds, &error), 0);
	assert_int_equal(ps_fabric_shm.read(link, PS_REGION_SEGMENT, 0, read, 4, 0), PS_LINK_OK);
	assert_memory_equal(read, "good", 4);
	ps_fabric_shm.detach(link);
}
