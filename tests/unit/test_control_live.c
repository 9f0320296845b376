/*
 * test_control_live.c - whether an owner is heard of, over real sockets; and a daemon that is
 * asked to spill.
 */
#include "../../server/host/jobs.h"
#include "../../server/store/spill.h"
#include "../support/daemon_fixture.h"

#include "../../proto/data/frame.h"
#include "../support/unit.h"

#include <event2/event.h>
#include <sys/pidfd.h>

struct unit_fixture unit_fixture = { fixture_setup, fixture_teardown };

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void step(struct fixture *fixture)
{
	event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
}

/* The session that the reply to a claim grants. */
static struct session *session_of(struct fixture *fixture, Perseas__Reply *reply)
{
	struct session *session = stores_find_session(fixture->stores,
	                                              reply->claim->grant->token.data);

	fixture_done(reply);
	assert_non_null(session);
	return session;
}

/* An owner of the store bank that was silent for a while: its session, and its connection. */
static struct session *be_silent(struct fixture *fixture, int *fd)
{
	struct session *session;

	fixture_bank(fixture);
	*fd = fixture_tcp(fixture);
	session = session_of(fixture, fixture_claim(fixture, *fd, 5));
	while (session->ops->silent_ms(session) < 20)
		step(fixture);
	return session;
}

/* The owner was silent for no longer than since then. */
static void assert_heard_since(struct session *session, uint64_t before)
{
	const uint64_t silent = session->ops->silent_ms(session);

	assert_true(silent <= now_ms() - before);
}

TEST(an_owner_is_heard_by_what_it_sends, struct fixture *fixture)
{
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	int fd;
	struct session *session = be_silent(fixture, &fd);
	const uint64_t before = now_ms();

	fixture_ask(fd, PERSEAS__REQUEST__BODY_CONFIRM, &confirm);
	/* The daemon did not look yet: what lies in the socket was heard all the same. */
	assert_int_equal(session->ops->silent_ms(session), 0);
	fixture_done(fixture_reply(fixture, fd));
	assert_heard_since(session, before);
}

static uint32_t receive_sign(struct fixture *fixture, int fd)
{
	uint32_t length = 1;

	fixture_wait(fixture, fd);
	assert_int_equal(recv(fd, &length, sizeof(length), MSG_DONTWAIT), sizeof(length));
	return length;
}

/* The daemon answers a sign of life with one, and understands the request that follows. */
TEST(an_owner_is_heard_by_a_sign_of_life, struct fixture *fixture)
{
	const uint32_t nothing = 0;
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	int fd;
	struct session *session = be_silent(fixture, &fd);
	const uint64_t before = now_ms();

	fixture_send(fd, &nothing, sizeof(nothing));
	assert_int_equal(receive_sign(fixture, fd), 0);
	assert_heard_since(session, before);
	fixture_send(fd, &nothing, sizeof(nothing));
	fixture_ask(fd, PERSEAS__REQUEST__BODY_CONFIRM, &confirm);
	assert_int_equal(receive_sign(fixture, fd), 0);
	fixture_done(fixture_reply(fixture, fd));
}

/* A client without a claim gets no answer to a sign of life. */
TEST(a_stranger_is_not_answered_a_sign_of_life, struct fixture *fixture)
{
	const uint32_t nothing = 0;
	int fd = fixture_peer(fixture);
	char byte;

	fixture_bank(fixture);
	fixture_send(fd, &nothing, sizeof(nothing));
	for (int steps = 0; steps < 100; steps++)
		step(fixture);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
}

/* A request of an owner waits for another one, for longer than a sign of life takes: the daemon
 * reads nothing of the request yet, and the owner gets signs of life all the same. The answer comes
 * behind the signs. */
TEST(an_owner_whose_request_waits_hears_of_the_mirror, struct fixture *fixture)
{
	const uint32_t nothing = 0;
	struct job other = { 0 };
	uint32_t length;
	uint8_t bytes[4096];
	int fd;

	fixture_bank(fixture);
	fd = fixture_tcp(fixture);
	fixture_done(fixture_claim(fixture, fd, 5));
	fixture_send(fd, &nothing, sizeof(nothing));
	assert_int_equal(receive_sign(fixture, fd), 0);
	fixture->daemon->exclusive_job = &other;
	fixture_ask_claim(fd, 6, false);
	/* Signs of progress come, too, where others took processor time. */
	for (int signs = 0; signs < 3; signs += length == 0) {
		length = receive_sign(fixture, fd);
		assert_true(length < sizeof(bytes));
		assert_true(fixture_receive(fixture, fd, bytes, length));
	}
	other.over = true;
	daemon_wake(fixture->daemon);
	while ((length = receive_sign(fixture, fd)) < 64) /* a grant is longer */
		assert_true(fixture_receive(fixture, fd, bytes, length));
}

/* A claim waits until another request is over. What its owner sends meanwhile is not read, so the
 * time before the answer does not count: else it would be called dead by the answer. */
TEST(an_owner_is_not_silent_while_its_request_waits, struct fixture *fixture)
{
	struct job other = { 0 };
	int fd = fixture_peer(fixture);
	uint64_t before;

	fixture_bank(fixture);
	fixture->daemon->exclusive_job = &other;
	fixture_ask_claim(fd, 5, false);
	while (!fixture->daemon->parked)
		step(fixture);
	for (before = now_ms(); now_ms() < before + 20;)
		step(fixture);
	before = now_ms();
	other.over = true;
	daemon_wake(fixture->daemon);
	assert_heard_since(session_of(fixture, fixture_reply(fixture, fd)), before);
}

/* In another process: claims over the Unix socket, and leaves it to a child when it ends. */
static void claim_and_die(struct fixture *fixture, int until)
{
	const struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };
	int fd = fixture_unix(fixture);
	uint8_t bytes[512];
	size_t have = 0;

	fixture_send(fd, &hello, sizeof(hello));
	fixture_ask_claim(fd, 5, false);
	while (have < sizeof(hello) + 64) {
		ssize_t n = read(fd, bytes, sizeof(bytes));

		if (n <= 0)
			_exit(1);
		have += (size_t)n;
	}
	if (fork() == 0)
		_exit(read(until, bytes, 1) < 0);
	_exit(0);
}

TEST(an_owner_whose_process_ended_is_dead, struct fixture *fixture)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	int until[2], how, process;
	struct why why;
	pid_t child;

	fixture_bank(fixture);
	assert_int_equal(pipe(until), 0);
	child = fork();
	if (child == 0) {
		close(until[1]);
		claim_and_die(fixture, until[0]);
	}
	process = pidfd_open(child, 0);
	assert_true(process >= 0);
	fixture_wait(fixture, process);
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
	for (int steps = 0; steps < 100; steps++)
		step(fixture);
	assert_int_equal(store_status(fixture->stores, "bank", &status, &why), 0);
	assert_string_not_equal(status.owner_address, "");
	assert_false(status.live);
	close(process);
	close(until[0]);
	close(until[1]);
}

/* The caller gets its answer, and the daemon ends then. */
TEST(a_daemon_ends_after_the_spill_that_it_was_asked_for, struct fixture *fixture)
{
	Perseas__SpillRequest request = PERSEAS__SPILL_REQUEST__INIT;
	int fd = fixture_peer(fixture);
	Perseas__Reply *reply;
	struct spill *spill;
	const char *why;
	char path[128];
	struct stat st;

	fixture_bank(fixture);
	snprintf(path, sizeof(path), "%s/spill", fixture->directory);
	spill = spill_file_new(path, &why);
	assert_non_null(spill);
	fixture_done(fixture_claim(fixture, fixture_tcp(fixture), 5));
	fixture_ask(fd, PERSEAS__REQUEST__BODY_SPILL, &request);
	assert_int_equal(fixture_status(fixture, fd), STATUS(BAD_STATE));
	assert_false(fixture->daemon->is_stopping);
	stores_set_spill(fixture->stores, spill);
	fixture_ask(fd, PERSEAS__REQUEST__BODY_SPILL, &request);
	reply = fixture_reply(fixture, fd);
	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(reply->spill->stores, 1);
	assert_string_equal(reply->spill->directory, path);
	fixture_done(reply);
	assert_true(fixture->daemon->is_stopping);
	snprintf(path, sizeof(path), "%s/spill/bank.spill", fixture->directory);
	assert_int_equal(stat(path, &st), 0);
	stores_set_spill(fixture->stores, NULL);
	spill_file_free(spill);
}
