/*
 * memory_folder.h - the folders of stores in a memory directory, and the names in them. Only what
 * carries a mark (directory.h) is seen at all, and only names that a daemon makes.
 */
#ifndef PERSEAS_SERVER_MEMORY_FOLDER_H
#define PERSEAS_SERVER_MEMORY_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Nothing that leaves the directory, and none of the daemon's own files. */
bool folder_name_valid(const char *name);

/* Opens the store's folder. create: it is made, with its mark, when it is missing. -1 with errno:
 * it is not there, or not perseasd's (ENOENT; EEXIST where it was to be made), or that cannot be
 * told. */
int folder_open(int directory, const char *store, bool create);

/* Removes a folder that has nothing but its mark; one that has more stays. */
void folder_remove(int directory, const char *store);

/* Gives it a name that begins with a dot, and is free, which `where` tells. -1: it has its own. */
int folder_set_aside(int directory, const char *store, char *where, size_t size);
/* Calls found() for each folder with such a name. */
void folder_asides(int directory, void (*found)(void *arg, const char *name), void *arg);

/* Calls found() for each store in the directory, or for each piece in a folder. -1 with errno:
 * there may be others. */
int folder_stores(int directory, void (*found)(void *arg, const char *name), void *arg);
int folder_pieces(int folder, void (*found)(void *arg, const char *name), void *arg);

/* Is it a folder that a version without marks made for a store? Its header says so. */
bool folder_is_image(int directory, const char *name);
/* All these folders, and then the directory, get a mark. 0, or -1 with errno. */
int folder_adopt(int directory);

#endif
