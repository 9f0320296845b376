/*
 * test_standard_streams.c - processes in which numbers 0 to 2 are closed: descriptors move away
 * from them, and /dev/null is there as long as somebody needs it. Each test runs in a child, whose
 * streams are its own.
 */
#include "../../client/core/env.h"
#include "../../client/core/flag_fd.h"
#include "../../client/demand/warm.h"
#include "../../client/host/descriptors.h"
#include "../../client/host/socket.h"
#include "../../client/rvm/data_file.h"
#include "../../proto/base/memory_limit.h"
#include "../../proto/base/standard_streams.h"
#include "../support/unit.h"

#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Fails the child: nothing can be printed there. */
#define CHECK(what)                            \
	do {                                   \
		if (!(what))                   \
			_exit(__LINE__ % 255); \
	} while (0)

/* Runs fn in a child whose standard streams are closed. */
static void in_child_without_streams(void (*fn)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		for (int i = 0; i < 3; i++)
			close(i);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Begins a test that runs in such a child, as TEST() does: IN_CHILD(name) { ... }. */
#define IN_CHILD(name)                                     \
	static void name##_in_child(void);                 \
	TEST(name)                                         \
	{                                                  \
		in_child_without_streams(name##_in_child); \
	}                                                  \
	static void name##_in_child(void)

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static bool is_null(int fd)
{
	char path[64], name[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof(name) - 1) > 0 && strcmp(name, "/dev/null") == 0;
}

IN_CHILD(what_is_opened_moves_above_the_streams)
{
	int pair[2], fd = ps_above_standard(eventfd(0, EFD_CLOEXEC));

	CHECK(fd > 2 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(ps_above_standard(fd) == fd);
	CHECK(ps_above_standard(-1) == -1);
	CHECK(ps_pair_above_standard(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), pair) == 0);
	CHECK(pair[0] > 2 && pair[1] > 2);
	CHECK(ps_pair_above_standard(-1, pair) == -1);
	for (int i = 0; i < 3; i++)
		CHECK(!is_open(i));
}

/* The descriptor is closed rather than left at a standard stream's number. */
IN_CHILD(what_cannot_move_is_closed)
{
	const struct rlimit three = { 3, 3 };

	CHECK(setrlimit(RLIMIT_NOFILE, &three) == 0);
	CHECK(ps_above_standard(eventfd(0, EFD_CLOEXEC)) == -1);
	CHECK(errno == EINVAL || errno == EMFILE);
	CHECK(!is_open(0));
}

IN_CHILD(closed_streams_become_null_and_others_stay)
{
	char byte = 0;
	int fd;

	CHECK(ps_standard_fds_fill() == 0);
	for (int i = 0; i < 3; i++)
		CHECK(is_null(i) && fcntl(i, F_GETFD) == FD_CLOEXEC);
	CHECK(syscall(SYS_read, 0, &byte, 1) == -1 && errno == EBADF);
	CHECK(write(1, &byte, 1) == -1 && errno == EBADF);
	CHECK(write(2, &byte, 1) == -1 && errno == EBADF);
	fd = eventfd(0, 0);
	CHECK(dup2(fd, 1) == 1);
	CHECK(ps_standard_fds_fill() == 0 && !is_null(1));
}

static void hold(void)
{
	const int fd = ps_above_standard(eventfd(0, 0));

	CHECK(dup2(fd, 0) == 0);
	ps_standard_fds_reserve();
	ps_standard_fds_reserve();
	CHECK(!is_null(0) && is_null(1) && is_null(2));
	ps_standard_fds_release();
	CHECK(is_null(1) && is_null(2));
	/* The application opens its standard output in the meantime. */
	CHECK(dup2(fd, 1) == 1);
	ps_standard_fds_release();
	CHECK(is_open(0) && is_open(1) && !is_open(2));
}

IN_CHILD(streams_are_held_until_the_last_release)
{
	hold();
}

IN_CHILD(a_child_holds_for_itself)
{
	ps_standard_fds_reserve();
	in_child_without_streams(hold);
	for (int i = 0; i < 3; i++)
		CHECK(is_null(i));
}

static void send_descriptor(int to, int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	char byte = 0;
	struct iovec part = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &part,
		                  .msg_iovlen = 1,
		                  .msg_control = &control,
		                  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	CHECK(sendmsg(to, &message, 0) == 1);
}

static bool streams_were_held;

/* Stands in for the C library's, and looks at the streams while the kernel would choose numbers. */
ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	streams_were_held = is_null(0) && is_null(1) && is_null(2);
	return syscall(SYS_recvmsg, fd, message, flags);
}

IN_CHILD(a_received_descriptor_is_no_stream)
{
	struct ps_descriptors descriptors = { 0 };
	char byte;
	int pair[2];

	CHECK(ps_pair_above_standard(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), pair) == 0);
	for (int i = 0; i < 3; i++)
		send_descriptor(pair[0], pair[1]);
	while (descriptors.count < 3)
		CHECK(ps_descriptors_recv(&descriptors, pair[1], &byte, 1) == 1);
	CHECK(streams_were_held);
	for (int i = 0; i < 3; i++)
		CHECK(descriptors.fds[i] > 2 && !is_open(i));
	ps_descriptors_close(&descriptors);
}

static int lowest_used = INT_MAX; /* of the descriptors that were read or synced */

/* These two stand in for the C library's. */
ssize_t read(int fd, void *bytes, size_t len)
{
	lowest_used = fd < lowest_used ? fd : lowest_used;
	return syscall(SYS_read, fd, bytes, len);
}

int fsync(int fd)
{
	lowest_used = fd < lowest_used ? fd : lowest_used;
	return (int)syscall(SYS_fsync, fd);
}

IN_CHILD(what_is_open_for_a_moment_is_no_stream)
{
	const struct ps_rvm_file file = { "/dev/null", ps_above_standard(open("/tmp", O_RDONLY)) };

	(void)ps_memory_limits();
	CHECK(lowest_used > 2 && lowest_used < INT_MAX);
	lowest_used = INT_MAX;
	(void)ps_rvm_file_sync(&file);
	CHECK(lowest_used > 2 && lowest_used < INT_MAX);
}

static int dial_listener(struct ps_error *error)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const int listener = ps_above_standard(socket(AF_INET, SOCK_STREAM, 0));
	struct ps_address address;
	socklen_t len = sizeof(at);
	char text[32];

	CHECK(bind(listener, (struct sockaddr *)&at, len) == 0 && listen(listener, 1) == 0);
	CHECK(getsockname(listener, (struct sockaddr *)&at, &len) == 0);
	snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(at.sin_port));
	CHECK(ps_address_parse(text, &address, error) == 0);
	return ps_dial(&address, PS_NEVER, error);
}

IN_CHILD(the_library_opens_nothing_at_a_stream)
{
	const struct perseas_options options = PERSEAS_OPTIONS_INIT;
	const uint8_t store[PS_ID_SIZE] = { 1 };
	struct ps_error error = { 0 };

	CHECK(ps_env_posix(&options, &error));
	CHECK(ps_flag_fd_new(&error) > 2);
	CHECK(ps_warm_new(store));
	CHECK(dial_listener(&error) > 2);
	for (int i = 0; i < 3; i++)
		CHECK(!is_open(i));
}
