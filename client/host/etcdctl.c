/*
 * etcdctl.c - see etcdctl.h. The child has our environment, where etcd's variables may be, and no
 * descriptor of ours but its three.
 */
#include "etcdctl.h"

#include "socket.h"
#include "../../proto/base/number.h"
#include "../../proto/base/text.h"
#include "../../proto/base/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	WORDS_MAX = 16,
	SAID_MAX = 2048,
	SECONDS_MAX = 600,
	GRACE = 2, /* seconds for which it may be late, and is killed then */
};

extern char **environ;

static unsigned wait_seconds(void)
{
	const char *text = secure_getenv(PS_ETCD_TIMEOUT_VARIABLE), *end;
	uint64_t seconds;

	if (!text || !ps_number_read(text, &end, &seconds) || *end || seconds < 1 ||
	    seconds > SECONDS_MAX)
		return PS_ETCD_SECONDS;
	return (unsigned)seconds;
}

/* Our ends of its standard input and output, which are one socket, and of its standard error. */
struct child {
	pid_t pid;
	int talk, complaints;
	char said[SAID_MAX]; /* what it complained of last */
	size_t said_len;
};

static int start(struct child *child, char *const *words)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t how;
	sigset_t none, all;
	int talk[2], complaints[2], rc;

	if (ps_pair_above_standard(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk), talk) <
	    0)
		return errno;
	if (ps_pair_above_standard(pipe2(complaints, O_CLOEXEC), complaints) < 0) {
		rc = errno;
		close(talk[0]);
		close(talk[1]);
		return rc;
	}
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, talk[1], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, talk[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, complaints[1], STDERR_FILENO);
	rc = posix_spawnp(&child->pid, words[0], &actions, &how, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&how);
	close(talk[1]);
	close(complaints[1]);
	child->talk = talk[0];
	child->complaints = complaints[0];
	if (rc) {
		close(talk[0]);
		close(complaints[0]);
	}
	return rc;
}

/* Takes what it complains of; of much, the beginning. False: it says no more. */
static bool hear_complaints(struct child *child)
{
	char more[SAID_MAX];
	ssize_t n = read(child->complaints, more, sizeof(more));
	size_t room = sizeof(child->said) - 1 - child->said_len;

	if (n <= 0)
		return n < 0 && errno == EINTR;
	room = (size_t)n < room ? (size_t)n : room;
	memcpy(child->said + child->said_len, more, room);
	child->said_len += room;
	return true;
}

/* Until it has closed both. 0; ETIMEDOUT; or EMSGSIZE. */
static int listen_to(struct child *child, unsigned seconds, char *text, size_t size, size_t *len)
{
	const uint64_t until = ps_monotonic() + (seconds + GRACE) * UINT64_C(1000000000);
	struct pollfd fds[] = { { .fd = child->talk, .events = POLLIN },
		                { .fd = child->complaints, .events = POLLIN } };

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (!ps_poll(fds, 2, until) && ps_monotonic() >= until)
			return ETIMEDOUT;
		if (fds[0].revents) {
			ssize_t n = read(child->talk, text + *len, size - *len);

			if (n > 0 && (*len += (size_t)n) == size)
				return EMSGSIZE;
			if (n == 0 || (n < 0 && errno != EINTR))
				fds[0].fd = -1;
		}
		if (fds[1].revents && !hear_complaints(child))
			fds[1].fd = -1;
	}
	return 0;
}

/* Its exit status; -1: it is not known, as the application takes those of all its children. */
static int end(struct child *child, bool now)
{
	int status = 0;
	pid_t pid;

	if (now)
		kill(child->pid, SIGKILL);
	do
		pid = waitpid(child->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	close(child->talk);
	close(child->complaints);
	if (pid < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int fail(struct child *child, const struct ps_etcd_key *key, struct ps_error *error)
{
	static const char mark[] = "Error: ";
	char *why;

	child->said[child->said_len] = '\0';
	/* Its own log may come before the line that says why. Without such a line, the first. */
	why = strstr(child->said, mark);
	why = why ? why + strlen(mark) : child->said;
	why[strcspn(why, "\n")] = '\0';
	ps_make_printable(why);
	return ps_error_set(error, PERSEAS_EUNREACHABLE, "etcd at %s, asked by etcdctl: %s",
	                    key->endpoints, *why ? why : "it gives no answer in time");
}

static int run(struct child *child, const struct ps_etcd_key *key, const char *input, char *text,
               size_t size, size_t *len, struct ps_error *error)
{
	int rc, status;

	*len = 0;
	/* One that reads nothing may have ended already: what it said is there all the same. The
	 * buffer of a socket has room for the input. */
	(void)!send(child->talk, input, strlen(input), MSG_NOSIGNAL);
	shutdown(child->talk, SHUT_WR);
	rc = listen_to(child, wait_seconds(), text, size, len);
	status = end(child, rc != 0);
	if (rc == EMSGSIZE)
		return ps_error_set(error, PERSEAS_EPROTOCOL,
		                    "the key '%s' of etcd at %s has more than a list of mirrors",
		                    key->key, key->endpoints);
	return rc || status > 0 || (status < 0 && child->said_len) ? fail(child, key, error) : 0;
}

int ps_etcdctl(const struct ps_etcd_key *key, const char *const *words, const char *input,
               char *text, size_t size, size_t *len, struct ps_error *error)
{
	char endpoints[PS_ETCD_PART + 16], limit[48], dial[48];
	const char *all[WORDS_MAX] = { "etcdctl", endpoints, limit, dial };
	struct child child = { 0 };
	unsigned count = 4;
	int rc;

	*len = 0;
	snprintf(endpoints, sizeof(endpoints), "--endpoints=%s", key->endpoints);
	snprintf(limit, sizeof(limit), "--command-timeout=%us", wait_seconds());
	snprintf(dial, sizeof(dial), "--dial-timeout=%us", wait_seconds());
	while (*words && count < WORDS_MAX - 1)
		all[count++] = *words++;
	if (getauxval(AT_SECURE))
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "a program with rights that its user has not runs no etcdctl: "
		                    "give it the list itself");
	rc = start(&child, (char *const *)(uintptr_t)all);
	if (rc)
		return ps_error_set(error, PERSEAS_ESYSTEM,
		                    "etcdctl cannot be run: %s; install etcd-client, or give the "
		                    "list itself",
		                    strerror(rc));
	return run(&child, key, input, text, size, len, error);
}
