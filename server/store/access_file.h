/*
 * access_file.h - reads access rules (access.h) from a file, with the users and groups of this
 * host.
 */
#ifndef PERSEAS_SERVER_ACCESS_FILE_H
#define PERSEAS_SERVER_ACCESS_FILE_H

#include "access.h"

/* Reads the rules. Returns NULL on failure, with a sentence in `why` that names the file and, if
 * possible, the line. May block on the host's user database. */
struct access *access_file_read(const char *path, char *why, size_t size);

#endif
