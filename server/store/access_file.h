/*
 * access_file.h - the rules of access.h in a file, and the users and groups of this host.
 */
#ifndef PERSEAS_SERVER_ACCESS_FILE_H
#define PERSEAS_SERVER_ACCESS_FILE_H

#include "access.h"

/* Reads the rules. NULL, with a sentence in `why` that names the file and, where it is of one, the
 * line. Waits for the host's data base of users. */
struct access *access_read(const char *path, char *why, size_t size);

#endif
