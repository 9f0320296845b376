/*
 * directory.h - a directory that is one daemon's own, and the marks by which it is known. No
 * symbolic link is followed on the way to it, or in it.
 *
 * A directory, and each folder in it, is perseasd's only when it carries a mark: a file named
 * ".perseas". It is made before anything else, in a directory that is new or empty.
 */
#ifndef PERSEAS_SERVER_DIRECTORY_H
#define PERSEAS_SERVER_DIRECTORY_H

#include <dirent.h>
#include <stdbool.h>

struct directory {
	int fd;   /* -1: it is not open */
	int lock; /* its lock file */
	/* It had its mark. Else it is new, or a version without marks has made it, and all in it is
	 * known: it gets its mark by directory_mark() when the caller is done with that. */
	bool marked;
};

/*
 * Opens `path`, made when missing with those above it, and locks it against a second daemon. It
 * must belong to the daemon's user, be writable by no other, and carry a mark; or known() must
 * hold of each name in it, ".lock" apart. what: which of the daemon's directories it is, one
 * word. 0, or -1 and *why (until the next call) says; nothing is changed in a directory that is not
 * perseasd's.
 */
int directory_open(const char *what, const char *path,
                   bool (*known)(int directory, const char *name), struct directory *directory,
                   const char **why);
/* Also of one that is not open. */
void directory_close(struct directory *directory);

/* Has its lock file still its name, so that no other daemon can have one of its own? */
bool directory_has_lock(const struct directory *directory);

/* Begins a list of the folder's names, which ends with closedir(). NULL: it cannot be listed. */
DIR *directory_list(int folder);

/* Does the folder carry a mark? False with an errno but ENOENT: that cannot be told. */
bool directory_is_marked(int folder);
/* 0, or -1 with errno. */
int directory_mark(int folder);
/* The mark is taken away, when the folder is about to go. */
void directory_unmark(int folder);
/* Has it nothing in it, a mark apart? */
bool directory_is_empty(int folder);

#endif
