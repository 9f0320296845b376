/*
 * test_uncounted.c - images in a tmpfs whose memory other control groups are charged for, in a tree
 * of groups of the test's own: the limit of the daemon's group does not count them.
 */
#include "../../server/host/cgroup.h"
#include "../../server/memory/memory_place.h"
#include "../support/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IMAGES = 1000 };

static char place[64], self[80], root[80];

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	fclose(file);
}

/* A file of the daemon's group. */
static void put_group(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/service/%s", root, name);
	put(path, text);
}

static int setup(void **state)
{
	char path[160];

	(void)state;
	strcpy(place, "/dev/shm/perseas-uncounted-XXXXXX");
	if (!mkdtemp(place))
		return -1;
	snprintf(self, sizeof(self), "%s/self", place);
	snprintf(root, sizeof(root), "%s/root", place);
	snprintf(path, sizeof(path), "%s/service", root);
	if (mkdir(root, 0700) || mkdir(path, 0700))
		return -1;
	put(self, "0::/service\n");
	cgroup_set_paths(self, root);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	cgroup_set_paths(NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf '%s'", place);
	return system(command);
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Returns what is not counted of IMAGES bytes in this directory. */
static uint64_t uncounted(const char *directory)
{
	const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t bytes;

	assert_true(fd >= 0);
	bytes = memory_place_uncounted(fd, IMAGES);
	close(fd);
	return bytes;
}

/* Memory that is swapped out is counted. */
TEST(what_the_group_is_not_charged_for_is_uncounted)
{
	put_group("memory.max", "100000\n");
	put_group("memory.stat", "anon 5000\nshmem 300\n");
	assert_int_equal(uncounted(place), IMAGES - 300);
	put_group("memory.swap.current", "200\n");
	assert_int_equal(uncounted(place), IMAGES - 500);
	put_group("memory.stat", "shmem 5000\n");
	assert_int_equal(uncounted(place), 0);
	put_group("memory.max", "max\n");
	put_group("memory.high", "100000\n");
	put_group("memory.stat", "shmem 300\n");
	assert_int_equal(uncounted(place), IMAGES - 500);
}

/* There is no limit, nobody says what it counts, or the images lie in no tmpfs. */
TEST(nothing_is_said_of_what_is_not_known)
{
	put_group("memory.max", "max\n");
	put_group("memory.stat", "shmem 300\n");
	assert_int_equal(uncounted(place), 0);
	put_group("memory.max", "100000\n");
	assert_int_equal(uncounted(place), IMAGES - 300);
	assert_int_equal(uncounted("/proc"), 0);
	put_group("memory.stat", "anon 300\n");
	assert_int_equal(uncounted(place), 0);
}

TEST(version_1_says_it_in_lines_of_its_own)
{
	char path[160];

	put(self, "4:pids,memory:/box\n");
	snprintf(path, sizeof(path), "%s/memory", root);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/memory/box", root);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/memory/box/memory.limit_in_bytes", root);
	put(path, "100000\n");
	snprintf(path, sizeof(path), "%s/memory/box/memory.stat", root);
	put(path, "shmem 1\ntotal_shmem 300\ntotal_swap 50\n");
	assert_int_equal(uncounted(place), IMAGES - 350);
}
