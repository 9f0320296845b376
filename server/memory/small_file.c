/*
 * small_file.c - replaces and reads small files. memory_file.c calls it, for headers.
 *
 * Beside the file lies a spare one of the same size, whose memory is reserved. New bytes are
 * written into the spare, and the two change names: that needs no memory, and what was the file is
 * the next spare. It must never free the one before the other is whole.
 */
#include "small_file.h"

#include "../store/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_ROOM = 160 };

#define SMALL_MAX ((off_t)4 << 20) /* bytes of a file that is read */

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

static void name_spare(char spare[NAME_ROOM], const char *name)
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

/* Opens it with room for so many bytes; -1 with errno. */
static int open_with_room(int folder, const char *name, size_t size)
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

/* The bytes, and zeros up to the end of the file, which keeps its size. */
static int fill_file(int fd, const void *bytes, size_t len)
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
	memcpy(whole, bytes, len);
	ret = write_all(fd, whole, size);
	free(whole);
	return ret;
}

/* A second file, so that the first one can be replaced without any memory. */
static int add_spare(int folder, const char *name, size_t size)
{
	char spare[NAME_ROOM];
	int fd;

	name_spare(spare, name);
	fd = open_with_room(folder, spare, size);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/* The file is not there yet: the new one becomes it, and a spare is there before. 1, or -1. */
static int put_first(int folder, const char *name, const char *written, size_t size)
{
	char first[NAME_ROOM];

	snprintf(first, sizeof(first), ".%s.first", name);
	if (renameat(folder, written, folder, first) < 0)
		return -1;
	if (add_spare(folder, name, size) == 0 && renameat(folder, first, folder, name) == 0)
		return 1;
	(void)unlinkat(folder, first, 0);
	return -1;
}

/* A version before this left a smaller file, which is the spare now. Without room for more the
 * next replacement asks for it again. */
static void grow_spare(int folder, const char *name, size_t size)
{
	(void)add_spare(folder, name, size);
}

/* 1: it is the first one; 0, or -1. */
static int swap_files(int folder, const char *name, const char *written, size_t size)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? put_first(folder, name, written, size) : -1;
	if (renameat2(folder, written, folder, name, RENAME_EXCHANGE) < 0) {
		/* A file system that cannot exchange: what is kept is made again. */
		if (errno != EINVAL || renameat(folder, written, folder, name) < 0)
			return -1;
	}
	grow_spare(folder, name, size);
	return 0;
}

/* Where it is not known whether the disk has the names, who asked goes on as before, and removes
 * what the new bytes name: the next start must not find them. */
static int flush_names(int folder, const char *name, const char *written, bool first)
{
	int error;

	if (fsync(folder) == 0)
		return 0;
	error = errno;
	if (first)
		(void)unlinkat(folder, name, 0);
	else
		(void)renameat2(folder, written, folder, name, RENAME_EXCHANGE);
	errno = error;
	return -1;
}

int small_file_replace(int folder, const char *name, const void *bytes, size_t len)
{
	const size_t size = len > SMALL_FILE_ROOM ? len : SMALL_FILE_ROOM;
	char spare[NAME_ROOM];
	int fd, error, first;

	name_spare(spare, name);
	fd = open_with_room(folder, spare, size);
	error = fd < 0 || fill_file(fd, bytes, len) < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (!error && ((first = swap_files(folder, name, spare, size)) < 0 ||
	               flush_names(folder, name, spare, first) < 0))
		error = errno;
	errno = error;
	return error ? file_status(error == ENOENT ? EIO : error) : 0;
}

void small_file_forget(int folder, const char *name)
{
	char spare[NAME_ROOM];

	name_spare(spare, name);
	(void)unlinkat(folder, spare, 0);
	snprintf(spare, sizeof(spare), ".%s.first", name);
	(void)unlinkat(folder, spare, 0);
}

uint64_t small_file_kept(int folder, const char *name)
{
	char spare[NAME_ROOM];
	struct stat st;

	name_spare(spare, name);
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
		return -STATUS(IO);
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
