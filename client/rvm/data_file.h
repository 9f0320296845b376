/*
 * data_file.h - external data segments: files and devices that segments are first read from, and
 * that rvm_truncate writes. Errors are RVM_EIO with errno, and name the file.
 */
#ifndef PERSEAS_RVM_DATA_FILE_H
#define PERSEAS_RVM_DATA_FILE_H

#include "rvm.h"

#include <stdint.h>

struct ps_rvm_file {
	const char *name; /* the caller's */
	int descriptor;
};

/* Opens one that is there to be read. *length, which may be NULL: of the file or device, bytes. */
rvm_return_t ps_rvm_file_open(struct ps_rvm_file *file, const char *name, uint64_t *length);
/* Opens one to be written, and makes it where it is missing. */
rvm_return_t ps_rvm_file_make(struct ps_rvm_file *file, const char *name);
void ps_rvm_file_close(struct ps_rvm_file *file);

/* Locks one that is to be written, against every process that does so too, until it is unlocked. It
 * waits for 5 s, and fails with EAGAIN. On a file system that has no locks (EINVAL, ENOSYS,
 * EOPNOTSUPP) nothing is locked; one that has them and cannot give this one now is an error. */
rvm_return_t ps_rvm_file_lock(const struct ps_rvm_file *file);

/* To close it is not enough: a child that was forked meanwhile has the descriptor, and the lock. */
void ps_rvm_file_unlock(const struct ps_rvm_file *file);

/* Bytes beyond the end of the file are left as they are in `to`. */
rvm_return_t ps_rvm_file_read(const struct ps_rvm_file *file, uint64_t offset, void *to,
                              uint64_t length);
rvm_return_t ps_rvm_file_write(const struct ps_rvm_file *file, uint64_t offset, const void *from,
                               uint64_t length);
/* What was written outlives a power failure, and so does a file that was made. */
rvm_return_t ps_rvm_file_sync(const struct ps_rvm_file *file);

#endif
