/*
 * vault.c - see vault.h. Messages over a socket pair tell the thread what to keep: each has a
 * number, and a descriptor if the thread must keep it under this number, or none if it must close
 * the descriptor with this number. control_socket.c calls it. The thread must do nothing else.
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
	FDS_MAX = 2 * PS_MIRRORS_MAX, /* a session's connection ends before the next one begins */
	FIRST_FD = 3, /* lowest number to keep: other code may write to standard error */
};

struct kept_fd {
	uint64_t number; /* 0: free */
	int fd;
};

/* A message: a number, with or without a descriptor. */
struct vault_message {
	uint64_t number;
	struct iovec part;
	struct msghdr header;
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
};

static void message_init(struct vault_message *message)
{
	memset(message, 0, sizeof(*message));
	message->part = (struct iovec){ &message->number, sizeof(message->number) };
	message->header.msg_iov = &message->part;
	message->header.msg_iovlen = 1;
}

/* --- the thread --- */

/* Returns the descriptor of a message, moved above the standard ones, or -1 if the message has
 * none. */
static int received_fd(struct vault_message *message)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(&message->header);
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

static void update_kept(struct kept_fd *kept, uint64_t number, int fd)
{
	for (unsigned i = 0; i < FDS_MAX; i++) {
		if (fd < 0 && kept[i].number == number) {
			close(kept[i].fd);
			kept[i].number = 0;
			return;
		}
		if (fd >= 0 && !kept[i].number) {
			kept[i] = (struct kept_fd){ number, fd };
			return;
		}
	}
}

/* Gives this thread a table of its own that has only `fd`, by which it receives messages. Returns
 * false if the kernel cannot. */
static bool unshare_table(int fd)
{
	const long below = fd > 0 ? syscall(__NR_close_range, 0u, (unsigned)fd - 1, UNSHARE_TABLE)
	                          : 0;

	return !below && !syscall(__NR_close_range, (unsigned)fd + 1, ~0u, UNSHARE_TABLE);
}

static void *run_vault(void *arg)
{
	const int fd = ((const struct ps_vault *)arg)->thread_fd;
	const bool ready = unshare_table(fd);
	struct kept_fd kept[FDS_MAX] = { 0 };
	struct vault_message message;
	ssize_t n = send(fd, &ready, sizeof(ready), MSG_NOSIGNAL);

	while (ready && n > 0) {
		message_init(&message);
		message.header.msg_control = &message.control;
		message.header.msg_controllen = sizeof(message.control);
		do
			n = recvmsg(fd, &message.header, MSG_CMSG_CLOEXEC);
		while (n < 0 && errno == EINTR);
		if (n == (ssize_t)sizeof(message.number))
			update_kept(kept, message.number, received_fd(&message));
	}
	/* The thread's table, and all descriptors in it, end with the thread. */
	return NULL;
}

/* --- the process's side --- */

/* Starts the thread, with all signals blocked: they are for the application's threads. */
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
	while (recv(vault->send_fd, &ready, sizeof(ready), 0) < 0 && errno == EINTR)
		;
	if (!ready)
		pthread_join(vault->thread, NULL);
	return ready;
}

static void close_socket_pair(struct ps_vault *vault)
{
	close(vault->send_fd);
	close(vault->thread_fd);
}

/* Starts the thread. Called only once, because a failure would repeat. */
static void try_start_thread(struct ps_vault *vault)
{
	int pair[2];

	vault->was_tried = true;
	if (ps_pair_above_standard(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair),
	                           pair) < 0)
		return;
	vault->send_fd = pair[0];
	vault->thread_fd = pair[1];
	vault->running = start_thread(vault);
	if (!vault->running)
		close_socket_pair(vault);
}

/* Sends a message to the thread, with a descriptor unless fd is -1. The thread only receives, so
 * this hardly waits. */
static bool send_message(const struct ps_vault *vault, uint64_t number, int fd)
{
	struct vault_message message;
	struct cmsghdr *head;
	ssize_t n;

	message_init(&message);
	message.number = number;
	if (fd >= 0) {
		message.header.msg_control = &message.control;
		message.header.msg_controllen = sizeof(message.control);
		head = CMSG_FIRSTHDR(&message.header);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	}
	do
		n = sendmsg(vault->send_fd, &message.header, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(number);
}

void ps_vault_init(struct ps_vault *vault)
{
	*vault = (struct ps_vault){ .send_fd = -1, .thread_fd = -1 };
}

uint64_t ps_vault_keep_fd(struct ps_vault *vault, int fd)
{
	if (!vault->was_tried)
		try_start_thread(vault);
	if (!vault->running || vault->count == FDS_MAX ||
	    !send_message(vault, vault->last_number + 1, fd))
		return 0;
	vault->count++;
	return ++vault->last_number;
}

uint64_t ps_vault_keep_stream(struct ps_vault *vault, struct ps_stream *stream)
{
	const uint64_t number = ps_vault_keep_fd(vault, stream->fd);

	if (number)
		ps_stream_close_silently(stream);
	return number;
}

void ps_vault_drop(struct ps_vault *vault, uint64_t number)
{
	if (number && send_message(vault, number, -1))
		vault->count--;
}

void ps_vault_close(struct ps_vault *vault)
{
	if (!vault->running)
		return;
	/* A child of fork may have a copy of the pair, so the end of this process would not end the
	 * connection. */
	(void)shutdown(vault->send_fd, SHUT_RDWR);
	pthread_join(vault->thread, NULL);
	close_socket_pair(vault);
	ps_vault_init(vault);
}
