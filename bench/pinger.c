/*
 * pinger.c - ping-pong over TCP and over Unix sockets.
 */
#include "clock.h"
#include "pinger.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct pinger {
	int fd;
	pid_t child;
	unsigned bytes;
	uint64_t spin_ns;
	uint8_t message[];
};

int pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

int other_cpu(int cpu)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return cpu;
	for (int i = CPU_SETSIZE - 1; i >= 0; i--)
		if (i != cpu && CPU_ISSET((unsigned)i, &set))
			return i;
	return cpu;
}

/* Receives a whole message: spins first, then sleeps. 0 or -1. */
static int receive_all(int fd, uint8_t *bytes, unsigned len, uint64_t spin_ns)
{
	uint64_t until = clock_ns() + spin_ns;
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	while (len) {
		ssize_t n = recv(fd, bytes, len, MSG_DONTWAIT);

		if (n > 0) {
			bytes += n;
			len -= (unsigned)n;
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			return -1;
		} else if (clock_ns() >= until) {
			poll(&wait, 1, -1);
		}
	}
	return 0;
}

static int send_all(int fd, const uint8_t *bytes, unsigned len)
{
	while (len) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			bytes += n;
			len -= (unsigned)n;
		}
	}
	return 0;
}

/* A connected pair of TCP sockets over the loopback. 0 or -1. */
static int tcp_pair(int fds[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int on = 1;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 1) || getsockname(listener, (struct sockaddr *)&at, &len) ||
	    (fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0 ||
	    connect(fds[0], (struct sockaddr *)&at, sizeof(at)) ||
	    (fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0 ||
	    setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		return -1;
	close(listener);
	return 0;
}

/* The far end: sends back what comes, until the near end closes. */
static void send_back(struct pinger *pinger, int fd, uint64_t spin_us, int cpu)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin_to_cpu(cpu);
	while (!receive_all(fd, pinger->message, pinger->bytes, spin_us * 1000) &&
	       !send_all(fd, pinger->message, pinger->bytes))
		;
	_exit(0);
}

struct pinger *pinger_new(bool unix_sockets, unsigned bytes, uint64_t spin_us, uint64_t far_spin_us,
                          int cpu)
{
	struct pinger *pinger = calloc(1, sizeof(*pinger) + bytes);
	int fds[2];

	if (!pinger || (unix_sockets ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)
	                             : tcp_pair(fds)))
		return NULL;
	pinger->fd = fds[0];
	pinger->bytes = bytes;
	pinger->spin_ns = spin_us * 1000;
	memset(pinger->message, 0x5a, bytes);
	pinger->child = fork();
	if (!pinger->child) {
		close(fds[0]);
		send_back(pinger, fds[1], far_spin_us, cpu);
	}
	close(fds[1]);
	return pinger->child < 0 ? NULL : pinger;
}

int pinger_step(void *ctx)
{
	struct pinger *pinger = ctx;

	if (send_all(pinger->fd, pinger->message, pinger->bytes))
		return -1;
	return receive_all(pinger->fd, pinger->message, pinger->bytes, pinger->spin_ns);
}

void pinger_free(struct pinger *pinger)
{
	if (!pinger)
		return;
	close(pinger->fd);
	if (pinger->child > 0)
		waitpid(pinger->child, NULL, 0);
	free(pinger);
}
