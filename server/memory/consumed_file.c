/*
 * consumed_file.c - records used spills in files: DIRECTORY/STORE.consumed, one line for each
 * spill. The store logic calls it through consumed.h. A line that a crash cut short is ignored.
 */
#include "../store/consumed.h"

#include "directory.h"
#include "small_file.h"
#include "../store/status.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_ROOM = 160 };

static const char consumed_suffix[] = ".consumed";

struct consumed_file {
	struct consumed consumed; /* must be first */
	struct directory directory;
};

static struct consumed_file *file_of(struct consumed *consumed)
{
	return (struct consumed_file *)consumed;
}

static int set_trouble(struct consumed *consumed, const char *what, const char *name, int error)
{
	snprintf(consumed->trouble, sizeof(consumed->trouble), "%s %.120s: %s", what, name,
	         strerror(error));
	return -1;
}

static bool has_line(const char *text, size_t length, const char *key)
{
	const char *end = text + length;
	const size_t wanted = strlen(key);

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		if (!stop)
			return false;
		if ((size_t)(stop - text) == wanted && !memcmp(text, key, wanted))
			return true;
		text = stop + 1;
	}
	return false;
}

static int file_has(struct consumed *consumed, const char *store, const char *key)
{
	char name[NAME_ROOM];
	uint8_t *bytes;
	size_t length;
	int ret;

	snprintf(name, sizeof(name), "%s%s", store, consumed_suffix);
	ret = small_file_load(file_of(consumed)->directory.fd, name, &bytes, &length);
	if (ret == -STATUS(NO_STORE))
		return 0;
	if (ret)
		return set_trouble(consumed, "reading", name, errno);
	ret = has_line((const char *)bytes, length, key);
	free(bytes);
	return ret;
}

/* The first newline ends a line that a crash may have cut short. Empty lines are ignored. */
static int append_line(int fd, const char *key)
{
	char line[CONSUMED_KEY + 2];
	const int length = snprintf(line, sizeof(line), "\n%s\n", key);

	assert(!strchr(key, '\n'));
	if (length >= (int)sizeof(line)) {
		errno = EINVAL;
		return -1;
	}
	return write(fd, line, (size_t)length) == length ? fsync(fd) : -1;
}

static int file_add(struct consumed *consumed, const char *store, const char *key)
{
	const int directory = file_of(consumed)->directory.fd;
	char name[NAME_ROOM];
	int fd, error = 0;

	snprintf(name, sizeof(name), "%s%s", store, consumed_suffix);
	fd = openat(directory, name, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || append_line(fd, key) < 0 || fsync(directory) < 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	return error ? set_trouble(consumed, "writing", name, error) : 0;
}

static const struct consumed_ops file_ops = { .has = file_has, .add = file_add };

/* State directories always had marks, so no unmarked one is accepted. */
static bool accept_nothing(int directory, const char *name)
{
	(void)directory;
	(void)name;
	return false;
}

struct consumed *consumed_file_new(const char *directory, const char **why)
{
	struct consumed_file *file = calloc(1, sizeof(*file));

	*why = "out of memory";
	if (!file)
		return NULL;
	file->consumed.ops = &file_ops;
	file->directory.fd = file->directory.lock = -1;
	if (directory_open("state", directory, accept_nothing, &file->directory, why) == 0) {
		*why = "the state directory cannot be marked: look at its file system";
		if (file->directory.marked || directory_mark(file->directory.fd) == 0)
			return &file->consumed;
	}
	consumed_file_free(&file->consumed);
	return NULL;
}

void consumed_file_free(struct consumed *consumed)
{
	if (!consumed)
		return;
	directory_close(&file_of(consumed)->directory);
	free(file_of(consumed));
}
