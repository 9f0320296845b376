/*
 * test_cgroup.c - what control groups leave of memory, in a tree of the test's own. Nothing that
 * stands in their files does harm: what is not understood is no limit.
 */
#include "../../server/host/cgroup.h"
#include "../../server/store/memory.h"
#include "../../server/memory/memory_place.h"
#include "../../server/store/status.h"
#include "../support/memory_folder.h"
#include "../support/unit.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static char place[64], self[128], root[128];

static int setup(void **state)
{
	(void)state;
	memory_folder(place, sizeof(place), "cgroup");
	snprintf(self, sizeof(self), "%s/self", place);
	snprintf(root, sizeof(root), "%s/root", place);
	assert_int_equal(mkdir(root, 0700), 0);
	cgroup_set_paths(self, root);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cgroup_set_paths(NULL, NULL);
	unit_remove_folder(place);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void put_bytes(const char *path, const void *bytes, size_t len)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

/* A file of a group, below the root; the group is made when it is not there. */
static void put(const char *group, const char *name, const char *text)
{
	char path[256];

	for (const char *end = *group ? strchr(group + 1, '/') : NULL; *group;
	     end = strchr(end + 1, '/')) {
		snprintf(path, sizeof(path), "%s%.*s", root,
		         end ? (int)(end - group) : (int)strlen(group), group);
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		if (!end)
			break;
	}
	snprintf(path, sizeof(path), "%s%s/%s", root, group, name);
	put_bytes(path, text, strlen(text));
}

/* A group's limit, and what it uses of it. */
static void put_memory(const char *group, const char *max, const char *current)
{
	put(group, "memory.max", max);
	put(group, "memory.current", current);
}

static void put_self(const char *text)
{
	put_bytes(self, text, strlen(text));
}

/* A sixteenth of a small limit, and 64 MiB of a large one, are the daemon's own. */
TEST(the_least_of_all_groups_above_counts)
{
	put_self("0::/system.slice/perseasd.service\n");
	assert_true(cgroup_room() == UINT64_MAX);
	put_memory("/system.slice", "max\n", "123456\n");
	put_memory("/system.slice/perseasd.service", "4294967296\n", "1073741824\n");
	assert_int_equal(cgroup_room(), 3 * GIB - 64 * MIB);
	/* The page cache goes before anybody is killed. */
	put("/system.slice/perseasd.service", "memory.stat",
	    "anon 5\ninactive_file 4096\nactive_file 8192\nworkingset_active_file 7\n");
	assert_int_equal(cgroup_room(), 3 * GIB - 64 * MIB + 12288);
	put_memory("/system.slice", "167772160\n", "104857600\n");
	assert_int_equal(cgroup_room(), 50 * MIB);
	put("/system.slice", "memory.high", "104857600\n");
	assert_int_equal(cgroup_room(), 0);
}

TEST(version_1_has_a_tree_of_its_own)
{
	put_self("5:cpu,cpuacct:/a\n4:pids,memory:/box\n0::/\n");
	put("/memory", "memory.limit_in_bytes", "9223372036854771712\n");
	put("/memory", "memory.usage_in_bytes", "1000\n");
	assert_true(cgroup_room() > (uint64_t)1 << 60);
	put("/memory/box", "memory.limit_in_bytes", "2147483648\n");
	put("/memory/box", "memory.usage_in_bytes", "1073741824\n");
	put("/memory/box", "memory.stat", "inactive_file 9\ntotal_inactive_file 4096\n");
	assert_int_equal(cgroup_room(), GIB - 64 * MIB + 4096);
}

/* In a container the path may be the host's, while only the container's own part is visible. */
TEST(a_group_that_is_not_shown_has_the_top)
{
	put_memory("", "1073741824\n", "0\n");
	put_self("0::/docker/0123456789\n");
	assert_int_equal(cgroup_room(), GIB - 64 * MIB);
	put_self("0::/../other\n");
	assert_int_equal(cgroup_room(), GIB - 64 * MIB);
}

TEST(what_is_not_understood_is_no_limit)
{
	static const char *const lines[] = {
		"",
		"\n\n",
		":",
		"::",
		"0::",
		"0::relative\n",
		"0:",
		"memory",
		"4:memory",
		"4:memory:",
		"0::/\xff\xfe\n",
		"99999999999999999999:memory:/x\n",
		":,,,:/\n",
	};
	static const char *const numbers[] = {
		"",
		"\n",
		"-1\n",
		"+5\n",
		" 5\n",
		"5x\n",
		"1e3\n",
		"0x10\n",
		"maximum\n",
		"18446744073709551616\n",
		"99999999999999999999999999\n",
	};
	static char large[1 << 16];

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		put_self(lines[i]);
		assert_true(cgroup_room() == UINT64_MAX);
	}
	memset(large, '/', sizeof(large));
	memcpy(large, "0::", 3);
	put_bytes(self, large, sizeof(large));
	assert_true(cgroup_room() == UINT64_MAX);
	memset(large, 0, sizeof(large));
	put_bytes(self, large, sizeof(large));
	assert_true(cgroup_room() == UINT64_MAX);
	put_self("0::/\n");
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		put_memory("", numbers[i], "4096\n");
		assert_true(cgroup_room() == UINT64_MAX);
		put_memory("", "4294967296\n", numbers[i]);
		assert_true(cgroup_room() == UINT64_MAX);
		/* Cache that is more than all that is used is all of it. */
		put("", "memory.current", "4096\n");
		put("", "memory.stat", "inactive_file 18446744073709551615\nactive_file 9999999");
		assert_true(cgroup_room() <= 4 * GIB - 64 * MIB);
	}
	unlink(self);
	assert_true(cgroup_room() == UINT64_MAX);
	assert_int_equal(mkdir(self, 0700), 0);
	assert_true(cgroup_room() == UINT64_MAX);
}

/* The daemon refuses what would have it killed, and says what to raise; what fits is made. */
TEST(memory_beyond_the_limit_is_refused)
{
	const char *why;
	char directory[128], text[200];
	struct memory *memory;
	struct piece piece;
	int fd;

	put_self("0::/service\n");
	put_memory("/service", "167772160\n", "104857600\n");
	snprintf(directory, sizeof(directory), "%s/memory", place);
	memory = memory_file_new(directory, 0, false, &why);
	assert_non_null(memory);
	fd = open(directory, O_RDONLY | O_DIRECTORY);
	assert_int_equal(memory_place_free_bytes(fd, PLACE_MEMORY, &why), 50 * MIB);
	assert_non_null(why);
	assert_true(memory_place_free_bytes(fd, PLACE_DISK, &why) != 50 * MIB);
	assert_null(why);
	close(fd);
	assert_int_equal(memory->ops->make(memory, "bank", "log.1", 51 * MIB, &piece),
	                 -STATUS(NO_MEMORY));
	assert_non_null(memory->ops->advice(memory));
	assert_non_null(strstr(memory->ops->advice(memory), "control group"));
	assert_true(memory->ops->usable(memory, text, sizeof(text)));
	assert_int_equal(memory->ops->room(memory), 50 * MIB);
	assert_int_equal(memory->ops->make(memory, "bank", "log.1", MIB, &piece), 0);
	memory->ops->close(memory, &piece);
	/* The file system's room, and the limit, are told as before. */
	assert_int_equal(memory->ops->make(memory, "bank", "log.1", (uint64_t)1 << 60, &piece),
	                 -STATUS(NO_MEMORY));
	put("/service", "memory.current", "167772160\n");
	assert_false(memory->ops->usable(memory, text, sizeof(text)));
	assert_non_null(strstr(text, "control group"));
	assert_int_equal(memory->ops->room(memory), 0);
	put("/service", "memory.max", "max\n");
	assert_int_equal(memory->ops->make(memory, "bank", "log.1", (uint64_t)1 << 60, &piece),
	                 -STATUS(NO_MEMORY));
	assert_null(memory->ops->advice(memory));
	memory_file_free(memory);
}
