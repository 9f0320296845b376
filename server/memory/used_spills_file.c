/*
 * used_spills_file.c - records used spills in files: DIRECTORY/STORE.consumed, one line for each
 * spill. The store logic calls it through used_spills.h. A line that a crash cut short is ignored.
 */
#include "../store/used_spills.h"

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

static const char used_spills_suffix[] = ".consumed";

struct used_spills_file {
	struct used_spills used_spills; /* must be first */
	struct directory directory;
};

static struct used_spills_file *used_spills_file_of(struct used_spills *used_spills)
{
	return (struct used_spills_file *)used_spills;
}

static int set_reason_and_fail(struct used_spills *used_spills, const char *what, const char *name,
                               int error)
{
	snprintf(used_spills->trouble, sizeof(used_spills->trouble), "%s %.120s: %s", what, name,
	         strerror(error));
	return -1;
}

static bool has_key_line(const char *text, size_t length, const char *key)
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

static int is_spill_used(struct used_spills *used_spills, const char *store, const char *key)
{
	char name[NAME_ROOM];
	uint8_t *bytes;
	size_t length;
	int ret;

	snprintf(name, sizeof(name), "%s%s", store, used_spills_suffix);
	ret = small_file_load(used_spills_file_of(used_spills)->directory.fd, name, &bytes,
	                      &length);
	if (ret == -STATUS(NO_STORE))
		return 0;
	if (ret)
		return set_reason_and_fail(used_spills, "reading", name, errno);
	ret = has_key_line((const char *)bytes, length, key);
	free(bytes);
	return ret;
}

/* Appends the key between two newlines. The first one ends a line that a crash may have cut short;
 * empty lines are ignored. */
static int append_line(int fd, const char *key)
{
	char line[USED_SPILL_KEY + 2];
	const int length = snprintf(line, sizeof(line), "\n%s\n", key);

	assert(!strchr(key, '\n'));
	if (length >= (int)sizeof(line)) {
		errno = EINVAL;
		return -1;
	}
	return write(fd, line, (size_t)length) == length ? fsync(fd) : -1;
}

static int record_used_spill(struct used_spills *used_spills, const char *store, const char *key)
{
	const int directory = used_spills_file_of(used_spills)->directory.fd;
	char name[NAME_ROOM];
	int fd, error = 0;

	snprintf(name, sizeof(name), "%s%s", store, used_spills_suffix);
	fd = openat(directory, name, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || append_line(fd, key) < 0 || fsync(directory) < 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	return error ? set_reason_and_fail(used_spills, "writing", name, error) : 0;
}

static const struct used_spills_ops file_ops = { .has = is_spill_used, .add = record_used_spill };

/* State directories always had marks, so no unmarked one is accepted. */
static bool accept_nothing(int directory, const char *name)
{
	(void)directory;
	(void)name;
	return false;
}

struct used_spills *used_spills_file_new(const char *directory, const char **why)
{
	struct used_spills_file *file = calloc(1, sizeof(*file));

	*why = "out of memory";
	if (!file)
		return NULL;
	file->used_spills.ops = &file_ops;
	file->directory.fd = file->directory.lock_fd = -1;
	if (directory_open("state", directory, accept_nothing, &file->directory, why) == 0) {
		*why = "the state directory cannot be marked: look at its file system";
		if (file->directory.is_marked || directory_mark(file->directory.fd) == 0)
			return &file->used_spills;
	}
	used_spills_file_free(&file->used_spills);
	return NULL;
}

void used_spills_file_free(struct used_spills *used_spills)
{
	if (!used_spills)
		return;
	directory_close(&used_spills_file_of(used_spills)->directory);
	free(used_spills_file_of(used_spills));
}
