/*
 * test_control_loop.c - control connections over real sockets on this host.
 */
#include "../support/daemon_fixture.h"

#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"
#include "../support/unit.h"

#include <event2/event.h>
#include <sys/un.h>

struct unit_fixture unit_fixture = { fixture_setup, fixture_teardown };

/* The same daemon listens on both kinds of socket. */
TEST(requests_are_answered_over_tcp_and_unix, struct fixture *fixture)
{
	int fds[2] = { fixture_tcp(fixture), fixture_unix(fixture) };

	for (int i = 0; i < 2; i++) {
		Perseas__Reply *reply;

		fixture_greet(fixture, fds[i]);
		fixture_ask_list(fds[i]);
		reply = fixture_reply(fixture, fds[i]);
		assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_LIST);
		assert_string_equal(reply->list->version, PERSEAS_VERSION);
		assert_true(reply->list->clock_ns / 1000000000 + 60 > (uint64_t)time(NULL));
		fixture_done(reply);
	}
}

/* Greets with `version`; returns the version that the daemon answers with. */
static uint32_t greet_with(struct fixture *fixture, int fd, uint32_t version)
{
	struct ps_control_hello hello = { PS_CONTROL_MAGIC, version };

	fixture_send(fd, &hello, sizeof(hello));
	assert_true(fixture_receive(fixture, fd, &hello, sizeof(hello)));
	return hello.version;
}

/* A peer of a later version has to learn which version this is. */
TEST(another_version_is_told_ours_and_let_go, struct fixture *fixture)
{
	int fd = fixture_tcp(fixture);

	assert_int_equal(greet_with(fixture, fd, PS_PROTOCOL_VERSION + 1), PS_PROTOCOL_VERSION);
	assert_true(fixture_ended(fixture, fd));
}

/* Something else connects. */
TEST(what_is_not_of_this_protocol_is_let_go, struct fixture *fixture)
{
	int fd = fixture_tcp(fixture);

	fixture_send(fd, "GET / HTTP/1.0\r\n\r\n", 18);
	assert_true(fixture_ended(fixture, fd));
}

/* An owner of the version before asks for what only this one knows, and then for what it knows. */
TEST(a_message_is_of_the_version_that_was_greeted_with, struct fixture *fixture)
{
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	uint8_t id[PS_ID_SIZE] = { 1 };
	int fd = fixture_tcp(fixture);
	Perseas__Reply *reply;

	fixture_bank(fixture);
	assert_int_equal(greet_with(fixture, fd, PS_PROTOCOL_LEAST), PS_PROTOCOL_LEAST);
	confirm.boot = (ProtobufCBinaryData){ sizeof(id), id };
	fixture_ask(fd, PERSEAS__REQUEST__BODY_CONFIRM, &confirm);
	reply = fixture_reply(fixture, fd);
	assert_int_equal(reply->status, PERSEAS__STATUS__STATUS_BAD_REQUEST);
	assert_non_null(strstr(reply->message, "later version"));
	fixture_done(reply);
	fixture_ask_list(fd);
	fixture_take_list(fixture, fd);
}

/* A client that offers two versions is answered with the higher one, and may use all of it. */
TEST(the_highest_common_version_is_spoken, struct fixture *fixture)
{
	Perseas__HostRequest host = PERSEAS__HOST_REQUEST__INIT;
	int fd = fixture_tcp(fixture);
	Perseas__Reply *reply;

	assert_int_equal(greet_with(fixture, fd, ps_version_greeting()), PS_PROTOCOL_VERSION);
	fixture_ask(fd, PERSEAS__REQUEST__BODY_HOST, &host);
	reply = fixture_reply(fixture, fd);
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_HOST);
	assert_string_equal(reply->host->version, PERSEAS_VERSION);
	assert_true(reply->host->processors > 0);
	fixture_done(reply);
}

/* Three requests at once, then three that come byte by byte. */
TEST(requests_are_answered_in_order_however_they_come, struct fixture *fixture)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &status);
	int fd = fixture_peer(fixture);
	uint8_t *bytes;
	size_t len;

	status.store = (char *)"none";
	for (int i = 0; i < 3; i++) {
		fixture_ask_list(fd);
		fixture_ask(fd, PERSEAS__REQUEST__BODY_STATUS, &status);
	}
	assert_int_equal(ps_request_pack(&request, &bytes, &len), 0);
	for (size_t i = 0; i < len; i++) {
		fixture_send(fd, bytes + i, 1);
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	}
	free(bytes);
	for (int i = 0; i < 7; i++)
		assert_int_equal(fixture_status(fixture, fd),
		                 i % 2 || i == 6 ? STATUS(NO_STORE) : STATUS(OK));
}

/* A message of two gigabytes is announced. */
TEST(a_message_that_is_too_long_ends_the_connection, struct fixture *fixture)
{
	uint32_t len = 0x7fffffff;
	int fd = fixture_peer(fixture);

	fixture_send(fd, &len, sizeof(len));
	assert_int_equal(fixture_status(fixture, fd), STATUS(BAD_REQUEST));
	assert_true(fixture_ended(fixture, fd));
}

/* A daemon that was killed left its socket; another one still answers at its own. */
TEST(a_socket_is_taken_over_only_from_the_dead, struct fixture *fixture)
{
	struct endpoint stale = { .local = true }, file = { .local = true };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct stat st;
	int fd;

	assert_int_equal(fixture_listen(fixture, &fixture->local), -1);
	assert_non_null(strstr(fixture->why, "another process answers"));
	snprintf(stale.host, sizeof(stale.host), "%s/stale", fixture->directory);
	memcpy(at.sun_path, stale.host, sizeof(at.sun_path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
	assert_int_equal(fixture_listen(fixture, &stale), 0);
	assert_int_equal(stat(stale.host, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	snprintf(file.host, sizeof(file.host), "%s/port", fixture->directory);
	assert_int_equal(fixture_listen(fixture, &file), -1);
	assert_non_null(strstr(fixture->why, "not a socket"));
}

static unsigned refusals_told(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < LOG_KEPT && log_recent(i); i++)
		count += strcmp(log_recent(i)->event, "refused") == 0;
	return count;
}

/* Somebody claims what is not there as often as he can, over connections that come and go. */
TEST(refusals_do_not_fill_the_log, struct fixture *fixture)
{
	const unsigned before = refusals_told();

	for (uint64_t i = 1; i <= 40; i++) {
		int fd = fixture_peer(fixture);

		fixture_ask_claim(fd, i, false);
		assert_int_equal(fixture_status(fixture, fd), STATUS(NO_STORE));
		close(fd);
	}
	assert_in_range(refusals_told() - before, 1, LOG_BURST);
}
