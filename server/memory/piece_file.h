/*
 * piece_file.h - operations on the file of a piece that may take long. For large pieces they run
 * outside of the loop (jobs.h).
 */
#ifndef PERSEAS_SERVER_PIECE_FILE_H
#define PERSEAS_SERVER_PIECE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct piece;

/* Returns the size of a regular file, or 0 if there is none. Does not give up the turn. */
uint64_t piece_file_size(int folder, const char *name);
/* Reserves the memory of the file, so that no later store to it can fail (SIGBUS). `*taking`
 * includes `size` and is reduced as memory is reserved, or by the rest on failure. Returns 0 or an
 * errno; ECANCELED if the request was cancelled. Memory that was reserved by then belongs to the
 * file. */
int piece_file_reserve(int fd, uint64_t size, _Atomic uint64_t *taking);
/* Maps the file; the piece then owns the descriptor. Returns 0, or a negative Perseas__Status with
 * errno set. */
int piece_file_take(int folder, const char *name, int fd, uint64_t size, struct piece *piece);
/* Truncates the file to `size`, with blocks beyond its end, because an owner that has the file may
 * have extended it. Returns 0 or an errno. */
int piece_file_trim(int fd, uint64_t size);
/* Trims, unmaps and closes the file. */
void piece_file_unmap(void *base, uint64_t size, int fd);
/* Removes the name. `size` is only a hint for how long it takes. */
void piece_file_unlink(int folder, const char *name, uint64_t size);
/* Closes a removed file, which frees its memory if no other process has it. */
void piece_file_release(int fd, uint64_t size);

#endif
