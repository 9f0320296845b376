/*
 * test_activation.c - what the daemon makes of descriptors that a service manager left it. A child
 * process has them at 3 and above, as the daemon would.
 */
#include "../../server/host/activation.h"
#include "../support/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

enum { FIRST = 3, PLACE = 40 }; /* where descriptors wait before they are put in order */

/* The result of the child. */
struct found {
	int count;
	struct activated sockets[ACTIVATED_MAX];
	int flags[ACTIVATED_MAX], exec[ACTIVATED_MAX];
	char why[512];
	char left[64]; /* of the environment */
};

static struct found *found;
static char folder[] = "/tmp/perseas-activation-XXXXXX";

static int setup(void **state)
{
	(void)state;
	found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	             0);
	return found != MAP_FAILED && mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	munmap(found, sizeof(*found));
	return rmdir(folder);
}

struct unit_fixture unit_group = { setup, teardown };

static void child(const int *fds, unsigned count, const char *number, const char *pid,
                  const char *names)
{
	char own[16];

	for (unsigned i = 0; i < count; i++)
		dup2(fds[i], PLACE + (int)i);
	for (unsigned i = 0; i < count; i++)
		dup2(PLACE + (int)i, FIRST + (int)i);
	snprintf(own, sizeof(own), "%d", (int)getpid());
	setenv("LISTEN_FDS", number, 1);
	setenv("LISTEN_PID", pid ? pid : own, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	found->count = activation_take(found->sockets, found->why, sizeof(found->why));
	for (unsigned i = 0; i < count; i++) {
		found->flags[i] = fcntl(FIRST + (int)i, F_GETFL);
		found->exec[i] = fcntl(FIRST + (int)i, F_GETFD);
	}
	snprintf(found->left, sizeof(found->left), "%s%s%s", getenv("LISTEN_FDS") ? "FDS" : "",
	         getenv("LISTEN_PID") ? "PID" : "", getenv("LISTEN_FDNAMES") ? "NAMES" : "");
}

/* Hands these over; pid NULL: to the process that takes them. */
static int hand_over(const int *fds, unsigned count, const char *number, const char *pid,
                     const char *names)
{
	int status;
	pid_t process;

	memset(found, 0, sizeof(*found));
	process = fork();
	assert_true(process >= 0);
	if (process == 0) {
		child(fds, count, number, pid, names);
		_exit(0);
	}
	assert_int_equal(waitpid(process, &status, 0), process);
	assert_int_equal(status, 0);
	assert_string_equal(found->left, "");
	return found->count;
}

/* -1: this host has no IPv6. */
static int tcp_socket(int family)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const bool old = family == AF_INET;
	int fd = socket(family, SOCK_STREAM, 0), failed;

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 && !old)
		return -1;
	assert_true(fd >= 0);
	failed = old ? bind(fd, (struct sockaddr *)&v4, sizeof(v4))
	             : bind(fd, (struct sockaddr *)&v6, sizeof(v6));
	if (failed && !old) {
		close(fd);
		return -1;
	}
	assert_int_equal(failed, 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

/* path with a leading 0: abstract. */
static int unix_socket(int type, const char *path, size_t len, bool listens)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	assert_true(fd >= 0);
	memcpy(at.sun_path, path, len);
	assert_int_equal(bind(fd, (struct sockaddr *)&at,
	                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
	                 0);
	if (listens)
		assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static unsigned port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	return ntohs(at.sin_port);
}

/* Takes one TCP socket and one Unix socket, blocking and left open at exec, as systemd hands them
 * over. */
TEST(sockets_are_taken_with_their_addresses)
{
	char path[64];
	int fds[2];

	snprintf(path, sizeof(path), "%s/socket", folder);
	fds[0] = tcp_socket(AF_INET);
	fds[1] = unix_socket(SOCK_STREAM, path, strlen(path), true);
	assert_int_equal(hand_over(fds, 2, "2", NULL, "perseasd.socket:perseasd.socket"), 2);
	assert_false(found->sockets[0].local);
	assert_int_equal(found->sockets[0].fd, FIRST);
	assert_string_equal(found->sockets[0].host, "127.0.0.1");
	assert_int_equal(found->sockets[0].port, port_of(fds[0]));
	assert_true(found->sockets[1].local);
	assert_string_equal(found->sockets[1].host, path);
	assert_int_equal(found->sockets[1].port, 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(found->flags[i] & O_NONBLOCK);
		assert_int_equal(found->exec[i], FD_CLOEXEC);
		close(fds[i]);
	}
	unlink(path);
}

/* Where the kernel has it. */
TEST(a_socket_of_ipv6_is_taken)
{
	int fd = tcp_socket(AF_INET6);

	if (fd < 0)
		skip();
	assert_int_equal(hand_over(&fd, 1, "1", NULL, "x"), 1);
	assert_string_equal(found->sockets[0].host, "::1");
	assert_true(found->sockets[0].port > 0);
	close(fd);
}

/* A path that fills all the room that there is has no 0 at its end. */
TEST(the_longest_path_is_taken_whole)
{
	char path[109];
	int fd;

	memset(path, 'x', sizeof(path));
	memcpy(path, folder, strlen(folder));
	path[strlen(folder)] = '/';
	path[108] = '\0';
	fd = unix_socket(SOCK_STREAM, path, 108, true);
	assert_int_equal(hand_over(&fd, 1, "1", NULL, ""), 1);
	assert_string_equal(found->sockets[0].host, path);
	close(fd);
	unlink(path);
}

/* A parent's variables, inherited by mistake. */
TEST(what_is_meant_for_another_process_is_left_alone)
{
	int fd = tcp_socket(AF_INET);

	assert_int_equal(hand_over(&fd, 1, "1", "1", "x"), 0);
	assert_int_equal(hand_over(&fd, 1, "1", "", "x"), 0);
	assert_int_equal(hand_over(&fd, 1, "1", "99999999999999999999", "x"), 0);
	assert_false(found->flags[0] & O_NONBLOCK);
	close(fd);
}

TEST(numbers_that_are_none_are_refused)
{
	static const char *const wrong[] = {
		"", "0", "-1", "+1", " 1", "1x", "17", "4294967297", "99999999999999999999",
	};
	int fd = tcp_socket(AF_INET);

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(hand_over(&fd, 1, wrong[i], NULL, "x"), -1);
		assert_non_null(strstr(found->why, "from 1 to 16"));
	}
	close(fd);
}

static void refuses(int fd, const char *sentence)
{
	int fds[2] = { tcp_socket(AF_INET), fd };

	assert_int_equal(hand_over(fds, 2, "2", NULL, "good:bad"), -1);
	assert_non_null(strstr(found->why, "descriptor 4 from the service manager, of bad "));
	assert_non_null(strstr(found->why, sentence));
	close(fds[0]);
	close(fd);
}

/* The second of two sockets cannot accept owners; the message names it. */
TEST(what_is_no_listening_stream_socket_is_refused_by_name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/other", folder);
	refuses(open("/dev/null", O_RDONLY), "is no socket");
	refuses(socket(AF_INET, SOCK_DGRAM, 0), "is no stream socket");
	refuses(socket(AF_NETLINK, SOCK_RAW, 0), "is of another family");
	refuses(socket(AF_INET, SOCK_STREAM, 0), "does not listen");
	refuses(unix_socket(SOCK_SEQPACKET, path, strlen(path), true), "is no stream socket");
	unlink(path);
	refuses(unix_socket(SOCK_STREAM, path, strlen(path), false), "does not listen");
	unlink(path);
	refuses(unix_socket(SOCK_STREAM, "\0perseas", 8, true), "has no path");
}

/* The number says more than there are. */
TEST(a_descriptor_that_is_not_open_is_refused)
{
	int fd = tcp_socket(AF_INET);

	close(FIRST + 8);
	assert_int_equal(hand_over(&fd, 1, "9", NULL, "a"), -1);
	assert_non_null(strstr(found->why, "from the service manager"));
	close(fd);
}
