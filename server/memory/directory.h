/*
 * directory.h - a directory that belongs to one daemon, and the marks by which it is recognized. No
 * symbolic link is followed in its path or below it.
 *
 * A directory, and each folder in it, belongs to perseasd only if it has a mark: a file named
 * ".perseas". The mark is created first, in a new or empty directory.
 */
#ifndef PERSEAS_SERVER_DIRECTORY_H
#define PERSEAS_SERVER_DIRECTORY_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

struct directory {
	int fd;      /* -1: not open */
	int lock_fd; /* descriptor of its lock file */
	/* The directory has a mark. If not, it is new, or a version without marks created it and
	 * all names in it are known. The caller must then handle these names and call
	 * directory_mark(). */
	bool is_marked;
};

/* Opens `path`, which is created if it is missing, and locks it against a second daemon. The
 * directory must belong to the daemon's user, must not be writable by others, and must have a mark,
 * or known() must return true for every name in it except ".lock". `what` is one word that says
 * which directory it is. Returns 0, or -1 with a sentence in *why (valid until the next call); a
 * directory that does not belong to perseasd is not changed. */
int directory_open(const char *what, const char *path,
                   bool (*known)(int directory, const char *name), struct directory *directory,
                   const char **why);
/* Closes and unlocks the directory. Does nothing if it is not open. */
void directory_close(struct directory *directory);

/* Returns true if the lock file still has its name, so that no other daemon can lock another
 * one. */
bool directory_lock_file_is_in_place(const struct directory *directory);

/* Opens a directory of one kind as a start of the daemon does: directory_open(), and marks. */
typedef int directory_opener(const char *path, struct directory *directory, const char **why);

/* Opens the directory again if it or its lock file was removed, and restores its mark. Returns
 * false with the reason in `why` if that failed, or if the path leads elsewhere or would lead to
 * another file system: then nothing was written. `what` is as in directory_open(). If nothing is
 * missing, which is normal, it takes a few system calls. */
bool directory_restore(const char *what, const char *path, directory_opener *open,
                       struct directory *directory, char *why, size_t size);
/* Replaces the open directory, which directory_restore() could not restore, by the one that a start
 * of the daemon would open. Returns false with the reason in `why`, and keeps the open one, if that
 * failed, or if it is missing and would be created on another file system. */
bool directory_follow_path(const char *path, directory_opener *open, struct directory *directory,
                           char *why, size_t size);

/* Returns true if the errno says that a name does not exist. After other failures, such as a lack
 * of descriptors, a file counts as unchanged. */
bool directory_errno_means_absent(int error);

/* Opens a list of the folder's names, to be closed with closedir(). Returns NULL with errno set on
 * failure. */
DIR *directory_list(int folder);

/* Returns true if the folder has a mark. Returns false with errno ENOENT if it has none, or with
 * another errno if the check failed. */
bool directory_is_marked(int folder);
/* Marks the folder. Returns 0, or -1 with errno set. */
int directory_mark(int folder);
/* Removes the mark of a folder that is about to be removed. */
void directory_unmark(int folder);
/* Returns true if the folder has nothing but a mark. */
bool directory_is_empty(int folder);

#endif
