/*
 * target_shm.c - owners on this host: they get the memory itself, as descriptors over the Unix
 * socket of their control connection. There is no data path to cut: the promise page fences
 * them (I5), and their pidfd tells when they are dead.
 */
#include "../loop/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int shm_process(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(int);
	int pidfd = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0 && pidfd >= 0)
		return pidfd;
	/* Linux before 6.5: by number, which is the peer's as long as it lives. */
	len = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.pid <= 0)
		return -1;
	return pidfd_open(cred.pid, 0);
}

bool shm_lives(int pidfd)
{
	struct pollfd process = { .fd = pidfd, .events = POLLIN };

	if (pidfd < 0)
		return true;
	return poll(&process, 1, 0) <= 0 || !(process.revents & POLLIN);
}

struct process_holder {
	struct holder holder;
	int pidfd;
};

static bool holder_may_write(struct holder *holder)
{
	return shm_lives(((struct process_holder *)holder)->pidfd);
}

static void holder_free(struct holder *holder)
{
	close(((struct process_holder *)holder)->pidfd);
	free(holder);
}

struct holder *shm_holder(int pidfd)
{
	struct process_holder *process;
	int copy = pidfd < 0 ? -1 : fcntl(pidfd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return NULL;
	process = malloc(sizeof(*process));
	if (!process) {
		close(copy);
		return NULL;
	}
	process->holder.may_write = holder_may_write;
	process->holder.free = holder_free;
	process->pidfd = copy;
	return &process->holder;
}

ssize_t shm_send(int fd, const void *bytes, size_t len, const int *fds, unsigned count)
{
	struct iovec part = { .iov_base = (void *)bytes, .iov_len = len };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(PS_REGIONS_MAX * sizeof(int))];
	} control;

	if (count > 0) {
		memset(&control, 0, sizeof(control));
		message.msg_control = control.room;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

const struct target target_shm = { .name = "shm" };
