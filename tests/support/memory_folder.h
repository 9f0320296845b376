/*
 * memory_folder.h - a folder for the images of a test's mirrors. It lies in /dev/shm; in /tmp if
 * /dev/shm has little room, as in a container.
 */
#ifndef PERSEAS_TESTS_MEMORY_FOLDER_H
#define PERSEAS_TESTS_MEMORY_FOLDER_H

#include <stddef.h>

/* Makes the folder, and writes its path; fails the test if it cannot. The caller removes it.
 * name: a word that tells whose it is. */
void memory_folder(char *path, size_t size, const char *name);

#endif
