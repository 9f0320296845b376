/*
 * small_file.h - small files that are replaced atomically without allocating memory. A header must
 * be written even if the file system is full, or nobody could take the store over.
 */
#ifndef PERSEAS_SERVER_SMALL_FILE_H
#define PERSEAS_SERVER_SMALL_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Size of each small file, whose contents are padded with zeros. The largest header is smaller. */
#define SMALL_FILE_ROOM ((size_t)32 << 10)

/* Replaces the contents of the file by these bytes, padded with zeros: another process, and a
 * restarted daemon, see either the old or the new contents. The first call also makes a spare, a
 * second file of the same size; later calls with up to SMALL_FILE_ROOM bytes write to the spare and
 * allocate nothing. Returns 0, -STATUS_NO_MEMORY or -STATUS_IO. */
int small_file_replace(int folder, const char *name, const void *bytes, size_t len);

/* Reads the file. The caller frees *bytes. Returns 0, -STATUS_NO_STORE if it does not exist,
 * -STATUS_DAMAGED or -STATUS_IO. */
int small_file_load(int folder, const char *name, uint8_t **bytes, size_t *len);

/* Removes the spare of the file (see small_file_replace()). */
void small_file_remove_spare(int folder, const char *name);

/* Returns the size of the file's spare, or 0 if it has none. */
uint64_t small_file_spare_bytes(int folder, const char *name);

/* Returns the negative Perseas__Status for an errno. */
int file_status(int error);

#endif
