/*
 * piece_file.h - operations on the file of a piece that may take long. For large pieces they run
 * outside of the loop (jobs.h).
 */
#ifndef PERSEAS_SERVER_PIECE_FILE_H
#define PERSEAS_SERVER_PIECE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct piece;

/* Returns the size of a regular file, or 0 if it does not exist. Does not give up the turn
 * (jobs.h). */
uint64_t piece_file_size(int folder, const char *name);
/* Reserves the memory of the file, so that no later write to it can fail (SIGBUS). `*unallocated`
 * includes `size` and is reduced as memory is reserved, or by the rest on failure. Returns 0 or an
 * errno; ECANCELED if the request was cancelled. After a failure the file keeps what was
 * reserved. */
int piece_file_reserve(int fd, uint64_t size, _Atomic uint64_t *unallocated);
/* Maps the file; the piece then owns the descriptor. Returns 0, or a negative Perseas__Status with
 * errno set. */
int piece_file_map(int folder, const char *name, int fd, uint64_t size, struct piece *piece);
/* Truncates the file to `size` and frees blocks beyond its end, because an owner that has the file
 * may have extended it. Returns 0 or an errno. */
int piece_file_trim(int fd, uint64_t size);
/* Trims, unmaps and closes the file. */
void piece_file_unmap(void *base, uint64_t size, int fd);
/* Removes the file by its name. `size` is only a hint for how long that takes. */
void piece_file_unlink(int folder, const char *name, uint64_t size);
/* Closes a removed file, which frees its memory if no other process has it. */
void piece_file_close_removed(int fd, uint64_t size);

#endif
