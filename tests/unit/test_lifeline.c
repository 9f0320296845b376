/*
 * test_lifeline.c - connections whose end is the end of another connection's session, over real
 * sockets; and the thread that keeps an owner's ends of them in a table of descriptors of its own.
 */
#include "../../client/host/vault.h"
#include "../../server/loop/connection.h"
#include "../support/daemon_fixture.h"
#include "../support/unit.h"

#include <event2/event.h>

struct unit_fixture unit_fixture = { fixture_setup, fixture_teardown };

enum { PATIENCE = 10000 }; /* milliseconds, far more than what is waited for takes */

struct token {
	uint8_t bytes[PS_ID_SIZE];
};

/* Claims the store bank over a new connection. */
static int be_owner(struct fixture *fixture, uint64_t epoch, struct token *token)
{
	const int fd = fixture_tcp(fixture);
	Perseas__Reply *reply = fixture_claim(fixture, fd, epoch);

	memcpy(token->bytes, reply->claim->grant->token.data, PS_ID_SIZE);
	fixture_done(reply);
	return fd;
}

static unsigned show_token(struct fixture *fixture, int fd, struct token *token)
{
	Perseas__LifelineRequest ask = PERSEAS__LIFELINE_REQUEST__INIT;
	Perseas__Reply *reply;
	unsigned status;

	ask.token = (ProtobufCBinaryData){ PS_ID_SIZE, token->bytes };
	fixture_ask(fd, PERSEAS__REQUEST__BODY_LIFELINE, &ask);
	reply = fixture_reply(fixture, fd);
	status = reply->status;
	fixture_done(reply);
	return status;
}

static int have_lifeline(struct fixture *fixture, struct token *token)
{
	const int fd = fixture_tcp(fixture);

	fixture_greet(fixture, fd);
	assert_int_equal(show_token(fixture, fd, token), STATUS(OK));
	return fd;
}

static bool goes_on(struct fixture *fixture, const struct token *token)
{
	return stores_find_session(fixture->stores, token->bytes);
}

static unsigned connections(const struct fixture *fixture)
{
	unsigned count = 0;

	for (struct connection *at = fixture->daemon->connections; at; at = at->next)
		count++;
	return count;
}

/* Closes this end of one connection, and steps the daemon until so many are left. */
static void hang_up(struct fixture *fixture, int fd, unsigned left)
{
	close(fd);
	for (int steps = 0; connections(fixture) > left; steps++) {
		if (steps == PATIENCE)
			fail_msg("%u connections do not become %u", connections(fixture), left);
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
		poll(NULL, 0, 1);
	}
}

/* The owner's own connection is still there: as of a process whose memory is being freed. */
TEST(a_session_ends_with_its_lifeline, struct fixture *fixture)
{
	struct token token;
	int owner, line;

	fixture_bank(fixture);
	owner = be_owner(fixture, 5, &token);
	line = have_lifeline(fixture, &token);
	assert_true(goes_on(fixture, &token));
	hang_up(fixture, line, 0);
	assert_false(goes_on(fixture, &token));
	assert_true(fixture_ended(fixture, owner));
}

/* A connection that needs a place may take a lifeline's. */
TEST(a_lifeline_that_the_mirror_closes_ends_nothing, struct fixture *fixture)
{
	struct token token;
	int line;

	fixture_bank(fixture);
	be_owner(fixture, 5, &token);
	line = have_lifeline(fixture, &token);
	/* The newest comes first. */
	connection_close(fixture->daemon->connections);
	assert_true(fixture_ended(fixture, line));
	assert_true(goes_on(fixture, &token));
	assert_int_equal(connections(fixture), 1);
}

/* An owner that let go, and came again, before its lifeline of then was closed. */
TEST(a_lifeline_of_an_earlier_session_ends_nothing, struct fixture *fixture)
{
	Perseas__ReleaseRequest release = PERSEAS__RELEASE_REQUEST__INIT;
	struct token before, token;
	int first, line;

	fixture_bank(fixture);
	first = be_owner(fixture, 5, &before);
	line = have_lifeline(fixture, &before);
	fixture_ask(first, PERSEAS__REQUEST__BODY_RELEASE, &release);
	fixture_done(fixture_reply(fixture, first));
	be_owner(fixture, 6, &token);
	hang_up(fixture, line, 2);
	assert_true(goes_on(fixture, &token));
}

/* A stranger, who knows no token or is not who the session belongs to; and the session itself. */
TEST(nobody_names_the_session_of_another, struct fixture *fixture)
{
	struct token token, zero = { { 0 } };
	struct session *session;
	int owner, other;

	fixture_bank(fixture);
	owner = be_owner(fixture, 5, &token);
	other = fixture_tcp(fixture);
	fixture_greet(fixture, other);
	assert_int_equal(show_token(fixture, owner, &token), STATUS(BAD_REQUEST));
	assert_int_equal(show_token(fixture, other, &zero), STATUS(BAD_REQUEST));
	token.bytes[15] ^= 1;
	assert_int_equal(show_token(fixture, other, &token), STATUS(NO_SESSION));
	token.bytes[15] ^= 1;
	session = stores_find_session(fixture->stores, token.bytes);
	strcpy(session->identity.name, "uid:7");
	assert_int_equal(show_token(fixture, other, &token), STATUS(NO_SESSION));
	hang_up(fixture, other, 1);
	assert_true(goes_on(fixture, &token));
}

/* Otherwise one end could keep a chain of sessions alive for as long as it liked. */
TEST(a_connection_that_claims_is_no_lifeline_any_more, struct fixture *fixture)
{
	struct token token;
	int line;

	fixture_bank(fixture);
	fixture_make(fixture, "other");
	be_owner(fixture, 5, &token);
	line = have_lifeline(fixture, &token);
	fixture_ask_claim_of(line, "other", 5, false);
	fixture_done(fixture_reply(fixture, line));
	hang_up(fixture, line, 1);
	assert_true(goes_on(fixture, &token));
}

/* --- the thread that keeps them --- */

static ino_t socket_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

/* Returns true if this thread's descriptor table has that socket. */
static bool is_here(ino_t socket)
{
	for (int fd = 0; fd < 1024; fd++)
		if (socket_of(fd) == socket)
			return true;
	return false;
}

static void assert_ends(int fd)
{
	struct pollfd end = { .fd = fd, .events = POLLIN };
	char byte;

	assert_int_equal(poll(&end, 1, PATIENCE), 1);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

/* Only the vault has one end: it ends when the vault drops it, and not with this table. */
TEST_WITH(what_is_kept_is_in_no_other_table, NULL, NULL)
{
	struct ps_vault vault;
	int pair[2], copy[2];
	uint64_t number;
	ino_t kept;
	char byte;

	ps_vault_init(&vault);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, copy), 0);
	number = ps_vault_keep_fd(&vault, pair[1]);
	if (!number)
		skip();
	assert_int_not_equal(ps_vault_keep_fd(&vault, copy[1]), number);
	kept = socket_of(copy[1]);
	close(pair[1]);
	close(copy[1]);
	assert_int_equal(recv(pair[0], &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	ps_vault_drop(&vault, number);
	assert_ends(pair[0]);
	/* So the thread has taken everything that was given before. */
	assert_int_equal(recv(copy[0], &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_false(is_here(kept));
	ps_vault_close(&vault);
	assert_ends(copy[0]);
	close(pair[0]);
	close(copy[0]);
}

/* A copy in a child of fork would hide the end of its parent. */
TEST_WITH(a_child_has_no_copy_of_what_is_kept, NULL, NULL)
{
	struct ps_vault vault;
	int pair[2], wait[2];
	char byte;
	pid_t child;

	ps_vault_init(&vault);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe(wait), 0);
	if (!ps_vault_keep_fd(&vault, pair[1]))
		skip();
	close(pair[1]);
	child = fork();
	if (child == 0) {
		close(wait[1]);
		_exit((int)read(wait[0], &byte, 1));
	}
	/* The child has the sockets by which the thread is told, too: its end needs them not. */
	ps_vault_close(&vault);
	assert_ends(pair[0]);
	close(wait[0]);
	close(wait[1]);
	close(pair[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The end of a connection that was not kept would end its session. */
TEST_WITH(a_vault_that_is_full_takes_no_more, NULL, NULL)
{
	enum { MANY = 100 };
	struct ps_vault vault;
	int pair[2];
	uint64_t first;
	unsigned taken = 1;

	ps_vault_init(&vault);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	first = ps_vault_keep_fd(&vault, pair[1]);
	if (!first)
		skip();
	while (taken < MANY && ps_vault_keep_fd(&vault, pair[1]))
		taken++;
	assert_in_range(taken, 2 * PS_MIRRORS_MAX, MANY - 1);
	ps_vault_drop(&vault, first);
	assert_int_equal(ps_vault_keep_fd(&vault, pair[1]), taken + 1);
	assert_int_equal(ps_vault_keep_fd(&vault, pair[1]), 0);
	ps_vault_close(&vault);
	close(pair[0]);
	close(pair[1]);
}
