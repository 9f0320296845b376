/*
 * descriptors.c - keeps descriptors. memory_file.c calls it, as who has the turn: no other thread
 * accepts connections meanwhile.
 */
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

void descriptors_init(struct descriptors *descriptors)
{
	descriptors->left = 0;
	for (unsigned i = 0; i < DESCRIPTORS_KEPT; i++)
		descriptors->kept[i] = -1;
}

void descriptors_keep(struct descriptors *descriptors, int open)
{
	const int error = errno;

	for (unsigned i = 0; i < DESCRIPTORS_KEPT; i++)
		if (descriptors->kept[i] < 0)
			descriptors->kept[i] = fcntl(open, F_DUPFD_CLOEXEC, 0);
	errno = error;
}

void descriptors_give(struct descriptors *descriptors)
{
	for (unsigned i = 0; i < DESCRIPTORS_KEPT; i++) {
		if (descriptors->kept[i] >= 0)
			close(descriptors->kept[i]);
		descriptors->kept[i] = -1;
	}
}

bool descriptors_spare(const struct descriptors *descriptors, int fd)
{
	struct rlimit limit;
	rlim_t left = descriptors->left;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return true;
	if (left > limit.rlim_cur / 2)
		left = limit.rlim_cur / 2;
	return (rlim_t)fd < limit.rlim_cur - left;
}
