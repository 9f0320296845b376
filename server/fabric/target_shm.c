/*
 * target_shm.c - owners on this host: they get descriptors of the memory over the Unix socket of
 * their control connection. There is no data path to cut: the promise page fences them (I5), and
 * their pidfd shows when they are dead.
 */
#include "../loop/daemon.h"
#include "../host/jobs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum {
	WAIT_STEP_MS = 20, /* between two checks whether the wait was cancelled */
	/* Longest wait for the end of a process if it is unknown whether it is about to end. */
	WAIT_UNKNOWN_MS = 10,
};

int shm_peer_pidfd(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(int);
	int pidfd = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0 && pidfd >= 0)
		return pidfd;
	/* Before Linux 6.5, uses the process id, which stays the peer's as long as the peer
	 * lives. */
	len = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.pid <= 0)
		return -1;
	return pidfd_open(cred.pid, 0);
}

bool shm_process_is_alive(int pidfd)
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
	return shm_process_is_alive(((struct process_holder *)holder)->pidfd);
}

/* Returns how long to wait for the end of the process. process_mrelease(2) frees private memory of
 * a process that is about to end, and of no other process. So it shows, even for processes of other
 * users or PID namespaces, whether all threads were killed or are exiting. It fails with ESRCH if
 * such a process has no memory to free, and with EINVAL if the process continues, though it may be
 * stopped, dumping core, or without its first thread. */
static uint32_t longest_wait_ms(int pidfd, uint32_t most_ms)
{
	if (process_mrelease(pidfd, 0) == 0 || errno == ESRCH || errno == EAGAIN)
		return most_ms;
	if (errno == EINVAL)
		return 0;
	return most_ms < WAIT_UNKNOWN_MS ? most_ms : WAIT_UNKNOWN_MS;
}

static void holder_await_end(struct holder *holder, uint32_t *left_ms)
{
	const int pidfd = ((struct process_holder *)holder)->pidfd;
	struct pollfd process = { .fd = pidfd, .events = POLLIN };
	const uint64_t began_ns = daemon_now_ns();
	const uint32_t most = longest_wait_ms(pidfd, *left_ms);
	uint64_t passed = 0;

	while (passed < most && shm_process_is_alive(pidfd) && !job_cancelled()) {
		const uint64_t step = most - passed;

		(void)poll(&process, 1, (int)(step < WAIT_STEP_MS ? step : WAIT_STEP_MS));
		passed = (daemon_now_ns() - began_ns) / 1000000;
	}
	*left_ms -= (uint32_t)(passed < *left_ms ? passed : *left_ms);
}

static void holder_free(struct holder *holder)
{
	const int pidfd = ((struct process_holder *)holder)->pidfd;

	if (pidfd >= 0)
		close(pidfd);
	free(holder);
}

struct holder *shm_holder_new(int pidfd)
{
	struct process_holder *process = malloc(sizeof(*process));

	if (!process)
		return NULL;
	process->holder.may_write = holder_may_write;
	process->holder.await_end = holder_await_end;
	process->holder.free = holder_free;
	process->pidfd = pidfd < 0 ? -1 : fcntl(pidfd, F_DUPFD_CLOEXEC, 0);
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

	assert(count <= PS_REGIONS_MAX);
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
