/*
 * memory_names.c - whether the files of a memory directory still have the names by which the next
 * daemon would find them: anybody with the daemon's rights can remove or move files that it has
 * mapped. memory_file.c has its operations in its table. It must never write into a directory that
 * may be another daemon's, or lie on another file system.
 */
#include "memory_file_private.h"

#include "memory_folder.h"
#include "piece_file.h"
#include "small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- pieces --- */

/* Says an errno that nothing is there? What cannot be looked at is taken to be as it was: there may
 * be no descriptor left. */
static bool is_absence(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

/* Does the name lead to the file that is open? */
static bool leads_to(int at, const char *name, const struct stat *open)
{
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return !is_absence(errno);
	return st.st_dev == open->st_dev && st.st_ino == open->st_ino;
}

/* Is the file in the store's folder, with a mark or without? Takes no descriptor. */
static bool is_in_place(const struct memory_file *file, const char *store, const char *name,
                        const struct stat *open)
{
	char path[2 * NAME_MAX + 2];
	struct stat st;

	if (fstatat(file->directory.fd, store, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return !is_absence(errno);
	snprintf(path, sizeof(path), "%s/%s", store, name);
	return S_ISDIR(st.st_mode) && leads_to(file->directory.fd, path, open);
}

/* Is there a file of this name, in a folder that the next daemon looks at? */
static bool has_small(const struct memory_file *file, const char *store, const char *name)
{
	const int folder = folder_open(file->directory.fd, store, false);
	struct stat st;
	bool found;

	if (folder < 0)
		return !is_absence(errno);
	found = fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || !is_absence(errno);
	close(folder);
	return found;
}

enum memory_name names_look_up(struct memory *memory, const char *store, const char *name,
                               const struct piece *piece)
{
	const struct memory_file *file = file_of(memory);
	struct stat st;

	if (!piece)
		return has_small(file, store, name) ? MEMORY_NAMED : MEMORY_REMOVED;
	if (fstat(piece->fd, &st) < 0 || is_in_place(file, store, name, &st))
		return MEMORY_NAMED;
	return st.st_nlink == 0 ? MEMORY_REMOVED : MEMORY_MOVED;
}

void names_adopt(struct memory *memory, const char *store, const char *name,
                 const struct piece *piece)
{
	const int folder = openat(file_of(memory)->directory.fd, store,
	                          O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (folder < 0)
		return;
	if (fstat(piece->fd, &st) == 0 && leads_to(folder, name, &st))
		(void)directory_mark(folder);
	close(folder);
}

/* --- the directory --- */

enum where { HERE, ELSEWHERE, GONE };

/* Where does the path lead that the next daemon will be given? */
static enum where look_at_path(const struct memory_file *file, struct stat *open)
{
	struct stat st;

	/* What cannot be looked at is taken to be as it was. */
	if (fstat(file->directory.fd, open) < 0)
		return HERE;
	if (open->st_nlink == 0)
		return GONE;
	if (fstatat(AT_FDCWD, file->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return is_absence(errno) ? ELSEWHERE : HERE;
	return st.st_dev == open->st_dev && st.st_ino == open->st_ino ? HERE : ELSEWHERE;
}

/* Would the directory be made on this file system? Then its path, or the nearest one above it that
 * is there, is on it. */
static bool is_on(const char *path, dev_t device)
{
	char part[PATH_MAX];
	struct stat st;
	char *slash;

	snprintf(part, sizeof(part), "%s", path);
	while (stat(*part ? part : "/", &st) < 0) {
		slash = strrchr(part, '/');
		if (errno != ENOENT || !*part)
			return false;
		if (slash)
			*slash = '\0';
		else
			strcpy(part, ".");
	}
	return st.st_dev == device;
}

/* Opens the directory as a start of the daemon does, in place of the one that was removed, or whose
 * lock file was. */
static bool open_again(struct memory_file *file, dev_t device, char *why, size_t size)
{
	struct directory fresh = { .fd = -1, .lock = -1 };
	const char *text = "its memory directory cannot be marked: look at its file system";

	if (!is_on(file->path, device)) {
		snprintf(why, size,
		         "its memory directory was removed, and %s would be on another file system",
		         file->path);
		return false;
	}
	if (directory_open("memory", file->path, folder_is_image, &fresh, &text) < 0 ||
	    (!fresh.marked && folder_adopt(fresh.fd) < 0)) {
		snprintf(why, size, "%s", text);
		directory_close(&fresh);
		return false;
	}
	directory_close(&file->directory);
	file->directory = fresh;
	return true;
}

bool names_settle(struct memory *memory, char *why, size_t size)
{
	struct memory_file *file = file_of(memory);
	struct stat open;

	switch (look_at_path(file, &open)) {
	case GONE:
		return open_again(file, open.st_dev, why, size);
	case ELSEWHERE:
		snprintf(why, size,
		         "%s leads to its memory directory no more: that was moved, or unmounted",
		         file->path);
		return false;
	default:
		break;
	}
	if (!directory_is_marked(file->directory.fd) && errno == ENOENT)
		(void)directory_mark(file->directory.fd);
	return directory_has_lock(&file->directory) || open_again(file, open.st_dev, why, size);
}

/* --- what tells of changes --- */

static bool watch_path(const struct memory_file *file, const char *path, uint32_t more)
{
	const uint32_t gone = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF;

	return inotify_add_watch(file->notify, path, gone | more | IN_ONLYDIR | IN_DONT_FOLLOW) >=
	       0;
}

struct watching {
	const struct memory_file *file;
	bool all;
};

static void watch_store(void *arg, const char *store)
{
	struct watching *watching = arg;
	char path[PATH_MAX];
	const int len = snprintf(path, sizeof(path), "%s/%s", watching->file->path, store);

	watching->all &= len < (int)sizeof(path) && watch_path(watching->file, path, 0);
}

int names_watch(struct memory *memory)
{
	struct memory_file *file = file_of(memory);

	if (file->notify < 0)
		file->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	return file->notify;
}

/* A folder that is watched already stays so. */
bool names_seen(struct memory *memory)
{
	_Alignas(struct inotify_event) char events[4096];
	const struct memory_file *file = file_of(memory);
	struct watching watching = { file, file->notify >= 0 };

	if (!watching.all)
		return false;
	while (read(file->notify, events, sizeof(events)) > 0)
		;
	watching.all = watch_path(file, file->path, IN_CREATE | IN_MOVED_TO);
	return folder_stores(file->directory.fd, watch_store, &watching) == 0 && watching.all;
}

/* --- what they take --- */

uint64_t names_size(int folder, const char *name)
{
	return piece_file_size(folder, name) + small_file_kept(folder, name);
}

struct counting {
	struct memory_file *file;
	int folder;
};

static void count_piece(void *arg, const char *name)
{
	const struct counting *counting = arg;

	counting->file->used += names_size(counting->folder, name);
}

static void count_store(void *arg, const char *store)
{
	struct memory_file *file = arg;
	struct counting counting = { file, folder_open(file->directory.fd, store, false) };

	if (counting.folder < 0)
		return;
	(void)folder_pieces(counting.folder, count_piece, &counting);
	close(counting.folder);
}

void names_count(struct memory *memory)
{
	struct memory_file *file = file_of(memory);

	file->used = 0;
	(void)folder_stores(file->directory.fd, count_store, file);
}
