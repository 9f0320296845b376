/*
 * data_file.h - external data segments: the files and devices that segments are first read from and
 * that rvm_truncate writes. Errors are RVM_EIO with errno set; the message names the file.
 */
#ifndef PERSEAS_RVM_DATA_FILE_H
#define PERSEAS_RVM_DATA_FILE_H

#include "rvm.h"

#include <stdint.h>

struct ps_rvm_file {
	const char *name; /* owned by the caller */
	int descriptor;
};

/* Opens an existing file or device for reading. Sets *length, unless NULL, to its length in
 * bytes. */
rvm_return_t ps_rvm_file_open(struct ps_rvm_file *file, const char *name, uint64_t *length);
/* Opens a file for writing, and creates it if it is missing. */
rvm_return_t ps_rvm_file_create(struct ps_rvm_file *file, const char *name);
void ps_rvm_file_close(struct ps_rvm_file *file);

/* Locks a file, until it is unlocked, against every process that locks it in this way. Waits 5 s
 * for the lock, then fails with EAGAIN. Succeeds without a lock if the file system has none
 * (EINVAL, ENOSYS, EOPNOTSUPP); other errors fail. */
rvm_return_t ps_rvm_file_lock(const struct ps_rvm_file *file);

/* Unlocks a file. Closing it does not: a child that was forked in the meantime shares the
 * descriptor and its lock. */
void ps_rvm_file_unlock(const struct ps_rvm_file *file);

/* Reads bytes. What lies beyond the end of the file is left unchanged in `to`. */
rvm_return_t ps_rvm_file_read(const struct ps_rvm_file *file, uint64_t offset, void *to,
                              uint64_t length);
rvm_return_t ps_rvm_file_write(const struct ps_rvm_file *file, uint64_t offset, const void *from,
                               uint64_t length);
/* Makes written bytes, and a file that was created, survive a power failure. */
rvm_return_t ps_rvm_file_sync(const struct ps_rvm_file *file);

#endif
