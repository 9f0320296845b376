/*
 * reservations.h - the memory that was reserved for the file of each piece, and what the file
 * occupies beyond that: a process that was given the file can extend it or allocate blocks beyond
 * its end.
 */
#ifndef PERSEAS_SERVER_RESERVATIONS_H
#define PERSEAS_SERVER_RESERVATIONS_H

#include <stdint.h>

struct reservation; /* element of a list, which is empty if NULL */

/* Records that memory for a piece of `size` bytes was reserved for the file open at fd. Returns 0
 * or an errno. */
int reservation_add(struct reservation **list, int fd, uint64_t size);
/* Records that the piece is about to be closed. The file still has its reservation. */
void reservation_mark_piece_closed(struct reservation *list, int fd);
/* Returns the size that was reserved for the file, or its present size if nothing was reserved. */
uint64_t reservation_size(const struct reservation *list, int fd);
/* Removes the reservation of a file that was removed. */
void reservation_remove(struct reservation **list, int fd);

/* Returns the bytes that the file of an open piece occupies beyond its reservation. */
uint64_t reservation_bytes_beyond(const struct reservation *list, int fd);
/* Returns the sum of reservation_bytes_beyond() over all open pieces. */
uint64_t reservations_total_bytes_beyond(const struct reservation *list);
/* Truncates all files to their reservations. May give up the turn (jobs.h). */
void reservations_trim_files(struct reservation *const *list);

/* Frees the list. */
void reservations_free(struct reservation **list);

#endif
