/*
 * leftover.h - files that were removed while another process has them open or mapped: their memory
 * is taken until that process ends.
 */
#ifndef PERSEAS_SERVER_LEFTOVER_H
#define PERSEAS_SERVER_LEFTOVER_H

#include <stdbool.h>
#include <stdint.h>

struct leftover; /* a list of them begins as NULL */

/* A file of the store that has no name any more, made for a piece of `size` bytes. Takes fd, which
 * is open for writing; false: nobody else has the file, and fd stays the caller's. */
bool leftover_note(struct leftover **list, const char *store, int fd, uint64_t size);

/* Is the file that is open here one of them? */
bool leftover_has(const struct leftover *list, int fd);

/* Bytes that those of one store take, or of all (NULL). Those that nobody else has are let go
 * beside the loop (jobs.h), and counted until they are gone. */
uint64_t leftover_sum(struct leftover **list, const char *store);

/* Returns the bytes that they take beyond the sizes of their pieces. */
uint64_t leftover_excess(const struct leftover *list);
/* Gives these back. The turn may be given up meanwhile (jobs.h). */
void leftover_trim(struct leftover *const *list);

/* Those that nobody else has are gone when it returns. */
void leftover_settle(struct leftover **list);

/* Lets all of them go. */
void leftover_forget(struct leftover **list);

/* Bytes of memory that the file takes. */
uint64_t leftover_blocks(int fd);

#endif
