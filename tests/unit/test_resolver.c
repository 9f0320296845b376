/*
 * test_resolver.c - mirrors that are given by name, with a name service that answers, is silent, or
 * leads elsewhere than before. Two daemons listen on the same port of two loopback addresses.
 */
#include "control_daemon.h"
#include "resolver_rig.h"

#include "../../client/core/env.h"
#include "../support/authority_tls.h"

#include <netinet/tcp.h>
#include "../../client/host/control_private.h"

enum { SOON_MS = 20000 };

#define FIRST "127.0.0.1"
#define SECOND "127.0.0.2"

static const uint8_t daemon_a[PS_ID_SIZE] = "daemon a", daemon_b[PS_ID_SIZE] = "daemon b";

struct named {
	struct fixture *f;
	struct daemon first, second; /* at FIRST and SECOND; address: the name */
	struct ps_control *control;
};

/* Listens where the first daemon does, but for the host. */
static void listen_second(struct daemon *second, const struct daemon *first)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	const int on = 1;

	at.sin_port = htons((uint16_t)atoi(first->address.port));
	inet_pton(AF_INET, SECOND, &at.sin_addr);
	second->fd = -1;
	second->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(second->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(second->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(second->listener, 4), 0);
}

/* Each test has a name of its own, since the table of names is the process's. */
static int begin(void **state)
{
	static unsigned count;
	struct named *n = calloc(1, sizeof(*n));
	void *fixture = NULL;
	char text[64];

	assert_int_equal(setup(&fixture), 0);
	n->f = fixture;
	listen_tcp(&n->first);
	listen_second(&n->second, &n->first);
	snprintf(text, sizeof(text), "mirror%u.test:%s", ++count, n->first.address.port);
	assert_int_equal(ps_address_parse(text, &n->first.address, NULL), 0);
	n->second.address = n->first.address;
	names_set(false, FIRST);
	names_asked();
	*state = n;
	return 0;
}

/* Waits until a lookup of the test's name has ended. */
static void await_lookup(const struct named *n)
{
	struct ps_lookup *lookup = ps_lookup_begin(&n->first.address);

	assert_non_null(lookup);
	assert_int_equal(poll(&(struct pollfd){ ps_lookup_fd(lookup), POLLIN, 0 }, 1, -1), 1);
	ps_lookup_drop(lookup);
}

static int finish(void **state)
{
	struct named *n = *state;
	void *fixture = n->f;

	names_set(false, NULL);
	await_lookup(n);
	hang_up(&n->first);
	hang_up(&n->second);
	teardown(&fixture);
	free(n);
	return 0;
}

struct unit_fixture unit_fixture = { begin, finish };

/* Connects and asks. */
static void ask_by_name(struct named *n)
{
	n->control = dial(n->f, &n->first);
	ask(n->f, n->control, "s");
}

/* Steps until the daemon has a connection to accept. */
static void await_connection(struct named *n, struct daemon *d)
{
	struct pollfd here = { .fd = d->listener, .events = POLLIN };
	const uint64_t until = soon();

	while (poll(&here, 1, 1) == 0) {
		assert_true(ps_monotonic() < until);
		(void)n->f->ops->answered(n->control);
	}
}

/* Accepts, greets, and answers the request, as the daemon of that identity. */
static void answer_as(struct named *n, struct daemon *d, const uint8_t *daemon)
{
	Perseas__Reply reply = PERSEAS__REPLY__INIT;
	uint8_t *bytes;
	size_t len;

	await_connection(n, d);
	if (d->fd >= 0)
		close(d->fd);
	welcome(d, PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION);
	reply.status = PERSEAS__STATUS__STATUS_NO_STORE;
	reply.message = (char *)(uintptr_t) "answered";
	reply.id = ++d->replied;
	reply.daemon = (ProtobufCBinaryData){ daemon ? PS_ID_SIZE : 0,
		                              (uint8_t *)(uintptr_t)daemon };
	assert_int_equal(ps_reply_pack(&reply, &bytes, &len), 0);
	send_with(d->fd, bytes, len, NULL, 0);
	free(bytes);
}

static void end(struct named *n)
{
	disconnect(n->f, n->control);
	n->control = NULL;
}

static void expect_answer(struct named *n)
{
	expect_reply(n->f, n->control, soon(), "answered");
	end(n);
}

/* The process has reached the daemon at FIRST by the name. */
static void reach_first(struct named *n)
{
	ask_by_name(n);
	answer_as(n, &n->first, daemon_a);
	expect_answer(n);
}

/* Steps until the answer is here and does not count. Returns what to poll for meanwhile. */
static struct pollfd await_held(struct named *n)
{
	struct pollfd fd = { .fd = n->control->stream.fd, .events = POLLIN };
	const uint64_t until = soon();

	while (!n->control->reply) {
		assert_true(ps_monotonic() < until);
		assert_false(n->f->ops->answered(n->control));
		poll(&fd, 1, 1);
	}
	assert_true(n->f->ops->fill_control_pollfd(n->control, &fd));
	return fd;
}

TEST(a_number_is_not_looked_up, struct named *n)
{
	struct ps_control *control = dial(n->f, &n->f->tcp), *local = dial(n->f, &n->f->local);

	assert_int_equal(names_asked(), 0);
	disconnect(n->f, control);
	disconnect(n->f, local);
}

TEST(a_name_is_looked_up_beside_the_caller, struct named *n)
{
	names_set(true, FIRST);
	ask_by_name(n);
	assert_false(n->f->ops->answered(n->control));
	names_set(false, FIRST);
	answer_as(n, &n->first, daemon_a);
	expect_answer(n);
	assert_int_equal(names_asked(), 1);
}

/* The name service never answers: the request ends at its deadline. Two connections share one
 * thread, which is still there when they and the environment are gone. */
TEST(silence_of_the_name_service_ends_at_the_deadline, struct named *n)
{
	struct ps_env *env = ps_env_posix(NULL, NULL);
	struct ps_control *other;
	struct pollfd fd;

	names_set(true, FIRST);
	other = env->ops->connect(env, &n->first.address, NULL);
	assert_non_null(other);
	names_await(1);
	ask_by_name(n);
	assert_true(n->f->ops->fill_control_pollfd(n->control, &fd));
	assert_int_equal(poll(&fd, 1, 0), 0);
	expect_failure(n->f, n->control, ps_monotonic() + SHORTLY, PERSEAS_EUNREACHABLE,
	               "the name service did not say in time");
	end(n);
	env->ops->disconnect(other);
	env->ops->free(env);
	names_await(1);
}

/* A thread that sleeps on the connection wakes when the name service answers. */
TEST(an_answer_of_the_name_service_wakes_who_waits, struct named *n)
{
	struct pollfd fd;

	names_set(true, FIRST);
	ask_by_name(n);
	assert_true(n->f->ops->fill_control_pollfd(n->control, &fd));
	names_await(1);
	assert_int_equal(poll(&fd, 1, 0), 0);
	names_set(false, FIRST);
	assert_int_equal(poll(&fd, 1, SOON_MS), 1);
	answer_as(n, &n->first, daemon_a);
	expect_answer(n);
}

TEST(an_unknown_name_is_told, struct named *n)
{
	names_set(false, NULL);
	ask_by_name(n);
	expect_failure(n->f, n->control, soon(), PERSEAS_EUNREACHABLE, "the host is not known");
	end(n);
}

/* The mirror was restarted, or the connection broke, while the name service is silent. */
TEST(the_last_address_is_dialled_while_the_name_service_is_silent, struct named *n)
{
	reach_first(n);
	names_set(true, FIRST);
	ask_by_name(n);
	answer_as(n, &n->first, daemon_a);
	expect_answer(n);
}

/* The mirror is down when it is dialled, and comes up at its address. */
TEST(the_last_address_is_dialled_again_while_the_name_service_is_silent, struct named *n)
{
	names_set(false, SECOND);
	ask_by_name(n);
	answer_as(n, &n->second, daemon_a);
	expect_answer(n);
	names_set(true, SECOND);
	shutdown(n->second.listener, SHUT_RDWR);
	ask_by_name(n);
	assert_false(n->f->ops->answered(n->control));
	assert_int_equal(listen(n->second.listener, 4), 0);
	answer_as(n, &n->second, daemon_a);
	expect_answer(n);
}

/* A daemon of before version 9 tells no identity, now or before. */
TEST(a_daemon_without_an_identity_is_found_again, struct named *n)
{
	ask_by_name(n);
	answer_as(n, &n->first, NULL);
	expect_answer(n);
	names_set(true, FIRST);
	ask_by_name(n);
	answer_as(n, &n->first, NULL);
	expect_answer(n);
}

/* The mirror lost its memory, and its identity with it. */
TEST(another_daemon_at_the_last_address_counts_once_the_name_leads_there, struct named *n)
{
	struct pollfd fd;

	reach_first(n);
	names_set(true, FIRST);
	ask_by_name(n);
	answer_as(n, &n->first, daemon_b);
	fd = await_held(n);
	assert_int_equal(poll(&fd, 1, 0), 0);
	names_set(false, FIRST);
	assert_int_equal(poll(&fd, 1, SOON_MS), 1);
	expect_answer(n);
	/* From now on the new one is the daemon of before. */
	names_set(true, FIRST);
	ask_by_name(n);
	answer_as(n, &n->first, daemon_b);
	expect_answer(n);
}

/* The address was given to another daemon, and the mirror has a new one. */
TEST(another_daemon_at_the_last_address_is_no_mirror_if_the_name_leads_elsewhere, struct named *n)
{
	reach_first(n);
	names_set(true, SECOND);
	ask_by_name(n);
	answer_as(n, &n->first, daemon_b);
	await_held(n);
	names_set(false, SECOND);
	expect_failure(n->f, n->control, soon(), PERSEAS_EUNREACHABLE, "leads to another address");
	end(n);
	ask_by_name(n);
	answer_as(n, &n->second, daemon_a);
	expect_answer(n);
}

/* Something else than a mirror takes the connection. */
static void meet_stranger(struct named *n)
{
	ask_by_name(n);
	await_connection(n, &n->first);
	if (n->first.fd >= 0)
		close(n->first.fd);
	n->first.fd = accept4(n->first.listener, NULL, NULL, SOCK_CLOEXEC);
	send_with(n->first.fd, "HTTP/1.1 400 Bad Request", 24, NULL, 0);
	expect_failure(n->f, n->control, soon(), PERSEAS_EPROTOCOL, "is not a perseasd");
	end(n);
}

/* The address was given to another host. A stranger at an address to which the name still leads may
 * be gone the next time. */
TEST(a_stranger_at_the_last_address_is_left_if_the_name_leads_elsewhere, struct named *n)
{
	reach_first(n);
	meet_stranger(n);
	names_set(true, SECOND);
	ask_by_name(n);
	answer_as(n, &n->first, daemon_a);
	expect_answer(n);
	meet_stranger(n);
	names_set(false, SECOND);
	await_lookup(n);
	names_set(true, SECOND);
	meet_stranger(n);
	names_set(false, SECOND);
	ask_by_name(n);
	answer_as(n, &n->second, daemon_a);
	expect_answer(n);
}

TEST(another_daemon_at_the_last_address_does_not_count_without_the_name_service, struct named *n)
{
	reach_first(n);
	names_set(true, FIRST);
	ask_by_name(n);
	answer_as(n, &n->first, daemon_b);
	expect_failure(n->f, n->control, ps_monotonic() + SHORTLY, PERSEAS_EUNREACHABLE,
	               "the name service did not say in time");
	end(n);
	names_set(false, NULL);
	ask_by_name(n);
	answer_as(n, &n->first, daemon_b);
	expect_failure(n->f, n->control, soon(), PERSEAS_EUNREACHABLE, "cannot be looked up");
	end(n);
	/* The daemon of before still counts. */
	ask_by_name(n);
	answer_as(n, &n->first, daemon_a);
	expect_answer(n);
}

/* Nobody listens at the last address any more. */
TEST(the_answer_is_dialled_where_the_last_address_refuses, struct named *n)
{
	reach_first(n);
	hang_up(&n->first);
	names_set(true, SECOND);
	ask_by_name(n);
	names_await(1);
	assert_false(n->f->ops->answered(n->control));
	names_set(false, SECOND);
	answer_as(n, &n->second, daemon_a);
	expect_answer(n);
}

/* Fills the queue of a listener that nobody accepts from, so that its address is a black hole. */
static void fill_backlog(const struct daemon *d, int *sockets, unsigned count)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_port = htons((uint16_t)atoi(d->address.port));
	inet_pton(AF_INET, FIRST, &at.sin_addr);
	for (unsigned i = 0; i < count; i++) {
		sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(sockets[i], (struct sockaddr *)&at, sizeof(at));
	}
}

TEST(the_answer_is_dialled_where_the_last_address_is_a_black_hole, struct named *n)
{
	const int never = 0;
	int sockets[16];
	struct pollfd fd;

	reach_first(n);
	fill_backlog(&n->first, sockets, 16);
	names_set(true, SECOND);
	ask_by_name(n);
	/* The attempt does not end by itself while the test runs. */
	setsockopt(n->control->dial.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &never, sizeof(never));
	names_await(1);
	assert_true(n->f->ops->fill_control_pollfd(n->control, &fd));
	assert_int_equal(poll(&fd, 1, 0), 0);
	names_set(false, SECOND);
	assert_int_equal(poll(&fd, 1, SOON_MS), 1);
	answer_as(n, &n->second, daemon_a);
	expect_answer(n);
	for (unsigned i = 0; i < 16; i++)
		close(sockets[i]);
}

/* --- TLS --- */

/* Accepts, and steps both ends until the daemon's handshake is over. Returns 1, or -1: failed. */
static int shake_with(struct named *n, struct daemon *d, struct ps_stream *stream,
                      struct ps_tls *tls)
{
	int shaken;

	await_connection(n, d);
	stream->fd = accept4(d->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_int_equal(ps_stream_begin_tls(stream, tls, NULL), 0);
	while ((shaken = ps_stream_handshake(stream)) == 0)
		(void)n->f->ops->answered(n->control);
	return shaken;
}

/* Sends the hello and the answer on a stream that has TLS. */
static void answer_secured(struct ps_stream *stream)
{
	struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };
	Perseas__Reply reply = PERSEAS__REPLY__INIT;
	struct iovec parts[2] = { { &hello, sizeof(hello) } };
	uint8_t *bytes;
	size_t len;

	reply.status = PERSEAS__STATUS__STATUS_NO_STORE;
	reply.message = (char *)(uintptr_t) "answered";
	reply.id = 1;
	assert_int_equal(ps_reply_pack(&reply, &bytes, &len), 0);
	parts[1] = (struct iovec){ bytes, len };
	assert_int_equal(ps_stream_send(stream, parts, 2), sizeof(hello) + len);
	free(bytes);
}

static void remove_certificates(const char *folder)
{
	static const char *const files[] = { "ca.pem", "right.pem", "right.key", "wrong.pem",
		                             "wrong.key" };
	char path[128];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		unlink(path);
	}
}

/* Another host has the last address now, with a certificate of its own. */
TEST(the_answer_is_dialled_where_the_last_address_has_another_certificate, struct named *n)
{
	struct authority *authority = authority_new(n->f->folder, "ca");
	struct ps_stream right = { .fd = -1 }, wrong = { .fd = -1 };
	struct ps_tls *ours, *theirs;
	char name[256];

	reach_first(n);
	snprintf(name, sizeof(name), "DNS:%s", n->first.address.host);
	authority_issue(authority, &(struct leaf){ .stem = "right", .names = name });
	authority_issue(authority, &(struct leaf){ .stem = "wrong", .names = "DNS:other.test" });
	ours = authority_tls(n->f->folder, "right", "ca", NULL);
	theirs = authority_tls(n->f->folder, "wrong", "ca", NULL);
	n->f->env->tls = authority_tls(n->f->folder, "right", "ca", NULL);
	names_set(true, SECOND);
	ask_by_name(n);
	(void)shake_with(n, &n->first, &wrong, theirs);
	names_set(false, SECOND);
	assert_int_equal(shake_with(n, &n->second, &right, ours), 1);
	answer_secured(&right);
	expect_answer(n);
	ps_stream_close(&right);
	ps_stream_close(&wrong);
	ps_tls_free(ours);
	ps_tls_free(theirs);
	authority_free(authority);
	remove_certificates(n->f->folder);
}

/* --- the table --- */

/* The data path goes where the control connection went, and asks no name service. */
TEST(what_is_known_is_told_without_a_lookup, struct named *n)
{
	struct ps_addresses known;
	struct sockaddr_in at;

	assert_int_equal(ps_resolver_known_addresses(&n->first.address, &known, NULL),
	                 PERSEAS_EUNREACHABLE);
	reach_first(n);
	names_set(false, SECOND);
	await_lookup(n);
	names_asked();
	assert_int_equal(ps_resolver_known_addresses(&n->first.address, &known, NULL), 0);
	assert_int_equal(names_asked(), 0);
	assert_int_equal(known.count, 2);
	memcpy(&at, &known.to[0], sizeof(at));
	assert_int_equal(ntohl(at.sin_addr.s_addr), INADDR_LOOPBACK);
	memcpy(&at, &known.to[1], sizeof(at));
	assert_int_equal(ntohl(at.sin_addr.s_addr), INADDR_LOOPBACK + 1);
}

/* perseas run starts COMMAND with what it knows. */
TEST(another_process_can_be_told_the_addresses, struct named *n)
{
	struct ps_addresses last;
	uint8_t daemon[PS_ID_SIZE];
	char text[8192], part[256];

	reach_first(n);
	ps_resolver_export(text, sizeof(text));
	snprintf(part, sizeof(part), "%s %s " FIRST, n->first.address.host, n->first.address.port);
	assert_non_null(strstr(text, part));
	names_set(false, SECOND);
	await_lookup(n);
	ps_resolver_note_failure(&n->first.address);
	assert_false(ps_resolver_last_address(&n->first.address, &last, daemon));
	ps_resolver_import("nonsense,");
	ps_resolver_import(text);
	assert_true(ps_resolver_last_address(&n->first.address, &last, daemon));
	assert_memory_equal(daemon, daemon_a, PS_ID_SIZE);
	/* Addresses that the process found itself count for more. */
	snprintf(part, sizeof(part), "%s %s " SECOND " %032d", n->first.address.host,
	         n->first.address.port, 0);
	ps_resolver_import(part);
	assert_true(ps_resolver_last_address(&n->first.address, &last, daemon));
	assert_memory_equal(daemon, daemon_a, PS_ID_SIZE);
	/* A text that does not fit is left out. */
	ps_resolver_export(text, 20);
	assert_string_equal(text, "");
}

/* The threads that look names up are the parent's alone, and so is what it knows. */
TEST(a_child_of_fork_begins_anew, struct named *n)
{
	struct ps_addresses last;
	uint8_t daemon[PS_ID_SIZE];
	struct ps_lookup *lookup;
	int status, refused;
	pid_t child;

	reach_first(n);
	names_set(true, FIRST);
	lookup = ps_lookup_begin(&n->first.address);
	names_await(1);
	child = fork();
	if (child == 0) {
		/* None of the parent's threads is here that may have had the lock. */
		names = (struct name_service){ .lock = PTHREAD_MUTEX_INITIALIZER,
			                       .changed = PTHREAD_COND_INITIALIZER,
			                       .leads_to = FIRST };
		if (ps_resolver_last_address(&n->first.address, &last, daemon))
			_exit(1);
		ps_lookup_drop(lookup);
		lookup = ps_lookup_begin(&n->first.address);
		poll(&(struct pollfd){ ps_lookup_fd(lookup), POLLIN, 0 }, 1, -1);
		_exit(ps_lookup_get_answer(lookup, &last, &refused) && !refused ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(ps_resolver_last_address(&n->first.address, &last, daemon));
	ps_lookup_drop(lookup);
}

/* A process cannot be made to start threads without limit. */
TEST(lookups_in_flight_are_limited, struct named *n)
{
	struct ps_lookup *lookups[300];
	struct ps_address address;
	char text[64];
	unsigned count = 0;

	names_set(true, FIRST);
	(void)n;
	for (; count < 300; count++) {
		snprintf(text, sizeof(text), "many%u.test:1", count);
		assert_int_equal(ps_address_parse(text, &address, NULL), 0);
		lookups[count] = ps_lookup_begin(&address);
		if (!lookups[count])
			break;
	}
	assert_int_equal(count, 256);
	assert_int_equal(errno, EAGAIN);
	names_set(false, FIRST);
	for (unsigned i = 0; i < count; i++) {
		poll(&(struct pollfd){ ps_lookup_fd(lookups[i]), POLLIN, 0 }, 1, -1);
		ps_lookup_drop(lookups[i]);
	}
}
