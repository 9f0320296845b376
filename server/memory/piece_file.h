/*
 * piece_file.h - what the kernel does for long with the file of a large piece: each of these goes
 * on beside the loop (jobs.h), and is a plain call for a small one.
 */
#ifndef PERSEAS_SERVER_PIECE_FILE_H
#define PERSEAS_SERVER_PIECE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct piece;

/* Of a plain file, at once; 0: there is none. */
uint64_t piece_file_size(int folder, const char *name);
/* Takes the memory of the file, so that no store to it can fail later (SIGBUS). *taking holds
 * `size` for it, and loses that with what is taken; what is left is given up. 0 or an errno;
 * ECANCELED: nobody wants it any more. What was taken until then goes with the file. */
int piece_file_reserve(int fd, uint64_t size, _Atomic uint64_t *taking);
/* Maps it: the piece has the descriptor then. -STATUS_…, and errno says more. */
int piece_file_take(int folder, const char *name, int fd, uint64_t size, struct piece *piece);
/* Cuts off what is behind `size`, blocks beyond the file's end too: an owner that has the file may
 * have made it longer, and that is nobody's. 0 or an errno. */
int piece_file_trim(int fd, uint64_t size);
/* Trims, unmaps and closes. */
void piece_file_unmap(void *base, uint64_t size, int fd);
/* Its size is only a hint here. */
void piece_file_unlink(int folder, const char *name, uint64_t size);
/* The last to have a removed file gives its memory back. */
void piece_file_release(int fd, uint64_t size);

#endif
