/*
 * small_file.h - small files that are replaced atomically without allocating memory. A header must
 * be written even if the file system is full, or nobody could take the store over.
 */
#ifndef PERSEAS_SERVER_SMALL_FILE_H
#define PERSEAS_SERVER_SMALL_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that each such file has, padded with zeros. The largest header is smaller. */
#define SMALL_FILE_ROOM ((size_t)32 << 10)

/* Replaces the contents of the file by these bytes, padded with zeros: another process, and a
 * restarted daemon, see either the old or the new contents. The first call reserves memory for
 * itself and the next one; later calls with up to SMALL_FILE_ROOM bytes allocate none. Returns 0,
 * -STATUS_NO_MEMORY or -STATUS_IO. */
int small_file_replace(int folder, const char *name, const void *bytes, size_t len);

/* Reads the file. The caller frees *bytes. Returns 0, -STATUS_NO_STORE if it does not exist,
 * -STATUS_DAMAGED or -STATUS_IO. */
int small_file_load(int folder, const char *name, uint8_t **bytes, size_t *len);

/* Removes the spare of the file. */
void small_file_forget(int folder, const char *name);

/* Returns the size of the file's spare. */
uint64_t small_file_kept(int folder, const char *name);

/* Returns the negative Perseas__Status for an errno. */
int file_status(int error);

#endif
