/*
 * test_uncounted.c - images in a tmpfs whose memory other control groups are charged for, in a tree
 * of groups of the test's own: the limit of the daemon's group does not count them.
 */
#include "../../server/host/cgroup.h"
#include "../../server/memory/memory_place.h"
#include "../../server/store/memory.h"
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
	bytes = memory_place_bytes_charged_to_other_cgroups(fd, IMAGES);
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

/* Returns what a daemon that starts with these images logs of them. */
static const char *logged_of(struct memory *memory)
{
	static char text[1024];
	const int before = dup(STDERR_FILENO), file = memfd_create("log", MFD_CLOEXEC);
	ssize_t len;

	assert_true(before >= 0 && file >= 0);
	assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
	memory_file_log_charged_to_other_cgroups(memory);
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	len = pread(file, text, sizeof(text) - 1, 0);
	assert_true(len >= 0);
	text[len] = '\0';
	close(file);
	close(before);
	return text;
}

/* The daemon says so, with the option that counts all of them, unless it is less than a MiB. */
TEST(the_daemon_logs_what_is_uncounted)
{
	char images[80];
	struct memory *memory;
	struct piece piece;
	const char *why = NULL;

	put_group("memory.max", "100000000\n");
	put_group("memory.stat", "shmem 0\n");
	snprintf(images, sizeof(images), "%s/images", place);
	assert_int_equal(mkdir(images, 0700), 0);
	memory = memory_file_new(images, 0, false, &why);
	assert_non_null(memory);
	assert_string_equal(logged_of(memory), "");
	assert_int_equal(memory->ops->make(memory, "bank", "log", 2 * MEMORY_ROOM_LEAST, &piece),
	                 0);
	if (!strstr(logged_of(memory), "2097152 of 2097152 bytes") ||
	    !strstr(logged_of(memory), "give --max-memory"))
		fail_msg("%s", logged_of(memory));
	memory->ops->close(memory, &piece);
	memory_file_free(memory);
}
