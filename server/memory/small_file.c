/*
 * small_file.c - replaces and reads small files. memory_file.c calls it for headers.
 *
 * Next to each file is a spare of the same size, whose memory is reserved. New contents are written
 * to the spare, and the two exchange names. This needs no memory, and the old file becomes the next
 * spare. The old file must not be freed before the new one is complete.
 */
#include "small_file.h"

#include "../store/status.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_ROOM = 160 };

#define SMALL_MAX ((off_t)4 << 20) /* largest file that is read */

int file_status(int error)
{
	switch (error) {
	case ENOENT:
		return -STATUS(NO_STORE);
	case ENOSPC:
	case EDQUOT:
	case ENOMEM:
	case EFBIG:
		return -STATUS(NO_MEMORY);
	default:
		return -STATUS(IO);
	}
}

static void compose_spare_name(char spare[NAME_ROOM], const char *name)
{
	snprintf(spare, NAME_ROOM, ".%s.spare", name);
}

static int reserve_space(int fd, size_t size)
{
	struct stat st;
	int error;

	if (fstat(fd, &st) < 0)
		return errno;
	if (st.st_size >= (off_t)size)
		return 0;
	do
		error = posix_fallocate(fd, 0, (off_t)size);
	while (error == EINTR);
	return error;
}

/* Opens the file and reserves `size` bytes. Returns -1 with errno set on failure. */
static int open_and_reserve(int folder, const char *name, size_t size)
{
	int fd = openat(folder, name, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	int error = fd < 0 ? errno : reserve_space(fd, size);

	if (!error)
		return fd;
	if (fd >= 0)
		close(fd);
	errno = error;
	return -1;
}

static int write_all(int fd, const uint8_t *bytes, size_t len)
{
	off_t at = 0;

	while (len > 0) {
		ssize_t n = pwrite(fd, bytes, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		bytes += n;
		at += n;
		len -= (size_t)n;
	}
	return fsync(fd);
}

/* Writes the bytes, followed by zeros to the end of the file, which keeps its size. */
static int write_padded(int fd, const void *bytes, size_t len)
{
	struct stat st;
	uint8_t *whole;
	size_t size;
	int ret;

	if (fstat(fd, &st) < 0)
		return -1;
	size = (size_t)st.st_size > len ? (size_t)st.st_size : len;
	whole = calloc(1, size ? size : 1);
	if (!whole) {
		errno = ENOMEM;
		return -1;
	}
	assert(size >= len);
	memcpy(whole, bytes, len);
	ret = write_all(fd, whole, size);
	free(whole);
	return ret;
}

/* Creates the spare, so that the file can be replaced without allocating memory. */
static int create_spare_file(int folder, const char *name, size_t size)
{
	char spare[NAME_ROOM];
	int fd;

	compose_spare_name(spare, name);
	fd = open_and_reserve(folder, spare, size);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/* Gives the first file its name, after creating its spare. Returns 1, or -1 with errno set. */
static int create_file_and_spare(int folder, const char *name, const char *written_name,
                                 size_t size)
{
	char first[NAME_ROOM];

	snprintf(first, sizeof(first), ".%s.first", name);
	if (renameat(folder, written_name, folder, first) < 0)
		return -1;
	if (create_spare_file(folder, name, size) == 0 &&
	    renameat(folder, first, folder, name) == 0)
		return 1;
	(void)unlinkat(folder, first, 0);
	return -1;
}

/* Extends the spare if an older version made a smaller one. If that fails, the next replacement
 * tries again. */
static void grow_spare_file(int folder, const char *name, size_t size)
{
	(void)create_spare_file(folder, name, size);
}

/* Exchanges the names of the file and of the file `written_name`. Returns 1 if there was no file
 * before, 0 if it was replaced, or -1 with errno set. */
static int exchange_file_and_spare(int folder, const char *name, const char *written_name,
                                   size_t size)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? create_file_and_spare(folder, name, written_name, size)
		                       : -1;
	if (renameat2(folder, written_name, folder, name, RENAME_EXCHANGE) < 0) {
		/* A file system that cannot exchange names: the spare is created again. */
		if (errno != EINVAL || renameat(folder, written_name, folder, name) < 0)
			return -1;
	}
	grow_spare_file(folder, name, size);
	return 0;
}

/* Flushes the exchange of names to the disk. If that fails, undoes the exchange: the caller
 * continues with the old state and removes the pieces that the new contents name, so the next start
 * must not find the new contents. */
static int sync_folder_or_undo(int folder, const char *name, const char *written_name, bool first)
{
	int error;

	if (fsync(folder) == 0)
		return 0;
	error = errno;
	if (first)
		(void)unlinkat(folder, name, 0);
	else
		(void)renameat2(folder, written_name, folder, name, RENAME_EXCHANGE);
	errno = error;
	return -1;
}

int small_file_replace(int folder, const char *name, const void *bytes, size_t len)
{
	const size_t size = len > SMALL_FILE_ROOM ? len : SMALL_FILE_ROOM;
	char spare[NAME_ROOM];
	int fd, error, first;

	compose_spare_name(spare, name);
	fd = open_and_reserve(folder, spare, size);
	error = fd < 0 || write_padded(fd, bytes, len) < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (!error && ((first = exchange_file_and_spare(folder, name, spare, size)) < 0 ||
	               sync_folder_or_undo(folder, name, spare, first) < 0))
		error = errno;
	errno = error;
	return error ? file_status(error == ENOENT ? EIO : error) : 0;
}

void small_file_remove_spare(int folder, const char *name)
{
	char spare[NAME_ROOM];

	compose_spare_name(spare, name);
	(void)unlinkat(folder, spare, 0);
	snprintf(spare, sizeof(spare), ".%s.first", name);
	(void)unlinkat(folder, spare, 0);
}

uint64_t small_file_spare_bytes(int folder, const char *name)
{
	char spare[NAME_ROOM];
	struct stat st;

	compose_spare_name(spare, name);
	if (fstatat(folder, spare, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_size;
}

static int read_all(int fd, uint8_t **bytes, size_t *len)
{
	struct stat st;
	size_t have = 0;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SMALL_MAX)
		return -STATUS(DAMAGED);
	*bytes = malloc((size_t)st.st_size + 1);
	if (!*bytes)
		return file_status(ENOMEM);
	while (have < (size_t)st.st_size) {
		ssize_t n = read(fd, *bytes + have, (size_t)st.st_size - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(*bytes);
			return -STATUS(IO);
		}
		have += (size_t)n;
	}
	*len = have;
	return 0;
}

int small_file_load(int folder, const char *name, uint8_t **bytes, size_t *len)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int ret = fd < 0 ? file_status(errno) : read_all(fd, bytes, len);

	if (fd >= 0)
		close(fd);
	return ret;
}
