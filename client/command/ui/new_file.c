/*
 * new_file.c - see new_file.h.
 */
#include "new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void ps_file_catch_write_signals(void)
{
	ps_stop_catch();
	signal(SIGXFSZ, SIG_IGN);
}

bool ps_file_write(int fd, const void *bytes, uint64_t length)
{
	const uint8_t *at = bytes;

	if (ps_stop_requested()) {
		errno = ECANCELED;
		return false;
	}
	while (length > 0) {
		ssize_t n = write(fd, at, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 ? EIO : errno;
			return false;
		}
		at += n;
		length -= (uint64_t)n;
	}
	return true;
}

enum ps_exit ps_file_complain(const char *path, const char *name, const char *what)
{
	return ps_complain(PS_EXIT_FAILURE, "%s/%s: %s: %s", path, name, what, strerror(errno));
}

enum ps_exit ps_file_check_free(int dir, const char *path, const char *name)
{
	struct stat stat;

	if (!fstatat(dir, name, &stat, AT_SYMLINK_NOFOLLOW))
		return ps_complain(PS_EXIT_NO,
		                   "%s/%s is there already, and is not replaced: take "
		                   "another name or directory",
		                   path, name);
	if (errno != ENOENT)
		return ps_complain(PS_EXIT_FAILURE, "%s/%s: %s", path, name, strerror(errno));
	return PS_EXIT_OK;
}

int ps_file_open_new(int dir, char *partial)
{
	int fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd >= 0)
		*partial = '\0';
	else if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)
		fd = openat(dir, partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd;
}

/* Renames a file of the directory. Returns PS_EXIT_NO if something has that name already. */
static enum ps_exit name_partial(int dir, const char *path, const char *partial, const char *name)
{
	int rc = renameat2(dir, partial, dir, name, RENAME_NOREPLACE);

	/* Some file systems do not support RENAME_NOREPLACE. */
	if (rc && errno == EINVAL) {
		enum ps_exit status = ps_file_check_free(dir, path, name);

		if (status)
			return status;
		rc = renameat(dir, partial, dir, name);
	}
	if (rc && errno == EEXIST)
		return ps_file_check_free(dir, path, name);
	return rc ? ps_file_complain(path, name, "cannot be given its name") : PS_EXIT_OK;
}

enum ps_exit ps_file_give_name(int dir, const char *path, int fd, const char *partial,
                               const char *name)
{
	char unnamed[40];

	if (*partial)
		return name_partial(dir, path, partial, name);
	snprintf(unnamed, sizeof(unnamed), "/proc/self/fd/%d", fd);
	if (!linkat(AT_FDCWD, unnamed, dir, name, AT_SYMLINK_FOLLOW))
		return PS_EXIT_OK;
	return errno == EEXIST ? ps_file_check_free(dir, path, name)
	                       : ps_file_complain(path, name, "cannot be given its name");
}

/* --- one file --- */

static enum ps_exit path_split(struct ps_new_file *file, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = slash ? (size_t)(slash - path) : 1;

	if (!*name)
		return ps_complain(PS_EXIT_USAGE, "'%.80s' names no file", path);
	if (len == 0)
		len = 1;
	if (len >= sizeof(file->path) || strlen(name) > PS_FILE_NAME - 32)
		return ps_complain(PS_EXIT_USAGE, "'%.80s…' is too long for a file's name", path);
	memcpy(file->path, slash ? path : ".", len);
	file->path[len] = '\0';
	snprintf(file->name, sizeof(file->name), "%s", name);
	snprintf(file->partial, sizeof(file->partial), ".%.220s.%d.partial", name, (int)getpid());
	return PS_EXIT_OK;
}

enum ps_exit ps_new_file_open(struct ps_new_file *file, const char *path)
{
	enum ps_exit status = path_split(file, path);

	if (status)
		return status;
	file->dir = open(file->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (file->dir < 0)
		return ps_complain(PS_EXIT_FAILURE, "directory %s cannot be opened: %s", file->path,
		                   strerror(errno));
	status = ps_file_check_free(file->dir, file->path, file->name);
	if (!status) {
		ps_file_catch_write_signals();
		file->fd = ps_file_open_new(file->dir, file->partial);
		if (file->fd < 0)
			status = ps_file_complain(file->path, file->name, "cannot be made");
	}
	if (status)
		close(file->dir);
	return status;
}

void ps_new_file_discard(struct ps_new_file *file)
{
	close(file->fd);
	if (*file->partial)
		unlinkat(file->dir, file->partial, 0);
	close(file->dir);
}

enum ps_exit ps_new_file_publish(struct ps_new_file *file)
{
	enum ps_exit status = PS_EXIT_OK;

	if (fsync(file->fd))
		status = ps_file_complain(file->path, file->name, "cannot be written");
	if (!status)
		status = ps_file_give_name(file->dir, file->path, file->fd, file->partial,
		                           file->name);
	if (status) {
		ps_new_file_discard(file);
		return status;
	}
	close(file->fd);
	if (fsync(file->dir))
		status = ps_file_complain(file->path, file->name, "cannot be made durable");
	close(file->dir);
	return status;
}
