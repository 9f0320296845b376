/*
 * cgroup.c - reads the memory limits of control groups, version 2 (memory.max) and version 1
 * (memory.limit_in_bytes). memory_place.c calls it. A missing or unreadable file counts as no
 * limit, and must never keep a daemon from using memory.
 */
#include "cgroup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 1 / RESERVE_PART of the limit is reserved for the daemon itself, but at most RESERVE_MAX
 * bytes. */
#define RESERVE_MAX ((uint64_t)64 << 20)
enum {
	TEXT_MAX = 16384,
	RESERVE_PART = 16,
};

/* The file names of a version of control groups. Cache is not counted, because the kernel frees it
 * before it kills a process. */
struct group_files {
	const char *limit, *high, *used; /* files; high NULL: none */
	const char *cache[2];            /* lines of memory.stat about the page cache */
	/* Lines of memory.stat about tmpfs. swapped NULL: the swapped bytes are in another file. */
	const char *shared, *swapped;
};

/* A function that returns a value of one group, or UINT64_MAX if the group has none. */
typedef uint64_t group_value(const char *folder, const struct group_files *group_files);

static const struct group_files names_v2 = {
	"memory.max", "memory.high", "memory.current", { "inactive_file ", "active_file " },
	"shmem ",     NULL,
};
static const struct group_files names_v1 = {
	"memory.limit_in_bytes", NULL,
	"memory.usage_in_bytes", { "total_inactive_file ", "total_active_file " },
	"total_shmem ",          "total_swap ",
};

static const char *self_path, *root_path;

void cgroup_set_paths(const char *self, const char *root)
{
	self_path = self;
	root_path = root;
}

/* Reads at most TEXT_MAX - 1 bytes of a file. Returns false if it has none. */
static bool read_text(const char *path, char text[TEXT_MAX])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t have = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && have < TEXT_MAX - 1) {
		n = read(fd, text + have, TEXT_MAX - 1 - have);
		have += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	text[have] = '\0';
	return have > 0;
}

/* Parses a number that ends its line. Returns UINT64_MAX for other text, such as "max". */
static uint64_t parse_number(const char *text)
{
	unsigned long long number;
	char *end;

	if (!isdigit((unsigned char)*text))
		return UINT64_MAX;
	errno = 0;
	number = strtoull(text, &end, 10);
	return errno || (*end != '\n' && *end != '\0') ? UINT64_MAX : number;
}

static uint64_t read_number(const char *folder, const char *name)
{
	char path[PATH_MAX], text[TEXT_MAX];

	if (!name || snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path) ||
	    !read_text(path, text))
		return UINT64_MAX;
	return parse_number(text);
}

/* Returns the number in the line that begins with `begins`, or UINT64_MAX if there is none. */
static uint64_t find_number(const char *text, const char *begins)
{
	const size_t length = strlen(begins);

	while (text && strncmp(text, begins, length) != 0) {
		text = strchr(text, '\n');
		text += text ? 1 : 0;
	}
	return text ? parse_number(text + length) : UINT64_MAX;
}

/* Returns the number in the line that begins with `begins`, or 0 if there is none. */
static uint64_t find_number_or_zero(const char *text, const char *begins)
{
	const uint64_t number = find_number(text, begins);

	return number == UINT64_MAX ? 0 : number;
}

static bool read_stat(const char *folder, char text[TEXT_MAX])
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/memory.stat", folder) < (int)sizeof(path) &&
	       read_text(path, text);
}

static uint64_t cached_bytes(const char *folder, const struct group_files *group_files,
                             uint64_t used)
{
	char text[TEXT_MAX];
	uint64_t cache = 0;

	if (!read_stat(folder, text))
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t bytes = find_number_or_zero(text, group_files->cache[i]);

		cache += bytes < used - cache ? bytes : used - cache;
	}
	return cache;
}

/* Returns how many bytes one group has left. */
static uint64_t group_room(const char *folder, const struct group_files *group_files)
{
	const uint64_t high = read_number(folder, group_files->high);
	uint64_t limit = read_number(folder, group_files->limit), used, own;

	limit = high < limit ? high : limit;
	used = limit == UINT64_MAX ? UINT64_MAX : read_number(folder, group_files->used);
	if (used == UINT64_MAX)
		return UINT64_MAX;
	used -= cached_bytes(folder, group_files, used);
	own = limit / RESERVE_PART < RESERVE_MAX ? limit / RESERVE_PART : RESERVE_MAX;
	limit -= own;
	return used < limit ? limit - used : 0;
}

/* Returns how many bytes of tmpfs a group with a limit is charged for, in memory and swapped
 * out. */
static uint64_t group_charged(const char *folder, const struct group_files *group_files)
{
	char text[TEXT_MAX];
	uint64_t shared, swapped;

	if ((read_number(folder, group_files->limit) == UINT64_MAX &&
	     read_number(folder, group_files->high) == UINT64_MAX) ||
	    !read_stat(folder, text))
		return UINT64_MAX;
	shared = find_number(text, group_files->shared);
	swapped = group_files->swapped ? find_number(text, group_files->swapped)
	                               : read_number(folder, "memory.swap.current");
	if (swapped == UINT64_MAX)
		swapped = 0;
	return shared < UINT64_MAX - swapped ? shared + swapped : UINT64_MAX;
}

/* Returns the least value of a group and all groups above it. A group outside of this mount is
 * represented by the root. */
static uint64_t least_on_path(const char *root, const char *path,
                              const struct group_files *group_files, group_value *value_of)
{
	char folder[PATH_MAX];
	uint64_t least = UINT64_MAX;

	if (strstr(path, "/.."))
		path = "";
	if (snprintf(folder, sizeof(folder), "%s%s", root, path) >= (int)sizeof(folder))
		return least;
	for (;;) {
		const uint64_t bytes = value_of(folder, group_files);

		least = bytes < least ? bytes : least;
		if (strlen(folder) <= strlen(root))
			return least;
		*strrchr(folder, '/') = '\0';
	}
}

/* Returns the least value of the groups in a line of /proc/self/cgroup
 * (NUMBER:CONTROLLERS:PATH). */
static uint64_t least_of_line(const char *root, char *line, group_value *value_of)
{
	char *controllers = strchr(line, ':'), *path, *save = NULL, folder[PATH_MAX];

	path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path || path[1] != '/')
		return UINT64_MAX;
	*path++ = '\0';
	if (strcmp(line, "0:") == 0)
		return least_on_path(root, path, &names_v2, value_of);
	for (char *name = strtok_r(controllers + 1, ",", &save); name;
	     name = strtok_r(NULL, ",", &save))
		if (strcmp(name, "memory") == 0 &&
		    snprintf(folder, sizeof(folder), "%s/memory", root) < (int)sizeof(folder))
			return least_on_path(folder, path, &names_v1, value_of);
	return UINT64_MAX;
}

static uint64_t least_value(group_value *value_of)
{
	const char *root = root_path ? root_path : "/sys/fs/cgroup";
	char text[TEXT_MAX], *save = NULL;
	uint64_t least = UINT64_MAX;

	if (!read_text(self_path ? self_path : "/proc/self/cgroup", text))
		return least;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const uint64_t bytes = least_of_line(root, line, value_of);

		least = bytes < least ? bytes : least;
	}
	return least;
}

uint64_t cgroup_room(void)
{
	return least_value(group_room);
}

uint64_t cgroup_charged(void)
{
	return least_value(group_charged);
}
