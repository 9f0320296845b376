/*
 * removed_files.h - files that were removed while another process has them open or mapped. They
 * occupy memory until that process closes them.
 */
#ifndef PERSEAS_SERVER_REMOVED_FILES_H
#define PERSEAS_SERVER_REMOVED_FILES_H

#include <stdbool.h>
#include <stdint.h>

struct removed_file; /* element of a list, which is empty if NULL */

/* Adds a removed file of the store, which was made for a piece of `size` bytes. Takes over fd,
 * which is open for writing. Returns false if no other process has the file; the caller then keeps
 * fd. */
bool removed_files_add(struct removed_file **list, const char *store, int fd, uint64_t size);

/* Returns true if the file that is open at fd is in the list. */
bool removed_files_contain(const struct removed_file *list, int fd);

/* Returns the bytes that the files of the store occupy (NULL: of all stores). Closes files that no
 * other process has any more, in a job (jobs.h), and counts them until they are closed. */
uint64_t removed_files_bytes(struct removed_file **list, const char *store);

/* Returns the bytes that the files occupy beyond the sizes of their pieces. */
uint64_t removed_files_bytes_beyond_pieces(const struct removed_file *list);
/* Truncates the files to the sizes of their pieces. May give up the turn (jobs.h). */
void removed_files_trim_to_pieces(struct removed_file *const *list);

/* Closes all files that no other process has any more, before it returns. */
void removed_files_close_unused(struct removed_file **list);

/* Closes all files. */
void removed_files_close_all(struct removed_file **list);

/* Returns the bytes of memory that the file open at fd occupies. */
uint64_t occupied_bytes(int fd);

#endif
