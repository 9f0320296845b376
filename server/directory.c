#include "directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_directories(const char *path)
{
	char part[PATH_MAX];
	int n = snprintf(part, sizeof(part), "%s", path);

	if (n < 1 || (size_t)n >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -1;
		*slash = '/';
	}
	return mkdir(part, 0700) < 0 && errno != EEXIST ? -1 : 0;
}

/* In a place that all may write to, such as /dev/shm, another user may have made it first. */
static bool is_private(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

int directory_open(const char *what, const char *path, int *directory, int *lock, const char **why)
{
	static char text[PATH_MAX + 160];

	*directory = *lock = -1;
	*why = text;
	if (make_directories(path) < 0 ||
	    (*directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		snprintf(text, sizeof(text), "%s directory %s: %s", what, path, strerror(errno));
		return -1;
	}
	if (!is_private(*directory)) {
		snprintf(text, sizeof(text),
		         "%s directory %s must belong to the daemon's user and be writable by no "
		         "other",
		         what, path);
		return -1;
	}
	*lock = openat(*directory, ".lock", O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (*lock < 0) {
		snprintf(text, sizeof(text), "%s directory %s: its lock file: %s", what, path,
		         strerror(errno));
		return -1;
	}
	if (flock(*lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		snprintf(text, sizeof(text),
		         "%s directory %s is in use by another perseasd; end that one, or give "
		         "this one a --%s-dir of its own",
		         what, path, what);
	else
		snprintf(text, sizeof(text), "%s directory %s cannot be locked", what, path);
	return -1;
}
