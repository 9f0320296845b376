/*
 * small_file.h - small files that are replaced whole, without any memory that is not there
 * already: a header must be written also when the file system is full, or nobody could take a
 * store over.
 */
#ifndef PERSEAS_SERVER_SMALL_FILE_H
#define PERSEAS_SERVER_SMALL_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of such a file, whatever is in it: the rest is zero. The largest header is smaller. */
#define SMALL_FILE_ROOM ((size_t)32 << 10)

/*
 * The file becomes these bytes, and zeros behind them: another process, and the next daemon, see
 * the old bytes or the new. The first time, room is reserved for this and for the next; the next
 * ones of up to SMALL_FILE_ROOM need none. 0 or a negative Perseas__Status: NO_MEMORY, IO.
 */
int small_file_replace(int folder, const char *name, const void *bytes, size_t len);

/* Reads it; the caller frees *bytes. NO_STORE: it is not there; DAMAGED, IO. */
int small_file_load(int folder, const char *name, uint8_t **bytes, size_t *len);

/* Removes what is kept for the next replacement. */
void small_file_forget(int folder, const char *name);

/* Bytes that are kept for it. */
uint64_t small_file_kept(int folder, const char *name);

/* The status that an errno means. */
int file_status(int error);

#endif
