/*
 * reservations.h - how much memory was reserved for the file of each piece, and what the file takes
 * beyond that: a process that was given the file can make it longer, or have blocks beyond its end.
 */
#ifndef PERSEAS_SERVER_RESERVATIONS_H
#define PERSEAS_SERVER_RESERVATIONS_H

#include <stdint.h>

struct reservation; /* a list of them begins as NULL */

/* The memory of an open file was reserved for a piece of `size` bytes. Returns 0 or an errno. */
int reservation_note(struct reservation **list, int fd, uint64_t size);
/* The piece is about to be closed. Its file still counts with the size that was reserved. */
void reservation_close(struct reservation *list, int fd);
/* Returns the size that was reserved for the file; without a reservation, its present size. */
uint64_t reservation_size(const struct reservation *list, int fd);
/* The file has been removed. */
void reservation_end(struct reservation **list, int fd);

/* Returns the bytes that the file of an open piece takes beyond its reservation. */
uint64_t reservation_excess(const struct reservation *list, int fd);
/* Returns the sum of them. */
uint64_t reservations_excess(const struct reservation *list);
/* Gives the memory beyond all reservations back. The turn may be given up meanwhile (jobs.h). */
void reservations_trim(struct reservation *const *list);

void reservations_forget(struct reservation **list);

#endif
