/*
 * new_file.h - files that are made whole or not at all: written beside under a name that begins
 * with a dot, and given their name at the end, without ever replacing another.
 */
#ifndef PERSEAS_COMMAND_NEW_FILE_H
#define PERSEAS_COMMAND_NEW_FILE_H

#include "ui.h"

/* From now on neither SIGINT, SIGTERM nor a limit on the size of files ends the process while half
 * a file is there: ps_file_write() fails. */
void ps_file_begin(void);

/* All of them. False: errno says why; ECANCELED: a signal says to stop. */
bool ps_file_write(int fd, const void *bytes, uint64_t length);

/* Is there nothing of this name in the directory, which `path` names for people? */
enum ps_exit ps_file_check_free(int dir, const char *path, const char *name);

/* Gives a file of the directory its name. PS_EXIT_NO: something has it already. */
enum ps_exit ps_file_name_partial(int dir, const char *path, const char *partial, const char *name);

/* The sentence "path/name: what: <errno>". Returns PS_EXIT_FAILURE. */
enum ps_exit ps_file_failed(const char *path, const char *name, const char *what);

enum { PS_FILE_NAME = 256 };

/* One new file, by its path. */
struct ps_new_file {
	char path[4096]; /* of its directory */
	char name[PS_FILE_NAME];
	char partial[PS_FILE_NAME];
	int dir;
	int fd;
};

/* Opens it for writing, under its partial name. PS_EXIT_NO: it is there already. After an error
 * there is nothing to close. */
enum ps_exit ps_new_file_open(struct ps_new_file *file, const char *path);

/* Makes what was written durable, and gives it its name. Closes; after an error nothing is left. */
enum ps_exit ps_new_file_keep(struct ps_new_file *file);

/* Closes, and leaves nothing. */
void ps_new_file_drop(struct ps_new_file *file);

#endif
