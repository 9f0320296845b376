/*
 * test_silence.c - signs of life on control connections: those of this end, and what is made of
 * a mirror that answers them, or says nothing any more (heartbeat_thread.c, liveness.c).
 */
#include "control_daemon.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* The connection of a session, whose mirror was asked once and takes what follows. */
static struct ps_control *begin_session(struct fixture *f, struct daemon *d)
{
	struct ps_control *control = dial(f, d);

	d->replied = 0;
	ask(f, control, "s");
	welcome(d, PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION);
	reply_with(d, "r", 0, NULL, 0);
	expect_reply(f, control, soon(), "r");
	hear_hello(d);
	hear(d, "s");
	return control;
}

/* Reads signs of life, and gives what follows them: the length of a request. */
static uint32_t hear_signs(struct daemon *d, unsigned *count)
{
	uint32_t length = 0;

	for (*count = 0; length == 0; ++*count)
		assert_int_equal(recv(d->fd, &length, sizeof(length), MSG_WAITALL), sizeof(length));
	--*count;
	return length;
}

TEST(signs_of_life_come_by_themselves_between_requests, struct fixture *f)
{
	struct daemon *daemons[] = { &f->tcp, &f->local };
	struct pollfd fd = { .events = POLLIN };
	uint32_t length;
	uint8_t bytes[512];
	unsigned count;
	uint64_t begun;

	for (int i = 0; i < 2; i++) {
		struct ps_control *control = begin_session(f, daemons[i]);

		begun = ps_monotonic();
		f->ops->beat(control, SHORTLY);
		for (count = 0; count < 4; count++) {
			assert_int_equal(recv(daemons[i]->fd, &length, 4, MSG_WAITALL), 4);
			assert_int_equal(length, 0);
		}
		/* However late they are read; the first one may come at once. */
		assert_true(ps_monotonic() - begun >= 3 * SHORTLY);
		ask(f, control, "two");
		length = hear_signs(daemons[i], &count);
		assert_int_equal(recv(daemons[i]->fd, bytes, length, MSG_WAITALL), length);
		reply_with(daemons[i], "second", 0, NULL, 0);
		expect_reply(f, control, soon(), "second");
		f->ops->beat(control, 0);
		fd.fd = daemons[i]->fd;
		while (poll(&fd, 1, 0) == 1)
			assert_int_equal(recv(fd.fd, &length, 4, MSG_WAITALL), 4);
		assert_int_equal(poll(&fd, 1, 3 * (int)(SHORTLY / 1000000)), 0);
		disconnect(f, control);
	}
}

/* The end of one connection leaves the other's signs alone. */
TEST(signs_of_life_end_with_their_connection, struct fixture *f)
{
	struct ps_control *one = begin_session(f, &f->tcp), *other = begin_session(f, &f->local);
	uint32_t length;

	f->ops->beat(one, SHORTLY);
	f->ops->beat(other, SHORTLY);
	close(f->tcp.fd);
	f->tcp.fd = -1;
	for (unsigned count = 0; count < 3; count++)
		assert_int_equal(recv(f->local.fd, &length, 4, MSG_WAITALL), 4);
	disconnect(f, one);
	for (unsigned count = 0; count < 3; count++)
		assert_int_equal(recv(f->local.fd, &length, 4, MSG_WAITALL), 4);
	disconnect(f, other);
	assert_int_equal(recv(f->local.fd, &length, 4, MSG_WAITALL) % 4, 0);
}

/* --- silence --- */

/* From now on the time counts in which it says nothing. */
static struct ps_control *listen_to(struct fixture *f, struct daemon *d, uint64_t limit_ns)
{
	struct ps_control *control = begin_session(f, d);

	f->ops->expect_heartbeats(control, limit_ns);
	return control;
}

/* The sign arrives before the next request, however soon that comes. */
TEST(the_first_sign_comes_before_any_request, struct fixture *f)
{
	struct daemon *daemons[] = { &f->tcp, &f->local };
	uint8_t bytes[512];
	unsigned signs;
	uint32_t length;

	for (int i = 0; i < 200; i++) {
		struct daemon *d = daemons[i % 2];
		struct ps_control *control = listen_to(f, d, 60 * (uint64_t)1000000000);

		ask(f, control, "next");
		length = hear_signs(d, &signs);
		assert_int_equal(signs, 1);
		assert_int_equal(recv(d->fd, bytes, length, MSG_WAITALL), length);
		disconnect(f, control);
	}
}

static void take_sign(struct daemon *d)
{
	uint32_t length;

	assert_int_equal(recv(d->fd, &length, sizeof(length), MSG_WAITALL), sizeof(length));
	assert_int_equal(length, 0);
}

static void send_sign(struct daemon *d)
{
	const uint32_t nothing = 0;

	send_with(d->fd, &nothing, sizeof(nothing), NULL, 0);
}

/* The mirror says nothing, which is noticed after the limit, also by a thread that sleeps on the
 * connection, and not before. */
TEST(a_silent_mirror_is_noticed, struct fixture *f)
{
	struct daemon *daemons[] = { &f->tcp, &f->local };

	for (int i = 0; i < 2; i++) {
		struct ps_control *control = begin_session(f, daemons[i]);
		struct pollfd fd = { f->ops->control_fd(control), POLLIN, 0 };
		const uint64_t start = ps_monotonic();

		f->ops->expect_heartbeats(control, 4 * SHORTLY);
		assert_int_equal(poll(&fd, 1, 600000), 1);
		assert_true(ps_monotonic() - start >= 4 * SHORTLY);
		assert_true(f->ops->ended(control));
		assert_true(f->ops->silent(control));
		assert_int_equal(try_ask(f, control, "s"), PERSEAS_EUNREACHABLE);
		expect_failure(f, control, soon(), PERSEAS_EUNREACHABLE, "said nothing for 80 ms");
		disconnect(f, control);
	}
}

/* A thread that waits for the answer learns of the silence then, and not at the answer's
 * deadline. */
TEST(silence_ends_the_wait_for_an_answer, struct fixture *f)
{
	struct ps_control *control = begin_session(f, &f->tcp);

	ask(f, control, "two");
	f->ops->expect_heartbeats(control, SHORTLY);
	expect_failure(f, control, soon(), PERSEAS_EUNREACHABLE, "said nothing for 20 ms");
	assert_true(f->ops->silent(control));
	disconnect(f, control);
}

/* The mirror answers the signs and says nothing else. Its signs stay in the socket until their
 * thread reads them, so that no sleeper wakes often. */
TEST(a_mirror_that_answers_signs_is_not_silent, struct fixture *f)
{
	struct daemon *daemons[] = { &f->tcp, &f->local };

	for (int i = 0; i < 2; i++) {
		struct ps_control *control = listen_to(f, daemons[i], 50 * SHORTLY);
		const uint64_t start = ps_monotonic();

		while (ps_monotonic() < start + 75 * SHORTLY) {
			take_sign(daemons[i]);
			send_sign(daemons[i]);
		}
		assert_false(f->ops->ended(control));
		assert_false(f->ops->silent(control));
		/* A reply comes through behind them. */
		ask(f, control, "s");
		send_sign(daemons[i]);
		reply_with(daemons[i], "answer", 0, NULL, 0);
		send_sign(daemons[i]);
		expect_reply(f, control, soon(), "answer");
		assert_false(f->ops->ended(control));
		disconnect(f, control);
	}
}

/* The mirror's words are in the socket, and their thread has no time. Another mirror, which may be
 * silent for twice as long, shows when both were looked at often enough. */
TEST(what_nobody_takes_was_said_all_the_same, struct fixture *f)
{
	struct ps_control *control = begin_session(f, &f->tcp);
	struct ps_control *other = begin_session(f, &f->local);
	struct pollfd fd = { f->ops->control_fd(other), POLLIN, 0 };

	ask(f, control, "s");
	reply_with(&f->tcp, "answer", 0, NULL, 0);
	f->ops->expect_heartbeats(control, SHORTLY);
	f->ops->expect_heartbeats(other, 2 * SHORTLY);
	assert_int_equal(poll(&fd, 1, -1), 1);
	assert_true(f->ops->silent(other));
	assert_false(f->ops->silent(control));
	expect_reply(f, control, soon(), "answer");
	disconnect(f, other);
	disconnect(f, control);
}
