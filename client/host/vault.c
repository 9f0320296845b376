/*
 * vault.c - the thread with a table of descriptors of its own, and how it is told what to keep: by
 * messages over a pair of sockets, each a number, with the descriptor that it stands for, or
 * without one when that is to be closed. control_socket.c calls it. The thread must do nothing
 * beside that.
 */
#include "vault.h"

#include "../core/env.h"
#include "../../proto/base/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __NR_close_range
#define __NR_close_range 436 /* on every architecture */
#endif
#define UNSHARE_TABLE 2u /* CLOSE_RANGE_UNSHARE of linux/close_range.h */

enum {
	KEPT_MAX = 2 * PS_MIRRORS_MAX, /* a session's connection is over before the next begins */
	FIRST_FD = 3,                  /* whoever writes to standard error means no peer */
};

struct kept {
	uint64_t number; /* 0: free */
	int fd;
};

/* A message: the number, and with it one descriptor or none. */
struct parcel {
	uint64_t number;
	struct iovec part;
	struct msghdr message;
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
};

static void parcel_init(struct parcel *parcel)
{
	memset(parcel, 0, sizeof(*parcel));
	parcel->part = (struct iovec){ &parcel->number, sizeof(parcel->number) };
	parcel->message.msg_iov = &parcel->part;
	parcel->message.msg_iovlen = 1;
}

/* --- the thread --- */

/* The descriptor that came along, at a number that is none of the standard ones; -1: none. */
static int fd_of_parcel(struct parcel *parcel)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(&parcel->message);
	int fd, high;

	if (!head || head->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	if (fd >= FIRST_FD)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	close(fd);
	return high;
}

static void update_kept(struct kept *kept, uint64_t number, int fd)
{
	for (unsigned i = 0; i < KEPT_MAX; i++) {
		if (fd < 0 && kept[i].number == number) {
			close(kept[i].fd);
			kept[i].number = 0;
			return;
		}
		if (fd >= 0 && !kept[i].number) {
			kept[i] = (struct kept){ number, fd };
			return;
		}
	}
}

/* Parts with the table of all others, but for the descriptor by which this thread hears of them. */
static bool have_own_table(int fd)
{
	const long below = fd > 0 ? syscall(__NR_close_range, 0u, (unsigned)fd - 1, UNSHARE_TABLE)
	                          : 0;

	return !below && !syscall(__NR_close_range, (unsigned)fd + 1, ~0u, UNSHARE_TABLE);
}

static void *run_vault(void *arg)
{
	const int there = ((const struct ps_vault *)arg)->there;
	const bool ready = have_own_table(there);
	struct kept kept[KEPT_MAX] = { 0 };
	struct parcel parcel;
	ssize_t n = send(there, &ready, sizeof(ready), MSG_NOSIGNAL);

	while (ready && n > 0) {
		parcel_init(&parcel);
		parcel.message.msg_control = &parcel.control;
		parcel.message.msg_controllen = sizeof(parcel.control);
		do
			n = recvmsg(there, &parcel.message, MSG_CMSG_CLOEXEC);
		while (n < 0 && errno == EINTR);
		if (n == (ssize_t)sizeof(parcel.number))
			update_kept(kept, parcel.number, fd_of_parcel(&parcel));
	}
	/* The table goes with the thread, and with it what is kept. */
	return NULL;
}

/* --- the others --- */

/* Signals are for the application's threads. */
static bool start_thread(struct ps_vault *vault)
{
	sigset_t all, before;
	bool ready = false;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&vault->thread, NULL, run_vault, vault);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return false;
	while (recv(vault->here, &ready, sizeof(ready), 0) < 0 && errno == EINTR)
		;
	if (!ready)
		pthread_join(vault->thread, NULL);
	return ready;
}

static void close_pair(struct ps_vault *vault)
{
	close(vault->here);
	close(vault->there);
}

/* Once: where there is no such thread now, there is none later. */
static void try_start(struct ps_vault *vault)
{
	int pair[2];

	vault->tried = true;
	if (ps_pair_above_standard(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair),
	                           pair) < 0)
		return;
	vault->here = pair[0];
	vault->there = pair[1];
	vault->running = start_thread(vault);
	if (!vault->running)
		close_pair(vault);
}

/* fd -1: without one. The thread does nothing but take them: it is never long waited for. */
static bool send_parcel(const struct ps_vault *vault, uint64_t number, int fd)
{
	struct parcel parcel;
	struct cmsghdr *head;
	ssize_t n;

	parcel_init(&parcel);
	parcel.number = number;
	if (fd >= 0) {
		parcel.message.msg_control = &parcel.control;
		parcel.message.msg_controllen = sizeof(parcel.control);
		head = CMSG_FIRSTHDR(&parcel.message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	}
	do
		n = sendmsg(vault->here, &parcel.message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(number);
}

void ps_vault_init(struct ps_vault *vault)
{
	*vault = (struct ps_vault){ .here = -1, .there = -1 };
}

uint64_t ps_vault_give(struct ps_vault *vault, int fd)
{
	if (!vault->tried)
		try_start(vault);
	if (!vault->running || vault->count == KEPT_MAX || !send_parcel(vault, vault->last + 1, fd))
		return 0;
	vault->count++;
	return ++vault->last;
}

uint64_t ps_vault_take(struct ps_vault *vault, struct ps_stream *stream)
{
	const uint64_t number = ps_vault_give(vault, stream->fd);

	if (number)
		ps_stream_leave(stream);
	return number;
}

void ps_vault_drop(struct ps_vault *vault, uint64_t number)
{
	if (number && send_parcel(vault, number, -1))
		vault->count--;
}

void ps_vault_close(struct ps_vault *vault)
{
	if (!vault->running)
		return;
	/* A child of fork may have the pair, too: the end must not wait for it. */
	(void)shutdown(vault->here, SHUT_RDWR);
	pthread_join(vault->thread, NULL);
	close_pair(vault);
	ps_vault_init(vault);
}
