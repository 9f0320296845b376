/*
 * data_file.c - external data segments (data_file.h): plain reads and writes at offsets.
 */
#include "data_file.h"

#include "fail.h"
#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* bytes of one read or write; the kernel transfers no more than 2 GiB in one call */
#define AT_ONCE ((uint64_t)1 << 30)

/* How often a lock is tried, and the pause between two attempts. */
enum { LOCK_TRIES = 500, LOCK_PAUSE_NS = 10000000 };

static rvm_return_t fail_file(const char *name, const char *what)
{
	const int number = errno;

	return ps_rvm_fail_errno(number, "external data segment '%.300s' cannot be %s: %s", name,
	                         what, strerror(number));
}

/* Moves the descriptor of a file above those of the standard streams: what the program prints
 * while one of these is closed must not go into its data. Returns the descriptor, or -1 with errno
 * set. */
static int keep_above_standard(int descriptor)
{
	int above, number;

	if (descriptor < 0 || descriptor > STDERR_FILENO)
		return descriptor;
	above = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	number = errno;
	close(descriptor);
	errno = number;
	return above;
}

rvm_return_t ps_rvm_file_open(struct ps_rvm_file *file, const char *name, uint64_t *length)
{
	off_t end;

	file->name = name;
	/* Without O_NONBLOCK, opening a pipe would wait for a writer. */
	file->descriptor = keep_above_standard(open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	if (file->descriptor < 0)
		return fail_file(name, "opened");
	end = lseek(file->descriptor, 0, SEEK_END);
	if (end < 0) {
		const rvm_return_t code = fail_file(name, "measured");

		ps_rvm_file_close(file);
		return code;
	}
	if (length)
		*length = (uint64_t)end;
	return RVM_SUCCESS;
}

rvm_return_t ps_rvm_file_create(struct ps_rvm_file *file, const char *name)
{
	file->name = name;
	file->descriptor = keep_above_standard(open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	return file->descriptor < 0 ? fail_file(name, "opened to be written") : RVM_SUCCESS;
}

void ps_rvm_file_close(struct ps_rvm_file *file)
{
	const int number = errno;

	if (file->descriptor >= 0)
		close(file->descriptor);
	file->descriptor = -1;
	errno = number;
}

static int set_lock(const struct ps_rvm_file *file, short type)
{
	struct flock whole = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(file->descriptor, F_OFD_SETLK, &whole);
}

/* An OFD lock belongs to the descriptor, not to the process: the program may open, close and lock
 * the same file itself. */
rvm_return_t ps_rvm_file_lock(const struct ps_rvm_file *file)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };

	for (unsigned tries = 0; tries < LOCK_TRIES; tries++) {
		if (!set_lock(file, F_WRLCK) || errno == EINVAL || errno == ENOSYS ||
		    errno == EOPNOTSUPP)
			return RVM_SUCCESS;
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return fail_file(file->name, "locked");
		nanosleep(&pause, NULL);
	}
	return ps_rvm_fail_errno(EAGAIN,
	                         "external data segment '%.300s' is locked by another process, "
	                         "and was so for 5 s: end the one that writes to it, or try again",
	                         file->name);
}

void ps_rvm_file_unlock(const struct ps_rvm_file *file)
{
	const int number = errno;

	set_lock(file, F_UNLCK);
	errno = number;
}

rvm_return_t ps_rvm_file_read(const struct ps_rvm_file *file, uint64_t offset, void *to,
                              uint64_t length)
{
	for (uint64_t done = 0; done < length;) {
		const uint64_t rest = length - done;
		const ssize_t got = pread(file->descriptor, (char *)to + done,
		                          rest < AT_ONCE ? rest : AT_ONCE, (off_t)(offset + done));

		if (got == 0)
			return RVM_SUCCESS;
		if (got < 0 && errno != EINTR)
			return fail_file(file->name, "read");
		done += got > 0 ? (uint64_t)got : 0;
	}
	return RVM_SUCCESS;
}

rvm_return_t ps_rvm_file_write(const struct ps_rvm_file *file, uint64_t offset, const void *from,
                               uint64_t length)
{
	for (uint64_t done = 0; done < length;) {
		const uint64_t rest = length - done;
		const ssize_t put = pwrite(file->descriptor, (const char *)from + done,
		                           rest < AT_ONCE ? rest : AT_ONCE, (off_t)(offset + done));

		if (put < 0 && errno != EINTR)
			return fail_file(file->name, "written");
		done += put > 0 ? (uint64_t)put : 0;
	}
	return RVM_SUCCESS;
}

/* Syncs the folder, so that a new file survives a power failure. Some file systems cannot sync a
 * folder (EINVAL), and a program may be allowed to write to a folder that it cannot read
 * (EACCES). */
static int sync_folder(const char *name)
{
	const char *slash = strrchr(name, '/');
	char folder[PS_RVM_NAME] = ".";
	int descriptor, rc, number;

	if (slash) /* Keep the slash: the folder may be "/". */
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - name) + 1, name);
	descriptor = keep_above_standard(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (descriptor < 0)
		return errno == EACCES ? 0 : -1;
	rc = fsync(descriptor);
	number = errno;
	close(descriptor);
	errno = number;
	return rc && errno != EINVAL ? -1 : 0;
}

rvm_return_t ps_rvm_file_sync(const struct ps_rvm_file *file)
{
	if (fsync(file->descriptor))
		return fail_file(file->name, "synchronised");
	return sync_folder(file->name) ? fail_file(file->name, "kept in its folder") : RVM_SUCCESS;
}
