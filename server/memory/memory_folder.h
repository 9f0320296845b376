/*
 * memory_folder.h - the folders of stores in a memory directory, and the names in them. Ignores
 * everything that has no mark (directory.h) and names that no daemon creates.
 */
#ifndef PERSEAS_SERVER_MEMORY_FOLDER_H
#define PERSEAS_SERVER_MEMORY_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true for a name that stays within the directory and is not one of the daemon's own
 * files. */
bool folder_is_valid_name(const char *name);

/* Opens the store's folder. If `create` is true, creates and marks it if it is missing. Returns -1
 * with errno set if it does not exist or is not perseasd's (ENOENT; EEXIST if it was to be
 * created), or on failure. */
int folder_open_for_store(int directory, const char *store, bool create);

/* Removes a folder that has nothing but its mark. */
void folder_remove_empty(int directory, const char *store);

/* Renames the folder to a free name that begins with a dot, and stores that in `where`. Returns 0,
 * or -1 if it keeps its name. */
int folder_set_aside(int directory, const char *store, char *where, size_t size);
/* Calls found() for each folder that folder_set_aside() has renamed. */
void folder_list_set_aside(int directory, void (*found)(void *arg, const char *name), void *arg);

/* Call found() for each store in the directory, or for each piece in a folder. Return 0, or -1 with
 * errno set if they may have missed one. */
int folder_list_stores(int directory, void (*found)(void *arg, const char *name), void *arg);
int folder_list_pieces(int folder, void (*found)(void *arg, const char *name), void *arg);

/* Returns true if a version without marks created the folder for a store, which its header
 * shows. */
bool folder_is_unmarked_image(int directory, const char *name);
/* Marks all folders for which folder_is_unmarked_image() returns true, and then the directory.
 * Returns 0, or -1 with errno set. */
int folder_mark_all_images(int directory);

#endif
