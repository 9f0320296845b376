/*
 * test_control_socket.c - control connections over TCP and Unix sockets, beyond the contract that
 * test_contract_env.c has them keep.
 */
#include "control_daemon.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* Three requests are sent before the daemon has even accepted. */
TEST(answers_come_in_the_order_of_the_requests, struct fixture *f)
{
	struct daemon *daemons[] = { &f->tcp, &f->local };
	int i;

	for (i = 0; i < 2; i++) {
		struct ps_control *control = dial(f, daemons[i]);

		ask(f, control, "one");
		ask(f, control, "two");
		ask(f, control, "three");
		welcome(daemons[i], PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION);
		reply_with(daemons[i], "first", 0, NULL, 0);
		reply_with(daemons[i], "second", 0, NULL, 0);
		expect_reply(f, control, soon(), "first");
		hear_hello(daemons[i]);
		hear(daemons[i], "one");
		hear(daemons[i], "two");
		hear(daemons[i], "three");
		reply_with(daemons[i], "third", 0, NULL, 0);
		expect_reply(f, control, soon(), "second");
		expect_reply(f, control, soon(), "third");
		disconnect(f, control);
	}
}

/* A daemon gives memory away: three descriptors, a reply without, then the most there are. */
TEST(descriptors_come_with_their_own_reply, struct fixture *f)
{
	struct ps_control *control = dial(f, &f->local);
	int given[MOST] = { 0 }, fds[PS_REGIONS_MAX], before;
	unsigned count, i;
	Perseas__Reply *reply;

	for (i = 0; i < 3; i++)
		ask_memory(f, control);
	welcome(&f->local, PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION);
	before = open_descriptors();
	reply_with(&f->local, NULL, 3, given, 3);
	reply_with(&f->local, "without", 0, NULL, 0);
	reply_with(&f->local, NULL, MOST, given, MOST);

	assert_int_equal(f->ops->receive(control, soon(), &reply, fds, &count, NULL), 0);
	assert_int_equal(count, 3);
	assert_int_equal(reply->drop_segments->grant->descriptors, 3);
	for (i = 0; i < count; i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
	assert_int_equal(open_descriptors(), before + 3);
	ps_close_all(fds, count);
	perseas__reply__free_unpacked(reply, NULL);
	expect_reply(f, control, soon(), "without");
	assert_int_equal(f->ops->receive(control, soon(), &reply, fds, &count, NULL), 0);
	assert_int_equal(count, MOST);
	ps_close_all(fds, count);
	perseas__reply__free_unpacked(reply, NULL);
	assert_int_equal(open_descriptors(), before);
}

/* Descriptors that no reply announced, with a refusal and with a grant; and nobody to take
 * those that one did. */
TEST(unexpected_descriptors_are_closed, struct fixture *f)
{
	struct ps_control *control = dial(f, &f->local);
	int given[5] = { 0 }, fds[PS_REGIONS_MAX], before;
	unsigned count;
	Perseas__Reply *reply;

	ask_memory(f, control);
	ask_memory(f, control);
	ask_memory(f, control);
	welcome(&f->local, PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION);
	before = open_descriptors();
	reply_with(&f->local, "refused", 0, given, 5);
	reply_with(&f->local, NULL, 3, given, 5);
	reply_with(&f->local, NULL, 3, given, 3);
	expect_reply(f, control, soon(), "refused");
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(f->ops->receive(control, soon(), &reply, fds, &count, NULL), 0);
	assert_int_equal(count, 3);
	ps_close_all(fds, count);
	perseas__reply__free_unpacked(reply, NULL);
	assert_int_equal(f->ops->receive(control, soon(), &reply, NULL, NULL, NULL), 0);
	perseas__reply__free_unpacked(reply, NULL);
	assert_int_equal(open_descriptors(), before);
}

/* Fewer descriptors than announced, and far more than any reply has; none may be left. */
TEST(a_wrong_number_of_descriptors_is_an_error, struct fixture *f)
{
	int given[253] = { 0 };
	int before = open_descriptors();
	struct ps_control *control = dial(f, &f->local);

	ask_memory(f, control);
	welcome(&f->local, PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION);
	reply_with(&f->local, NULL, 3, given, 2);
	expect_failure(f, control, soon(), PERSEAS_EPROTOCOL, "fewer");
	expect_failure(f, control, soon(), PERSEAS_EPROTOCOL, "fewer");
	disconnect(f, control);
	close(f->local.fd);

	control = dial(f, &f->local);
	ask_memory(f, control);
	welcome(&f->local, PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION);
	reply_with(&f->local, NULL, 2, given, 253);
	expect_failure(f, control, soon(), PERSEAS_EPROTOCOL, "more");
	disconnect(f, control);
	close(f->local.fd);
	f->local.fd = -1;
	assert_int_equal(open_descriptors(), before);
}

/* A reply arrives byte by byte, and the client looks after each. */
TEST(a_reply_may_arrive_in_any_pieces, struct fixture *f)
{
	struct ps_control *control = dial_and_ask(f, &f->tcp);
	Perseas__Reply reply = PERSEAS__REPLY__INIT;
	uint8_t *bytes;
	size_t len, i;

	reply.status = PERSEAS__STATUS__STATUS_BUSY;
	reply.message = (char *)(uintptr_t) "in pieces";
	reply.id = 1;
	assert_int_equal(ps_reply_pack(&reply, &bytes, &len), 0);
	for (i = 0; i < len; i++) {
		assert_false(f->ops->answered(control));
		send_with(f->tcp.fd, bytes + i, 1, NULL, 0);
	}
	expect_reply(f, control, soon(), "in pieces");
	free(bytes);
}

/* Peers that are no perseasd of this version, each with what the user is told. */
TEST(a_wrong_peer_is_told_apart, struct fixture *f)
{
	static const struct {
		const char *bytes;
		size_t len;
		int code;
		const char *word;
	} peers[] = {
		{ "HTTP/1.1 400 Bad Request\r\n", 26, PERSEAS_EPROTOCOL, "is not a perseasd" },
		{ "PSSC\4\0\0\0", 8, PERSEAS_EVERSION, "version 4 of the protocol, this library" },
		{ "PSS", 3, PERSEAS_EUNREACHABLE, "without a greeting" },
		{ "", 0, PERSEAS_EUNREACHABLE, "without a greeting" },
		{ "PSSC\10\0\0\0", 8, PERSEAS_EUNREACHABLE, "ended the connection" },
		{ "PSSC\10\0\0\0\4\0\0\0abc", 15, PERSEAS_EUNREACHABLE, "ended the connection" },
		{ "PSSC\10\0\0\0\3\0\0\0abc", 15, PERSEAS_EPROTOCOL, "not the reply that is due" },
		{ "PSSC\10\0\0\0\0\0\0\0", 12, PERSEAS_EUNREACHABLE, "ended the connection" },
		{ "PSSC\10\0\0\0\1\0\x10\0", 12, PERSEAS_EPROTOCOL, "1048577 bytes" },
		{ "PSSC\10\0\0\0\xff\xff\xff\xff", 12, PERSEAS_EPROTOCOL, "4294967295 bytes" },
	};
	size_t i;

	for (i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
		struct ps_control *control = dial(f, &f->tcp);

		ask(f, control, "s");
		f->tcp.fd = accept4(f->tcp.listener, NULL, NULL, SOCK_CLOEXEC);
		if (peers[i].len)
			send_with(f->tcp.fd, peers[i].bytes, peers[i].len, NULL, 0);
		shutdown(f->tcp.fd, SHUT_WR);
		expect_failure(f, control, soon(), peers[i].code, peers[i].word);
		expect_failure(f, control, soon(), peers[i].code, f->tcp.address.text);
		assert_int_equal(try_ask(f, control, "s"), peers[i].code);
		assert_true(f->ops->ended(control));
		assert_int_equal(f->ops->control_fd(control), -1);
		disconnect(f, control);
		close(f->tcp.fd);
	}
	f->tcp.fd = -1;
}

static void expect_no_connection(struct fixture *f, const char *text, const char *word)
{
	struct ps_address address;
	struct ps_error error = { 0 };
	struct ps_control *control;

	assert_int_equal(ps_address_parse(text, &address, NULL), 0);
	control = f->ops->connect(f->env, &address, &error);
	if (control) {
		/* On some hosts connecting fails at once. */
		try_ask(f, control, "s");
		expect_failure(f, control, soon(), PERSEAS_EUNREACHABLE, word);
		expect_failure(f, control, soon(), PERSEAS_EUNREACHABLE, text);
		assert_int_equal(try_ask(f, control, "s"), PERSEAS_EUNREACHABLE);
		disconnect(f, control);
		return;
	}
	assert_true(error.code == PERSEAS_EUNREACHABLE || error.code == PERSEAS_EINVAL);
	if (!strstr(error.text, word) || !strstr(error.text, text))
		fail_msg("said: %s", error.text);
}

/* The mirror is absent in every way in which it can be. */
TEST(a_mirror_that_is_not_there_is_named_with_what_to_do, struct fixture *f)
{
	char text[256];

	close(f->tcp.listener);
	f->tcp.listener = -1;
	expect_no_connection(f, f->tcp.address.text, "refused the connection; is perseasd running");
	close(f->local.listener);
	f->local.listener = -1;
	expect_no_connection(f, f->local.address.text, "refused the connection; is perseasd");
	snprintf(text, sizeof(text), "unix://%s/nothing", f->folder);
	expect_no_connection(f, text, "there is no such socket; is perseasd running");
	expect_no_connection(f, "no..such..host:7170", "the host is not known");
	expect_no_connection(f, "sim://3", "simulation");
}

/* A mirror takes the connection and is silent; another one greets, and is silent to a request. */
TEST(silence_ends_at_the_deadline, struct fixture *f)
{
	struct ps_control *control = dial(f, &f->tcp);
	uint64_t begun = ps_monotonic();

	ask(f, control, "s");
	expect_failure(f, control, begun + SHORTLY, PERSEAS_EUNREACHABLE, "said nothing in time");
	assert_true(ps_monotonic() >= begun + SHORTLY);
	disconnect(f, control);
	close(accept4(f->tcp.listener, NULL, NULL, SOCK_CLOEXEC));
	control = dial_and_ask(f, &f->tcp);
	expect_failure(f, control, ps_monotonic() + SHORTLY, PERSEAS_EUNREACHABLE,
	               "did not answer in time");
}

/* Replies to a request that was answered, to one that was never sent, and of another kind. */
TEST(a_reply_that_answers_nothing_ends_the_connection, struct fixture *f)
{
	for (int i = 0; i < 3; i++) {
		struct ps_control *control = dial(f, &f->local);

		ask(f, control, "one");
		ask(f, control, "two");
		welcome(&f->local, PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION);
		reply_with(&f->local, "first", 0, NULL, 0);
		expect_reply(f, control, soon(), "first");
		f->local.replied = i < 2 ? 2 * (uint64_t)i : 1;
		reply_with(&f->local, i < 2 ? "wrong" : NULL, i < 2 ? 0 : 3, NULL, 0);
		expect_failure(f, control, soon(), PERSEAS_EPROTOCOL, "nothing that was asked");
		assert_true(f->ops->ended(control));
		disconnect(f, control);
		close(f->local.fd);
	}
	f->local.fd = -1;
}

static void work_on(struct daemon *d, uint64_t done)
{
	Perseas__WorkingReply working = PERSEAS__WORKING_REPLY__INIT;
	Perseas__Reply reply = PERSEAS__REPLY__INIT;
	uint8_t *bytes;
	size_t len;

	working.done = done;
	reply.id = d->replied + 1;
	reply.body_case = PERSEAS__REPLY__BODY_WORKING;
	reply.working = &working;
	assert_int_equal(ps_reply_pack(&reply, &bytes, &len), 0);
	send_with(d->fd, bytes, len, NULL, 0);
	free(bytes);
}

#define PATIENCE 1000000000ULL /* ns: so much that no busy host uses up three quarters of it */

struct worker {
	struct daemon *daemon;
	unsigned signs;
};

/* Says that it works, each time before the owner would no longer wait, and then answers. */
static void *work_slowly(void *arg)
{
	const struct worker *worker = arg;

	for (unsigned i = 1; i <= worker->signs; i++) {
		ps_poll(NULL, 0, ps_monotonic() + PATIENCE / 4);
		work_on(worker->daemon, i);
	}
	reply_with(worker->daemon, "done", 0, NULL, 0);
	return NULL;
}

/* Two of a round work for long at the same time: the first one's answer is waited for until the
 * time that both were given is long over. */
TEST(signs_of_another_count_while_one_is_waited_for, struct fixture *f)
{
	struct ps_control *one = dial_and_ask(f, &f->tcp), *other = dial_and_ask(f, &f->local);
	struct worker workers[] = { { &f->tcp, 6 }, { &f->local, 9 } };
	const uint64_t until = ps_monotonic() + PATIENCE;
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work_slowly, &workers[i]), 0);
	expect_reply(f, one, until, "done");
	expect_reply(f, other, until, "done");
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* One mirror is silent until the common deadline. The other's queue of connections is full at
 * first, so it must be dialed again during the wait for the first. */
TEST(a_dead_mirror_does_not_use_up_the_time_of_others, struct fixture *f)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int before = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd fd = { .fd = f->local.listener, .events = POLLIN };
	struct ps_control *dead, *well;
	uint64_t until;

	memcpy(at.sun_path, f->local.address.host, sizeof(at.sun_path));
	assert_int_equal(connect(before, (struct sockaddr *)&at, sizeof(at)), 0);
	dead = dial(f, &f->tcp);
	well = dial(f, &f->local);
	ask(f, dead, "s");
	ask(f, well, "s");
	assert_int_equal(f->ops->control_fd(well), -1);
	close(accept4(f->local.listener, NULL, NULL, SOCK_CLOEXEC));
	close(before);
	until = ps_monotonic() + SHORTLY;
	expect_failure(f, dead, until, PERSEAS_EUNREACHABLE, "in time");

	assert_int_equal(poll(&fd, 1, 0), 1);
	welcome(&f->local, PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION);
	hear_hello(&f->local);
	hear(&f->local, "s");
	reply_with(&f->local, "well", 0, NULL, 0);
	expect_reply(f, well, until, "well");
}

/* Sessions that are idle until their mirror goes away. The second is sent to before that. */
TEST(the_end_of_an_idle_connection_is_noticed, struct fixture *f)
{
	struct pollfd fd = { .events = POLLIN };

	for (int sends = 0; sends < 2; sends++) {
		struct ps_control *control = dial_and_ask(f, &f->local);

		reply_with(&f->local, "r", 0, NULL, 0);
		expect_reply(f, control, soon(), "r");
		hear_hello(&f->local);
		hear(&f->local, "s");
		fd.fd = f->ops->control_fd(control);
		assert_true(fd.fd >= 0);
		assert_false(f->ops->ended(control));
		assert_int_equal(poll(&fd, 1, 0), 0);
		close(f->local.fd);
		f->local.fd = -1;
		f->local.replied = 0;
		assert_int_equal(poll(&fd, 1, 600000), 1);
		/* No signal comes of sending to it. */
		for (int i = 0; i < 2 * sends; i++)
			ask(f, control, "s");
		assert_true(f->ops->ended(control));
		assert_int_equal(try_ask(f, control, "s"), PERSEAS_EUNREACHABLE);
		expect_failure(f, control, soon(), PERSEAS_EUNREACHABLE, "ended the connection");
		disconnect(f, control);
	}
}
