/*
 * directory.c - opens, locks and marks the directories of the daemon. memory_file.c,
 * memory_names.c, spill_file.c and used_spills_file.c call it. It must never change anything in a
 * directory that may belong to somebody else.
 */
#include "directory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char mark_name[] = ".perseas", lock_name[] = ".lock";

/* --- marks --- */

bool directory_is_marked(int folder)
{
	struct stat st;

	if (fstatat(folder, mark_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	errno = ENOENT;
	return S_ISREG(st.st_mode);
}

int directory_mark(int folder)
{
	static const char text[] = "This folder and what is in it belong to perseasd.\n";
	int fd = openat(folder, mark_name, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
	/* The name alone is the mark, and can be created even if the file system is full. */
	ssize_t ignored = fd < 0 ? 0 : write(fd, text, sizeof(text) - 1);

	(void)ignored;
	if (fd < 0)
		return -1;
	close(fd);
	return fsync(folder);
}

void directory_unmark(int folder)
{
	(void)unlinkat(folder, mark_name, 0);
}

/* --- contents --- */

DIR *directory_list(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static bool is_dot_or_dot_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool is_mark(int directory, const char *name)
{
	(void)directory;
	return strcmp(name, mark_name) == 0;
}

/* Returns true for names that a new directory may have. */
static bool is_ignored(const char *name)
{
	return is_dot_or_dot_dot(name) || strcmp(name, lock_name) == 0 ||
	       strcmp(name, "lost+found") == 0;
}

/* Finds the first name that is not known and stores it in `stranger`. Returns false if there is
 * none. */
static bool find_unknown_name(int folder, bool (*known)(int directory, const char *name),
                              char stranger[NAME_MAX + 1])
{
	DIR *dir = directory_list(folder);
	struct dirent *entry;
	bool found = !dir;

	snprintf(stranger, NAME_MAX + 1, "%s", "what cannot be listed");
	while (dir && !found && (entry = readdir(dir))) {
		if (is_ignored(entry->d_name) || known(folder, entry->d_name))
			continue;
		found = true;
		snprintf(stranger, NAME_MAX + 1, "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

bool directory_is_empty(int folder)
{
	char stranger[NAME_MAX + 1];

	return !find_unknown_name(folder, is_mark, stranger);
}

/* --- the path --- */

/* Opens one component of the path, and creates it if it is missing. */
static int open_component(int at, const char *name, bool last)
{
	const int flags = O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | (last ? O_RDONLY : O_PATH);
	struct stat st;
	int fd = openat(at, name, flags);

	if (fd < 0 && errno == ENOENT &&
	    (mkdirat(at, name, last ? 0700 : 0755) == 0 || errno == EEXIST))
		fd = openat(at, name, flags);
	if (fd < 0 && errno == ENOTDIR && fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		errno = S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
	return fd;
}

/* Opens the path component by component, so that no symbolic link is followed. On failure, `part`
 * has the path up to the component that failed. */
static int open_path(const char *path, char part[PATH_MAX])
{
	int at = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *from = path;

	snprintf(part, PATH_MAX, "%s", path);
	while (at >= 0) {
		char name[NAME_MAX + 1];
		size_t len;
		bool last;
		int next;

		from += strspn(from, "/");
		len = strcspn(from, "/");
		last = from[len + strspn(from + len, "/")] == '\0';
		if (len > NAME_MAX) {
			errno = ENAMETOOLONG;
			next = -1;
		} else {
			snprintf(name, sizeof(name), "%.*s", (int)len, len ? from : ".");
			next = open_component(at, len ? name : ".", last);
		}
		snprintf(part, PATH_MAX, "%.*s", (int)(from + len - path), path);
		close(at);
		if (last || next < 0)
			return next;
		at = next;
		from += len;
	}
	return at;
}

/* In a place that everybody can write to, such as /dev/shm, another user may have created the
 * directory first. */
static bool is_private_to_user(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

/* --- opening a directory --- */

struct opening {
	const char *what, *path;
	char *text;
	size_t size;
};

static int open_private_directory(const struct opening *opening, struct directory *directory)
{
	char part[PATH_MAX];

	directory->fd = open_path(opening->path, part);
	if (directory->fd < 0 && errno == ELOOP)
		snprintf(opening->text, opening->size,
		         "%s directory %s: %s is a symbolic link, and none is followed; give the "
		         "path that it leads to",
		         opening->what, opening->path, part);
	else if (directory->fd < 0)
		snprintf(opening->text, opening->size, "%s directory %s: %s: %s", opening->what,
		         opening->path, part, strerror(errno));
	else if (!is_private_to_user(directory->fd))
		snprintf(opening->text, opening->size,
		         "%s directory %s must belong to the daemon's user and be writable by no "
		         "other",
		         opening->what, opening->path);
	else
		return 0;
	return -1;
}

static int check_all_names_known(const struct opening *opening, struct directory *directory,
                                 bool (*known)(int directory, const char *name))
{
	char stranger[NAME_MAX + 1];

	directory->is_marked = directory_is_marked(directory->fd);
	if (directory->is_marked || !find_unknown_name(directory->fd, known, stranger))
		return 0;
	snprintf(opening->text, opening->size,
	         "%s directory %s has no mark of perseasd, and %s in it is not perseasd's: give "
	         "--%s-dir a directory that is new or empty, or move that away",
	         opening->what, opening->path, stranger, opening->what);
	return -1;
}

static int lock_directory(const struct opening *opening, struct directory *directory)
{
	directory->lock_fd = openat(directory->fd, lock_name,
	                            O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (directory->lock_fd < 0)
		snprintf(opening->text, opening->size, "%s directory %s: its lock file: %s",
		         opening->what, opening->path, strerror(errno));
	else if (flock(directory->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	else if (errno == EWOULDBLOCK)
		snprintf(opening->text, opening->size,
		         "%s directory %s is in use by another perseasd; end that one, or give "
		         "this one a --%s-dir of its own",
		         opening->what, opening->path, opening->what);
	else
		snprintf(opening->text, opening->size, "%s directory %s cannot be locked",
		         opening->what, opening->path);
	return -1;
}

int directory_open(const char *what, const char *path,
                   bool (*known)(int directory, const char *name), struct directory *directory,
                   const char **why)
{
	static char text[2 * PATH_MAX + 400];
	const struct opening opening = { what, path, text, sizeof(text) };

	directory->fd = directory->lock_fd = -1;
	directory->is_marked = false;
	*why = text;
	if (open_private_directory(&opening, directory) < 0 ||
	    check_all_names_known(&opening, directory, known) < 0 ||
	    lock_directory(&opening, directory) < 0)
		return -1;
	return 0;
}

bool directory_lock_file_is_in_place(const struct directory *directory)
{
	struct stat open, named;

	assert(directory->fd >= 0 && directory->lock_fd >= 0);
	return fstat(directory->lock_fd, &open) < 0 ||
	       (fstatat(directory->fd, lock_name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	        named.st_dev == open.st_dev && named.st_ino == open.st_ino);
}

/* --- directories that are moved or removed --- */

bool directory_errno_means_absent(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

enum path_state { PATH_UNCHANGED, PATH_LEADS_ELSEWHERE, DIRECTORY_REMOVED };

/* Checks where the configured path leads now. */
static enum path_state check_path(const struct directory *directory, const char *path,
                                  struct stat *open)
{
	struct stat st;

	/* If a check fails, assume no change. */
	if (fstat(directory->fd, open) < 0)
		return PATH_UNCHANGED;
	if (open->st_nlink == 0)
		return DIRECTORY_REMOVED;
	if (fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return directory_errno_means_absent(errno) ? PATH_LEADS_ELSEWHERE : PATH_UNCHANGED;
	return st.st_dev == open->st_dev && st.st_ino == open->st_ino ? PATH_UNCHANGED
	                                                              : PATH_LEADS_ELSEWHERE;
}

/* Returns true if the directory would be created on this file system: its nearest existing parent
 * is on it. */
static bool would_be_created_on(const char *path, dev_t device)
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

/* Opens the directory that the path leads to, as a start of the daemon does, and closes the one
 * that is open. */
static bool reopen_directory(const char *path, directory_opener *open, struct directory *directory,
                             char *why, size_t size)
{
	struct directory fresh = { .fd = -1, .lock_fd = -1 };
	const char *text;

	if (open(path, &fresh, &text) < 0) {
		snprintf(why, size, "%s", text);
		directory_close(&fresh);
		return false;
	}
	directory_close(directory);
	*directory = fresh;
	return true;
}

bool directory_restore(const char *what, const char *path, directory_opener *open,
                       struct directory *directory, char *why, size_t size)
{
	struct stat st;

	switch (check_path(directory, path, &st)) {
	case DIRECTORY_REMOVED:
		if (would_be_created_on(path, st.st_dev))
			return reopen_directory(path, open, directory, why, size);
		snprintf(why, size,
		         "its %s directory was removed, and %s would be on another file system",
		         what, path);
		return false;
	case PATH_LEADS_ELSEWHERE:
		snprintf(why, size,
		         "%s no longer leads to the %s directory: that was moved, or unmounted, or "
		         "a mount covers it",
		         path, what);
		return false;
	default:
		break;
	}
	if (!directory_is_marked(directory->fd) && errno == ENOENT)
		(void)directory_mark(directory->fd);
	return directory_lock_file_is_in_place(directory) ||
	       reopen_directory(path, open, directory, why, size);
}

bool directory_follow_path(const char *path, directory_opener *open, struct directory *directory,
                           char *why, size_t size)
{
	struct stat st, named;

	if (fstat(directory->fd, &st) == 0 && st.st_nlink > 0 && lstat(path, &named) < 0 &&
	    !would_be_created_on(path, st.st_dev)) {
		snprintf(why, size, "%s would be on another file system", path);
		return false;
	}
	return reopen_directory(path, open, directory, why, size);
}

void directory_close(struct directory *directory)
{
	if (directory->lock_fd >= 0)
		close(directory->lock_fd);
	if (directory->fd >= 0)
		close(directory->fd);
	directory->fd = directory->lock_fd = -1;
}
