/*
 * spill_file.c - stores spills in files: DIRECTORY/STORE.spill, named STORE.spill.tmp until it is
 * complete. The store logic calls it through spill.h. The directory has a mark (directory.h):
 * nothing is written or removed in one without it.
 */
#include "directory.h"
#include "../store/spill.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { NAME_ROOM = 160, ASIDE_MAX = 1000, SYNC_BYTES = 64 << 20 };

static const char spill_suffix[] = ".spill", unfinished_suffix[] = ".spill.tmp",
		  loaded_suffix[] = ".spill.loaded";

struct spill_file {
	struct spill spill;
	struct directory directory;
	int out, in;          /* spills being written and read; -1: none */
	uint64_t unsynced;    /* bytes of the written spill that may not be on the disk */
	char name[NAME_ROOM]; /* name of the spill being written */
	char path[PATH_MAX];  /* the path of the directory, as it was given */
	char place[PATH_MAX]; /* where the directory is, if its path leads elsewhere */
};

static struct spill_file *spill_file_of(struct spill *spill)
{
	return (struct spill_file *)spill;
}

static void spill_file_name(char name[NAME_ROOM], const char *store, const char *suffix)
{
	snprintf(name, NAME_ROOM, "%s%s%s", store, spill_suffix, suffix);
}

static int set_reason_and_fail(struct spill_file *file, const char *what, const char *name)
{
	snprintf(file->spill.trouble, sizeof(file->spill.trouble), "%s %.150s: %s", what, name,
	         strerror(errno));
	return -1;
}

/* Counts `len` written bytes, and flushes every SYNC_BYTES, so that no flush takes long and little
 * memory holds unwritten data. */
static int count_written_and_sync(struct spill_file *file, size_t len)
{
	file->unsynced += len;
	if (file->unsynced < SYNC_BYTES)
		return 0;
	file->unsynced = 0;
	if (fdatasync(file->out) < 0)
		return set_reason_and_fail(file, "writing", file->name);
	(void)posix_fadvise(file->out, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

static void report_progress(struct spill *spill)
{
	if (spill->progress)
		spill->progress(spill->progress_arg);
}

static int spill_file_begin(struct spill *spill, const char *store)
{
	struct spill_file *file = spill_file_of(spill);
	char beside[NAME_ROOM];

	assert(file->out < 0);
	file->unsynced = 0;
	spill_file_name(file->name, store, "");
	spill_file_name(beside, store, ".loaded");
	if (unlinkat(file->directory.fd, beside, 0) < 0 && errno != ENOENT)
		return set_reason_and_fail(file, "removing", beside);
	spill_file_name(beside, store, ".tmp");
	if (unlinkat(file->directory.fd, beside, 0) < 0 && errno != ENOENT)
		return set_reason_and_fail(file, "removing", beside);
	file->out = openat(file->directory.fd, beside,
	                   O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
	return file->out < 0 ? set_reason_and_fail(file, "making", beside) : 0;
}

static struct spill_file *file_of_sink(struct ps_archive_sink *sink)
{
	return (struct spill_file *)((char *)sink - offsetof(struct spill, sink));
}

static int spill_file_write(struct ps_archive_sink *sink, const void *bytes, size_t len)
{
	struct spill_file *file = file_of_sink(sink);
	const uint8_t *from = bytes;

	while (len > 0) {
		ssize_t n = write(file->out, from, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return set_reason_and_fail(file, "writing", file->name);
		from += n;
		len -= (size_t)n;
	}
	report_progress(&file->spill);
	return count_written_and_sync(file, (size_t)(from - (const uint8_t *)bytes));
}

static void close_output(struct spill_file *file)
{
	if (file->out >= 0)
		close(file->out);
	file->out = -1;
}

static void spill_file_abandon(struct spill *spill)
{
	struct spill_file *file = spill_file_of(spill);
	char beside[NAME_ROOM + 8];

	close_output(file);
	snprintf(beside, sizeof(beside), "%s.tmp", file->name);
	unlinkat(file->directory.fd, beside, 0);
}

static int spill_file_commit(struct spill *spill)
{
	struct spill_file *file = spill_file_of(spill);
	char beside[NAME_ROOM + 8];
	int ret = 0;

	assert(file->out >= 0);
	snprintf(beside, sizeof(beside), "%s.tmp", file->name);
	if (fsync(file->out) < 0 ||
	    renameat(file->directory.fd, beside, file->directory.fd, file->name) < 0) {
		ret = set_reason_and_fail(file, "writing", file->name);
		spill_file_abandon(spill);
		return ret;
	}
	close_output(file);
	if (fsync(file->directory.fd) < 0) {
		ret = set_reason_and_fail(file, "writing", file->name);
		unlinkat(file->directory.fd, file->name, 0);
	}
	return ret;
}

/* Calls found() for each name that ends in `tail`, with the store's name, which precedes it.
 * Returns -1 if it may have missed one. */
static int for_each_name(struct spill_file *file, const char *tail,
                         void (*found)(void *arg, const char *store), void *arg)
{
	DIR *dir = directory_list(file->directory.fd);
	struct dirent *entry;
	int error;

	if (!dir)
		return set_reason_and_fail(file, "listing", file->path);
	while (errno = 0, (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name), end = strlen(tail);
		char store[NAME_MAX + 1];

		if (len <= end || strcmp(entry->d_name + len - end, tail) != 0)
			continue;
		memcpy(store, entry->d_name, len - end);
		store[len - end] = '\0';
		found(arg, store);
	}
	error = errno;
	closedir(dir);
	errno = error;
	return error ? set_reason_and_fail(file, "listing", file->path) : 0;
}

struct room {
	struct spill_file *file;
	uint64_t bytes;
};

/* Adds the bytes of a loaded spill to the room, because it is removed when its store is spilled
 * again. */
static void add_retired_bytes(void *arg, const char *store)
{
	struct room *room = arg;
	char name[NAME_MAX + 1];
	struct stat st;

	snprintf(name, sizeof(name), "%.200s%s", store, loaded_suffix);
	if (fstatat(room->file->directory.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		room->bytes += (uint64_t)st.st_blocks * 512;
}

static int spill_file_free_bytes(struct spill *spill, uint64_t *bytes)
{
	struct room room = { spill_file_of(spill), 0 };
	struct statvfs st;

	if (fstatvfs(room.file->directory.fd, &st) < 0)
		return set_reason_and_fail(room.file, "the room in", spill->directory);
	(void)for_each_name(room.file, loaded_suffix, add_retired_bytes, &room);
	*bytes = (uint64_t)st.f_bavail * st.f_frsize + room.bytes;
	return 0;
}

static int spill_file_list_stores(struct spill *spill, void (*found)(void *arg, const char *store),
                                  void *arg)
{
	return for_each_name(spill_file_of(spill), spill_suffix, found, arg);
}

/* Removes the unfinished spill of a daemon that was killed. */
static void remove_unfinished(void *arg, const char *store)
{
	struct spill_file *file = arg;
	char name[NAME_MAX + 1];

	snprintf(name, sizeof(name), "%.200s%s", store, unfinished_suffix);
	unlinkat(file->directory.fd, name, 0);
}

static int spill_file_open(struct spill *spill, const char *store)
{
	struct spill_file *file = spill_file_of(spill);
	char name[NAME_ROOM];
	struct stat st;

	assert(file->in < 0);
	spill_file_name(name, store, "");
	file->in = openat(file->directory.fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (file->in < 0 || fstat(file->in, &st) < 0)
		return set_reason_and_fail(file, "opening", name);
	if (S_ISREG(st.st_mode))
		return 0;
	errno = EINVAL;
	return set_reason_and_fail(file, "opening", name);
}

static long spill_file_read(struct ps_archive_source *source, void *bytes, size_t len)
{
	struct spill *spill = (struct spill *)((char *)source - offsetof(struct spill, source));
	ssize_t n;

	do
		n = read(spill_file_of(spill)->in, bytes, len);
	while (n < 0 && errno == EINTR);
	report_progress(spill);
	return n;
}

static void spill_file_close_input(struct spill *spill)
{
	struct spill_file *file = spill_file_of(spill);

	if (file->in >= 0)
		close(file->in);
	file->in = -1;
}

static int spill_file_remove(struct spill *spill, const char *store)
{
	struct spill_file *file = spill_file_of(spill);
	char name[NAME_ROOM];

	spill_file_name(name, store, "");
	if ((unlinkat(file->directory.fd, name, 0) < 0 && errno != ENOENT) ||
	    fsync(file->directory.fd) < 0)
		return set_reason_and_fail(file, "removing", name);
	return 0;
}

/* Gives the spill the name of loaded spills, and so replaces the one that was loaded before. */
static int spill_file_mark_loaded(struct spill *spill, const char *store)
{
	struct spill_file *file = spill_file_of(spill);
	char name[NAME_ROOM], kept[NAME_ROOM];

	spill_file_name(name, store, "");
	spill_file_name(kept, store, ".loaded");
	if (renameat(file->directory.fd, name, file->directory.fd, kept) < 0 ||
	    fsync(file->directory.fd) < 0)
		return set_reason_and_fail(file, "renaming", name);
	return 0;
}

/* Renames the spill to the first free name, so that no other file is replaced. */
static int spill_file_set_aside(struct spill *spill, const char *store)
{
	struct spill_file *file = spill_file_of(spill);
	char name[NAME_ROOM], aside[NAME_ROOM + 16];

	spill_file_name(name, store, "");
	for (int i = 1; i <= ASIDE_MAX; i++) {
		snprintf(aside, sizeof(aside), "%s.aside-%d", name, i);
		if (renameat2(file->directory.fd, name, file->directory.fd, aside,
		              RENAME_NOREPLACE) == 0)
			return fsync(file->directory.fd) < 0
			               ? set_reason_and_fail(file, "renaming", name)
			               : 0;
		if (errno == ENOENT)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return set_reason_and_fail(file, "renaming", name);
}

/* Returns true for files that a version without marks created: STORE.spill, optionally with a
 * suffix. */
static bool is_spill(int directory, const char *name)
{
	const char *end = strstr(name, spill_suffix);
	struct stat st;

	return end && end > name &&
	       (!end[sizeof(spill_suffix) - 1] || end[sizeof(spill_suffix) - 1] == '.') &&
	       fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

static int open_and_mark_directory(const char *path, struct directory *directory, const char **why)
{
	if (directory_open("spill", path, is_spill, directory, why) < 0)
		return -1;
	if (directory->is_marked || directory_mark(directory->fd) == 0)
		return 0;
	*why = "the spill directory cannot be marked: look at its file system";
	return -1;
}

static int spill_file_restore_directory(struct spill *spill)
{
	struct spill_file *file = spill_file_of(spill);

	return directory_restore("spill", file->path, open_and_mark_directory, &file->directory,
	                         spill->trouble, sizeof(spill->trouble))
	               ? 0
	               : -1;
}

static int spill_file_follow_path(struct spill *spill)
{
	struct spill_file *file = spill_file_of(spill);
	char link[64];
	ssize_t len;

	if (directory_follow_path(file->path, open_and_mark_directory, &file->directory,
	                          spill->trouble, sizeof(spill->trouble)))
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->directory.fd);
	len = readlink(link, file->place, sizeof(file->place) - 1);
	spill->directory = "an unknown place";
	if (len > 0) {
		file->place[len] = '\0';
		spill->directory = file->place;
	}
	return -1;
}

static const struct spill_ops file_ops = {
	.restore_directory = spill_file_restore_directory,
	.follow_path = spill_file_follow_path,
	.room = spill_file_free_bytes,
	.begin = spill_file_begin,
	.commit = spill_file_commit,
	.abandon = spill_file_abandon,
	.list_stores = spill_file_list_stores,
	.open = spill_file_open,
	.close = spill_file_close_input,
	.remove = spill_file_remove,
	.retire = spill_file_mark_loaded,
	.set_aside = spill_file_set_aside,
};

struct spill *spill_file_new(const char *directory, const char **why)
{
	struct spill_file *file = calloc(1, sizeof(*file));

	if (!file) {
		*why = "out of memory";
		return NULL;
	}
	snprintf(file->path, sizeof(file->path), "%s", directory);
	file->spill.ops = &file_ops;
	file->spill.directory = file->path;
	file->spill.sink.write = spill_file_write;
	file->spill.source.read = spill_file_read;
	file->out = file->in = file->directory.fd = file->directory.lock_fd = -1;
	if (open_and_mark_directory(directory, &file->directory, why) < 0) {
		spill_file_free(&file->spill);
		return NULL;
	}
	(void)for_each_name(file, unfinished_suffix, remove_unfinished, file);
	return &file->spill;
}

void spill_file_free(struct spill *spill)
{
	struct spill_file *file;

	if (!spill)
		return;
	file = spill_file_of(spill);
	close_output(file);
	spill_file_close_input(spill);
	directory_close(&file->directory);
	free(file);
}
