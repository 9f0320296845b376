/*
 * test_hello.c - greetings of control connections with mirrors of the version before: which of them
 * are dialled again, what they are sent then, and what they must not be sent.
 */
#include "control_daemon.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* The daemon's part: a mirror that knows no ranges takes the connection, answers, and hangs up. */
static void turn_away(struct daemon *d)
{
	welcome(d, PS_CONTROL_MAGIC, PS_PROTOCOL_LEAST);
	shutdown(d->fd, SHUT_WR);
}

/* Looked at until it has dialled once more: nothing is there meanwhile, and nothing is over. */
static void wait_for_dial(struct fixture *f, struct ps_control *control, const struct daemon *d)
{
	struct pollfd fd = { .fd = d->listener, .events = POLLIN };

	for (int i = 0; i < 6000; i++) {
		assert_false(f->ops->ended(control));
		assert_false(f->ops->answered(control));
		if (poll(&fd, 1, 10) == 1)
			return;
	}
	fail_msg("it does not dial again");
}

static void hear_plain_hello(struct daemon *d)
{
	struct ps_control_hello hello;

	assert_int_equal(recv(d->fd, &hello, sizeof(hello), MSG_WAITALL), sizeof(hello));
	assert_int_equal(hello.magic, PS_CONTROL_MAGIC);
	assert_int_equal(hello.version, PS_PROTOCOL_LEAST);
}

/* It is dialled once more, and gets all requests from before in order, and later ones, too. */
TEST(a_mirror_of_the_version_before_is_greeted_again, struct fixture *f)
{
	struct daemon *const daemons[] = { &f->local, &f->tcp };

	for (unsigned i = 0; i < 2; i++) {
		struct daemon *d = daemons[i];
		struct ps_control *control = dial(f, d);
		int first;

		ask(f, control, "one");
		ask(f, control, "two");
		turn_away(d);
		first = d->fd;
		wait_for_dial(f, control, d);
		ask(f, control, "three");
		welcome(d, PS_CONTROL_MAGIC, PS_PROTOCOL_LEAST);
		hear_plain_hello(d);
		hear(d, "one");
		hear(d, "two");
		hear(d, "three");
		for (unsigned k = 1; k <= 3; k++)
			reply_with(d, "here", 0, NULL, 0);
		for (unsigned k = 1; k <= 3; k++)
			expect_reply(f, control, soon(), "here");
		disconnect(f, control);
		close(first);
	}
}

/* It is one of no version that there is: it is dialled again once, not for ever. */
TEST(a_mirror_is_greeted_again_only_once, struct fixture *f)
{
	struct ps_control *control = dial(f, &f->local);
	int first;

	ask(f, control, "s");
	turn_away(&f->local);
	first = f->local.fd;
	wait_for_dial(f, control, &f->local);
	turn_away(&f->local);
	expect_failure(f, control, soon(), PERSEAS_EUNREACHABLE, "ended the connection");
	disconnect(f, control);
	close(first);
}

/* What only this version knows is asked before it is known what the mirror speaks, and after. */
TEST(a_later_message_is_not_sent_to_a_mirror_of_the_version_before, struct fixture *f)
{
	Perseas__HostRequest host = PERSEAS__HOST_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_error error = { 0 };
	struct ps_control *control = dial(f, &f->local);
	int first;

	request.body_case = PERSEAS__REQUEST__BODY_HOST;
	request.host = &host;
	assert_int_equal(f->ops->send(control, &request, NULL), 0);
	turn_away(&f->local);
	expect_failure(f, control, soon(), PERSEAS_EVERSION, "upgrade its perseasd first");
	disconnect(f, control);
	close(f->local.fd);

	control = dial(f, &f->local);
	ask(f, control, "s");
	turn_away(&f->local);
	first = f->local.fd;
	wait_for_dial(f, control, &f->local);
	welcome(&f->local, PS_CONTROL_MAGIC, PS_PROTOCOL_LEAST);
	reply_with(&f->local, "here", 0, NULL, 0);
	expect_reply(f, control, soon(), "here");
	assert_int_equal(f->ops->send(control, &request, &error), PERSEAS_EVERSION);
	assert_non_null(strstr(error.text, "speaks version 7"));
	disconnect(f, control);
	close(first);
}
