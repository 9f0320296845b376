/*
 * new_file.h - creates files whole or not at all: they are written without a name, and get it at
 * the end, so that a killed command leaves nothing. Where the file system does not support that,
 * they are written under a partial name that begins with a dot. They must never replace a file.
 */
#ifndef PERSEAS_COMMAND_NEW_FILE_H
#define PERSEAS_COMMAND_NEW_FILE_H

#include "ui.h"

/* Makes a write fail, instead of ending the process with half a file, at SIGINT, SIGTERM and the
 * limit on the size of files. */
void ps_file_catch_write_signals(void);

/* Writes all bytes. Returns false with errno set; ECANCELED: a signal asked the command to stop. */
bool ps_file_write(int fd, const void *bytes, uint64_t length);

/* Complains if the directory has something of this name. `path` names the directory for people. */
enum ps_exit ps_file_check_free(int dir, const char *path, const char *name);

/* Opens a new file for writing, without a name, and clears `partial`; or under the name `partial`.
 * Returns a descriptor, or -1 with errno set. */
int ps_file_open_new(int dir, char *partial);

/* Gives its name to a file of ps_file_open_new. Returns PS_EXIT_NO if something has that name
 * already. */
enum ps_exit ps_file_give_name(int dir, const char *path, int fd, const char *partial,
                               const char *name);

/* Complains with "path/name: what: <errno>". Returns PS_EXIT_FAILURE. */
enum ps_exit ps_file_complain(const char *path, const char *name, const char *what);

enum { PS_FILE_NAME = 256 };

/* A file that is being written. */
struct ps_new_file {
	char path[4096]; /* path of the file's directory */
	char name[PS_FILE_NAME];
	char partial[PS_FILE_NAME]; /* empty if the file has no name yet */
	int dir;
	int fd;
};

/* Opens a new file for writing. Returns PS_EXIT_NO if the path exists
 * already. After an error there is nothing to close. */
enum ps_exit ps_new_file_open(struct ps_new_file *file, const char *path);

/* Makes the file durable, gives it its name, and closes it. After an error no file is left. */
enum ps_exit ps_new_file_publish(struct ps_new_file *file);

/* Closes and deletes the file. */
void ps_new_file_discard(struct ps_new_file *file);

#endif
