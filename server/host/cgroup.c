/*
 * cgroup.c - reads the limits of control groups, of version 2 (memory.max) and of version 1
 * (memory.limit_in_bytes). memory_place.c asks it. What is not there, or reads like nothing that
 * the kernel writes, is no limit: it must never keep a daemon from its memory for that.
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

/* The daemon itself is left a part of the limit, and at most so many bytes. */
#define OWN_MAX ((uint64_t)64 << 20)
enum {
	TEXT_MAX = 16384,
	OWN_PART = 16, /* one byte in so many */
};

/* How a version of control groups names things. Cache is given back before anybody is killed. */
struct names {
	const char *limit, *high, *used; /* high NULL: there is none */
	const char *cache[2];            /* lines of memory.stat */
};

static const struct names version2 = {
	"memory.max",
	"memory.high",
	"memory.current",
	{ "inactive_file ", "active_file " },
};
static const struct names version1 = {
	"memory.limit_in_bytes",
	NULL,
	"memory.usage_in_bytes",
	{ "total_inactive_file ", "total_active_file " },
};

static const char *self_path, *root_path;

void cgroup_set_place(const char *self, const char *root)
{
	self_path = self;
	root_path = root;
}

/* Reads as much as there is room for. False: there is nothing to read. */
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

/* A number at the end of its line; UINT64_MAX: it is none, as "max". */
static uint64_t number_of(const char *text)
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
	return number_of(text);
}

/* The line that begins with this, where there is one: its number. */
static uint64_t line_of(const char *text, const char *begins)
{
	const size_t length = strlen(begins);
	uint64_t number;

	while (text && strncmp(text, begins, length) != 0) {
		text = strchr(text, '\n');
		text += text ? 1 : 0;
	}
	number = text ? number_of(text + length) : 0;
	return number == UINT64_MAX ? 0 : number;
}

static uint64_t cache_of(const char *folder, const struct names *names, uint64_t used)
{
	char path[PATH_MAX], text[TEXT_MAX];
	uint64_t cache = 0;

	if (snprintf(path, sizeof(path), "%s/memory.stat", folder) >= (int)sizeof(path) ||
	    !read_text(path, text))
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t bytes = line_of(text, names->cache[i]);

		cache += bytes < used - cache ? bytes : used - cache;
	}
	return cache;
}

/* What one group leaves. */
static uint64_t group_room(const char *folder, const struct names *names)
{
	const uint64_t high = read_number(folder, names->high);
	uint64_t limit = read_number(folder, names->limit), used, own;

	limit = high < limit ? high : limit;
	used = limit == UINT64_MAX ? UINT64_MAX : read_number(folder, names->used);
	if (used == UINT64_MAX)
		return UINT64_MAX;
	used -= cache_of(folder, names, used);
	own = limit / OWN_PART < OWN_MAX ? limit / OWN_PART : OWN_MAX;
	limit -= own;
	return used < limit ? limit - used : 0;
}

/* What a group, and all above it, leave. One outside of what is shown here has only the top. */
static uint64_t path_room(const char *root, const char *path, const struct names *names)
{
	char folder[PATH_MAX];
	uint64_t room = UINT64_MAX;

	if (strstr(path, "/.."))
		path = "";
	if (snprintf(folder, sizeof(folder), "%s%s", root, path) >= (int)sizeof(folder))
		return room;
	for (;;) {
		const uint64_t bytes = group_room(folder, names);

		room = bytes < room ? bytes : room;
		if (strlen(folder) <= strlen(root))
			return room;
		*strrchr(folder, '/') = '\0';
	}
}

/* A line of the groups of this process: NUMBER:CONTROLLERS:PATH. */
static uint64_t line_room(const char *root, char *line)
{
	char *controllers = strchr(line, ':'), *path, *save = NULL, folder[PATH_MAX];

	path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path || path[1] != '/')
		return UINT64_MAX;
	*path++ = '\0';
	if (strcmp(line, "0:") == 0)
		return path_room(root, path, &version2);
	for (char *name = strtok_r(controllers + 1, ",", &save); name;
	     name = strtok_r(NULL, ",", &save))
		if (strcmp(name, "memory") == 0 &&
		    snprintf(folder, sizeof(folder), "%s/memory", root) < (int)sizeof(folder))
			return path_room(folder, path, &version1);
	return UINT64_MAX;
}

uint64_t cgroup_room(void)
{
	const char *root = root_path ? root_path : "/sys/fs/cgroup";
	char text[TEXT_MAX], *save = NULL;
	uint64_t room = UINT64_MAX;

	if (!read_text(self_path ? self_path : "/proc/self/cgroup", text))
		return room;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const uint64_t bytes = line_room(root, line);

		room = bytes < room ? bytes : room;
	}
	return room;
}
