/*
 * descriptors.c - reserves file descriptors. memory_file.c calls it while it has the turn, when no
 * other thread accepts connections.
 */
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

void descriptor_reserve_init(struct descriptor_reserve *reserve)
{
	reserve->left_to_others = 0;
	for (unsigned i = 0; i < DESCRIPTORS_RESERVED; i++)
		reserve->reserved[i] = -1;
}

void descriptor_reserve_refill(struct descriptor_reserve *reserve, int open)
{
	const int error = errno;

	for (unsigned i = 0; i < DESCRIPTORS_RESERVED; i++)
		if (reserve->reserved[i] < 0)
			reserve->reserved[i] = fcntl(open, F_DUPFD_CLOEXEC, 0);
	errno = error;
}

void descriptor_reserve_release(struct descriptor_reserve *reserve)
{
	for (unsigned i = 0; i < DESCRIPTORS_RESERVED; i++) {
		if (reserve->reserved[i] >= 0)
			close(reserve->reserved[i]);
		reserve->reserved[i] = -1;
	}
}

bool descriptor_reserve_allows_piece(const struct descriptor_reserve *reserve, int fd)
{
	struct rlimit limit;
	rlim_t left = reserve->left_to_others;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return true;
	if (left > limit.rlim_cur / 2)
		left = limit.rlim_cur / 2;
	return (rlim_t)fd < limit.rlim_cur - left;
}
