/*
 * directory.h - a directory that is one daemon's own.
 */
#ifndef PERSEAS_SERVER_DIRECTORY_H
#define PERSEAS_SERVER_DIRECTORY_H

/*
 * Opens `path`, made when missing with those above it, and locks it against a second daemon:
 * *directory and *lock are descriptors, -1 where it did not come so far. It must belong to the
 * daemon's user and be writable by no other. what: which of the daemon's directories it is, one
 * word. 0, or -1 and *why (until the next call) says.
 */
int directory_open(const char *what, const char *path, int *directory, int *lock, const char **why);

#endif
