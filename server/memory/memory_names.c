/*
 * memory_names.c - checks whether the files of a memory directory still have their names, so that a
 * restart of the daemon would find them. Any process with the daemon's rights can remove or rename
 * files that it has mapped. Its functions are in the table of memory_file.c.
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

/* Returns true if the name leads to the open file. */
static bool is_same_file(int at, const char *name, const struct stat *open)
{
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return !directory_errno_means_absent(errno);
	return st.st_dev == open->st_dev && st.st_ino == open->st_ino;
}

/* Returns true if the file is in the store's folder, marked or not. Needs no descriptor. */
static bool is_named_file(const struct memory_file *file, const char *store, const char *name,
                          const struct stat *open)
{
	char path[2 * NAME_MAX + 2];
	struct stat st;

	if (fstatat(file->directory.fd, store, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return !directory_errno_means_absent(errno);
	snprintf(path, sizeof(path), "%s/%s", store, name);
	return S_ISDIR(st.st_mode) && is_same_file(file->directory.fd, path, open);
}

/* Returns true if a file with this name is in a folder that a daemon would load. */
static bool has_small_piece(const struct memory_file *file, const char *store, const char *name)
{
	const int folder = folder_open_for_store(file->directory.fd, store, false);
	struct stat st;
	bool found;

	if (folder < 0)
		return !directory_errno_means_absent(errno);
	found = fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	        !directory_errno_means_absent(errno);
	close(folder);
	return found;
}

enum memory_name_state names_check_piece(struct memory *memory, const char *store, const char *name,
                                         const struct piece *piece)
{
	const struct memory_file *file = file_of(memory);
	struct stat st;

	if (!piece)
		return has_small_piece(file, store, name) ? MEMORY_NAMED : MEMORY_REMOVED;
	if (fstat(piece->fd, &st) < 0 || is_named_file(file, store, name, &st))
		return MEMORY_NAMED;
	return st.st_nlink == 0 ? MEMORY_REMOVED : MEMORY_MOVED;
}

void names_mark_folder(struct memory *memory, const char *store, const char *name,
                       const struct piece *piece)
{
	const int folder = openat(file_of(memory)->directory.fd, store,
	                          O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (folder < 0)
		return;
	if (fstat(piece->fd, &st) == 0 && is_same_file(folder, name, &st))
		(void)directory_mark(folder);
	close(folder);
}

/* --- the directory --- */

/* Opens the memory directory. If it has no mark of perseasd (directory.h), marks its image folders
 * and then the directory itself. */
static int open_and_mark_directory(const char *path, struct directory *directory, const char **why)
{
	if (directory_open("memory", path, folder_is_unmarked_image, directory, why) < 0)
		return -1;
	if (directory->is_marked || folder_mark_all_images(directory->fd) == 0)
		return 0;
	*why = "its memory directory cannot be marked: look at its file system";
	return -1;
}

bool names_restore_directory(struct memory *memory, char *why, size_t size)
{
	struct memory_file *file = file_of(memory);

	return directory_restore("memory", file->path, open_and_mark_directory, &file->directory,
	                         why, size);
}

/* --- notification of changes --- */

/* Watches a folder for names that disappear, and for the events `more`. Returns false on
 * failure. */
static bool watch_folder(const struct memory_file *file, const char *path, uint32_t more)
{
	const uint32_t gone = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF;

	return inotify_add_watch(file->inotify_fd, path,
	                         gone | more | IN_ONLYDIR | IN_DONT_FOLLOW) >= 0;
}

struct watching {
	const struct memory_file *file;
	bool all;
};

static void watch_store_folder(void *arg, const char *store)
{
	struct watching *watching = arg;
	char path[PATH_MAX];
	const int len = snprintf(path, sizeof(path), "%s/%s", watching->file->path, store);

	watching->all &= len < (int)sizeof(path) && watch_folder(watching->file, path, 0);
}

int names_open_watch(struct memory *memory)
{
	struct memory_file *file = file_of(memory);

	if (file->inotify_fd < 0)
		file->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	return file->inotify_fd;
}

/* Watches every store's folder again, because new ones may have come. Watching a folder again
 * changes nothing. */
bool names_read_changes(struct memory *memory)
{
	_Alignas(struct inotify_event) char events[4096];
	const struct memory_file *file = file_of(memory);
	struct watching watching = { file, file->inotify_fd >= 0 };

	if (!watching.all)
		return false;
	while (read(file->inotify_fd, events, sizeof(events)) > 0)
		;
	watching.all = watch_folder(file, file->path, IN_CREATE | IN_MOVED_TO);
	return folder_list_stores(file->directory.fd, watch_store_folder, &watching) == 0 &&
	       watching.all;
}

/* --- sizes --- */

uint64_t names_bytes_of_file_and_spare(int folder, const char *name)
{
	return piece_file_size(folder, name) + small_file_spare_bytes(folder, name);
}

struct counting {
	struct memory_file *file;
	int folder;
};

static void add_bytes_of_piece(void *arg, const char *name)
{
	const struct counting *counting = arg;

	counting->file->used_bytes += names_bytes_of_file_and_spare(counting->folder, name);
}

static void add_bytes_of_store(void *arg, const char *store)
{
	struct memory_file *file = arg;
	struct counting counting = { file,
		                     folder_open_for_store(file->directory.fd, store, false) };

	if (counting.folder < 0)
		return;
	(void)folder_list_pieces(counting.folder, add_bytes_of_piece, &counting);
	close(counting.folder);
}

void names_recount(struct memory *memory)
{
	struct memory_file *file = file_of(memory);

	file->used_bytes = 0;
	(void)folder_list_stores(file->directory.fd, add_bytes_of_store, file);
}
