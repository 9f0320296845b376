/*
 * test_exit_tls.c - a process exits while another of its threads is inside of OpenSSL: that thread
 * is out before OpenSSL frees what it uses, and none comes in any more. The thread is held where a
 * handshake reads the socket.
 */
#include "../support/authority_tls.h"
#include "../support/unit.h"

#include <openssl/crypto.h>
#include <sched.h>

#define HOST "mirror.example"

enum { ENOUGH = 3, STILL_INSIDE = 41, LET_IN = 42, WAITED = 43 };

static atomic_bool exits; /* this process is one that exits, under the test */
static atomic_bool held;  /* a thread is inside of OpenSSL */
static bool forked;       /* this one is a child that exits, without threads */
static atomic_uint naps;
static struct ps_stream mirror, idle;
static char folder[] = "/tmp/perseas-exit-XXXXXX";

/* Tells the leak sanitizer that this process exits without freeing anything on purpose. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}

/* Counts the naps with which the exit waits for threads inside TLS. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
	atomic_fetch_add(&naps, 1);
	return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
}

/* The function with which the handshake reads. */
ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
	ssize_t n = recvfrom(fd, bytes, len, flags, NULL, NULL);
	const int error = errno;

	if (atomic_load(&exits) && fd == mirror.fd) {
		/* Until the exit was seen to wait. One that does not comes to openssl_ends(). */
		atomic_store(&held, true);
		while (atomic_load(&naps) < ENOUGH)
			sched_yield();
		atomic_store(&held, false);
	}
	errno = error;
	return n;
}

/* OpenSSL calls it when it begins to free what it has. */
static void openssl_ends(void)
{
	if (atomic_load(&held))
		_exit(STILL_INSIDE);
}

/* Registered before OpenSSL was used, so it runs when that has freed what it had. */
static void all_is_over(void)
{
	if (forked && atomic_load(&naps))
		_exit(WAITED);
	if (forked || !atomic_load(&exits))
		return;
	if (ps_stream_handshake(&idle) != -1 || errno != ESHUTDOWN)
		_exit(LET_IN);
	ps_stream_close(&idle);
}

static void *keep(void *arg)
{
	(void)arg;
	while (ps_stream_handshake(&mirror) == 0)
		;
	ps_stream_close(&mirror);
	return NULL;
}

static void connect_to_nobody(struct ps_stream *stream, struct ps_tls *tls)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	stream->fd = fds[0];
	stream->tls = NULL;
	assert_int_equal(ps_stream_begin_tls(stream, tls, HOST), 0);
}

/* *arg: the application has used OpenSSL before the library does. Never returns. */
static int exit_with_a_thread_inside(void *arg)
{
	const bool *used = arg;
	struct authority *other = *used ? authority_new(folder, "other") : NULL;
	struct ps_tls *tls = authority_tls(folder, "mirror", "ca", NULL);
	pthread_t keeper;

	if (other)
		authority_free(other);
	connect_to_nobody(&mirror, tls);
	connect_to_nobody(&idle, tls);
	atomic_store(&exits, true);
	if (!OPENSSL_atexit(openssl_ends) || pthread_create(&keeper, NULL, keep, NULL))
		_exit(1);
	while (!atomic_load(&held))
		sched_yield();
	exit(0);
}

static int make_certificate(void *arg)
{
	const struct leaf leaf = { "mirror", "DNS:" HOST, NULL, 0, 0 };
	struct authority *authority = authority_new(folder, "ca");

	(void)arg;
	authority_issue(authority, &leaf);
	authority_free(authority);
	return 0;
}

/* OpenSSL is not used in this process itself. */
static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	return unit_in_child(make_certificate, NULL);
}

static int teardown(void **state)
{
	(void)state;
	unit_remove_folder(folder);
	return 0;
}

struct unit_fixture unit_group = { setup, teardown };

TEST(test_threads_are_out_of_openssl_at_exit)
{
	bool used[] = { false, true };

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(unit_in_child(exit_with_a_thread_inside, &used[i]), 0);
}

static int exit_without_threads(void *arg)
{
	(void)arg;
	forked = true;
	atomic_store(&naps, 0);
	exit(0);
}

/* A child of fork has no thread that could leave: it need not wait for one. */
TEST(test_a_child_of_fork_waits_for_nobody)
{
	struct ps_tls *tls;
	pthread_t keeper;

	tls = authority_tls(folder, "mirror", "ca", NULL);
	connect_to_nobody(&mirror, tls);
	atomic_store(&exits, true);
	assert_int_equal(pthread_create(&keeper, NULL, keep, NULL), 0);
	while (!atomic_load(&held))
		sched_yield();
	assert_int_equal(unit_in_child(exit_without_threads, NULL), 0);
	atomic_store(&exits, false);
	atomic_store(&naps, ENOUGH);
	shutdown(mirror.fd, SHUT_RDWR);
	pthread_join(keeper, NULL);
	ps_tls_free(tls);
}

int main(void)
{
	return atexit(all_is_over) ? 1 : unit_run("tests");
}
