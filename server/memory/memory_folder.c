/*
 * memory_folder.c - finds, creates and removes the folders of stores. memory_file.c calls it. It
 * must never look into a folder without a mark, except once, to recognize what a version without
 * marks left.
 */
#include "memory_folder.h"

#include "directory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
	ASIDE_MAX = 1000,
	ASIDE_ROOM = 160,
};

bool folder_is_valid_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strlen(name) < 128;
}

/* --- one folder --- */

/* Marks a folder that was just created, or whose creation was interrupted, so that it must be
 * empty. */
static int mark_new_folder(int fd)
{
	if (directory_is_marked(fd))
		return 0;
	if (!directory_is_empty(fd)) {
		errno = EEXIST;
		return -1;
	}
	return directory_mark(fd);
}

int folder_open_for_store(int directory, const char *store, bool create)
{
	int fd, error;

	if (!folder_is_valid_name(store)) {
		errno = EINVAL;
		return -1;
	}
	if (create && mkdirat(directory, store, 0700) < 0 && errno != EEXIST)
		return -1;
	fd = openat(directory, store, FOLDER_FLAGS);
	if (fd < 0)
		return -1;
	if (create ? mark_new_folder(fd) == 0 : directory_is_marked(fd))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

void folder_remove_empty(int directory, const char *store)
{
	int folder = folder_open_for_store(directory, store, false);

	if (folder < 0)
		return;
	/* The mark is removed last, because the contents of a folder without a mark would never be
	 * removed. */
	if (directory_is_empty(folder)) {
		directory_unmark(folder);
		if (unlinkat(directory, store, AT_REMOVEDIR) < 0)
			(void)directory_mark(folder);
	}
	close(folder);
	(void)fsync(directory);
}

int folder_set_aside(int directory, const char *store, char *where, size_t size)
{
	assert(folder_is_valid_name(store));
	for (unsigned number = 1; number <= ASIDE_MAX; number++) {
		char aside[ASIDE_ROOM];

		snprintf(aside, sizeof(aside), ".%s.aside-%u", store, number);
		if (renameat2(directory, store, directory, aside, RENAME_NOREPLACE) == 0) {
			snprintf(where, size, "%s", aside);
			return fsync(directory);
		}
		if (errno != EEXIST)
			break;
	}
	return -1;
}

/* --- names --- */

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

static bool is_aside_name(const char *name)
{
	const char *end = strrchr(name, '.');

	return *name == '.' && end > name && strncmp(end, ".aside-", 7) == 0 && is_number(end + 7);
}

void folder_list_set_aside(int directory, void (*found)(void *arg, const char *name), void *arg)
{
	DIR *dir = directory_list(directory);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (is_aside_name(entry->d_name))
			found(arg, entry->d_name);
	if (dir)
		closedir(dir);
}

/* Returns true for names that a daemon creates: "header", "log.G", "promise.G", "segment-N.G". */
static bool is_piece_name(const char *name)
{
	const char *rest;

	if (strcmp(name, "header") == 0 || strcmp(name, "header.new") == 0)
		return true;
	if (strncmp(name, "log.", 4) == 0)
		return is_number(name + 4);
	if (strncmp(name, "promise.", 8) == 0)
		return is_number(name + 8);
	if (strncmp(name, "segment-", 8) != 0)
		return false;
	rest = name + 8 + strspn(name + 8, "0123456789");
	return rest > name + 8 && *rest == '.' && is_number(rest + 1);
}

static bool is_piece(int folder, const char *name)
{
	struct stat st;

	return is_piece_name(name) && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode);
}

/* Returns true if the errno says that the name is not a folder of a store. */
static bool is_no_store(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EACCES;
}

/* Returns true for the folder of a store. Also returns true if it cannot be examined now, because a
 * store that was missed would be created again. */
static bool is_store(int directory, const char *name)
{
	int fd = openat(directory, name, FOLDER_FLAGS);
	bool so = fd < 0 ? !is_no_store(errno) : directory_is_marked(fd) || !is_no_store(errno);

	if (fd >= 0)
		close(fd);
	return so;
}

/* Calls found() for each valid name in the folder that satisfies is_so(). Returns -1 with errno set
 * if the list is incomplete. */
static int for_each_name(int folder, bool (*is_so)(int folder, const char *name),
                         void (*found)(void *arg, const char *name), void *arg)
{
	DIR *dir = directory_list(folder);
	struct dirent *entry;
	int error;

	if (!dir)
		return -1;
	while (errno = 0, (entry = readdir(dir)))
		if (folder_is_valid_name(entry->d_name) && is_so(folder, entry->d_name))
			found(arg, entry->d_name);
	error = errno;
	closedir(dir);
	errno = error;
	return error ? -1 : 0;
}

int folder_list_stores(int directory, void (*found)(void *arg, const char *name), void *arg)
{
	return for_each_name(directory, is_store, found, arg);
}

int folder_list_pieces(int folder, void (*found)(void *arg, const char *name), void *arg)
{
	return for_each_name(folder, is_piece, found, arg);
}

/* --- directories of versions without marks --- */

bool folder_is_unmarked_image(int directory, const char *name)
{
	static const char magic[8] = "PERSEAS";
	int folder = openat(directory, name, FOLDER_FLAGS);
	int fd = folder < 0 ? -1 : openat(folder, "header", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char begins[sizeof(magic)];
	bool so = fd >= 0 && read(fd, begins, sizeof(begins)) == (ssize_t)sizeof(begins) &&
	          memcmp(begins, magic, sizeof(magic)) == 0;

	so |= folder >= 0 && directory_is_marked(folder);
	if (fd >= 0)
		close(fd);
	if (folder >= 0)
		close(folder);
	return so;
}

static void mark_image_folder(void *arg, const char *name)
{
	int folder = openat(*(const int *)arg, name, FOLDER_FLAGS);

	if (folder < 0)
		return;
	(void)directory_mark(folder);
	close(folder);
}

/* Marks the directory last: once it has a mark, folders are no longer recognized by their
 * contents. */
int folder_mark_all_images(int directory)
{
	if (for_each_name(directory, folder_is_unmarked_image, mark_image_folder, &directory) < 0)
		return -1;
	return directory_mark(directory);
}
