/*
 * reservations.h - the memory that was reserved for the file of each piece, and what the file
 * occupies beyond that: a process that was given the file can extend it or allocate blocks beyond
 * its end.
 */
#ifndef PERSEAS_SERVER_RESERVATIONS_H
#define PERSEAS_SERVER_RESERVATIONS_H

#include <stdint.h>

struct reservation; /* element of a list, which is empty if NULL */

/* Records that memory for a piece of `size` bytes was reserved for the open file. Returns 0 or an
 * errno. */
int reservation_note(struct reservation **list, int fd, uint64_t size);
/* Records that the piece is about to be closed. Its file still counts with its reserved size. */
void reservation_close(struct reservation *list, int fd);
/* Returns the size that was reserved for the file, or its present size without a reservation. */
uint64_t reservation_size(const struct reservation *list, int fd);
/* Removes the reservation of a file that was removed. */
void reservation_end(struct reservation **list, int fd);

/* Returns the bytes that the file of an open piece occupies beyond its reservation. */
uint64_t reservation_excess(const struct reservation *list, int fd);
/* Returns the sum over all open pieces. */
uint64_t reservations_excess(const struct reservation *list);
/* Truncates all files to their reservations. May give up the turn (jobs.h). */
void reservations_trim(struct reservation *const *list);

void reservations_forget(struct reservation **list);

#endif
