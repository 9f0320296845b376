/*
 * descriptors.c - reserves file descriptors. memory_file.c calls it while it has the turn, when no
 * other thread accepts connections.
 */
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

void descriptors_init(struct descriptors *descriptors)
{
	descriptors->left_to_others = 0;
	for (unsigned i = 0; i < DESCRIPTORS_RESERVED; i++)
		descriptors->reserved[i] = -1;
}

void descriptors_reserve(struct descriptors *descriptors, int open)
{
	const int error = errno;

	for (unsigned i = 0; i < DESCRIPTORS_RESERVED; i++)
		if (descriptors->reserved[i] < 0)
			descriptors->reserved[i] = fcntl(open, F_DUPFD_CLOEXEC, 0);
	errno = error;
}

void descriptors_release(struct descriptors *descriptors)
{
	for (unsigned i = 0; i < DESCRIPTORS_RESERVED; i++) {
		if (descriptors->reserved[i] >= 0)
			close(descriptors->reserved[i]);
		descriptors->reserved[i] = -1;
	}
}

bool descriptors_may_use(const struct descriptors *descriptors, int fd)
{
	struct rlimit limit;
	rlim_t left = descriptors->left_to_others;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return true;
	if (left > limit.rlim_cur / 2)
		left = limit.rlim_cur / 2;
	return (rlim_t)fd < limit.rlim_cur - left;
}
