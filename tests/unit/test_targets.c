/*
 * test_targets.c - the data paths of owners: data connections, and memory that is shared.
 */
#include "../support/daemon_fixture.h"

#include "../../proto/frame.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct ps_answer open_data(struct fixture *fixture, int fd, const uint8_t *token)
{
	struct ps_hello hello = { .magic = PS_DATA_MAGIC, .version = PS_PROTOCOL_VERSION };
	struct ps_answer answer;

	memcpy(hello.token, token, PS_ID_SIZE);
	fixture_send(fd, &hello, sizeof(hello));
	assert_true(fixture_receive(fixture, fd, &answer, sizeof(answer)));
	assert_int_equal(answer.op, PS_OP_HELLO);
	return answer;
}

struct request_frame {
	struct ps_frame frame;
	struct ps_extent extent;
};

static struct request_frame frame_of(enum ps_op op, uint64_t offset, uint32_t length,
                                     uint64_t cookie)
{
	struct request_frame frame = {
		.frame = { .op = (uint8_t)op, .count = 1, .cookie = cookie },
		.extent = { .region = PS_REGION_LOG, .length = length, .offset = offset },
	};

	if (op == PS_OP_WRITE)
		frame.frame.flags = PS_FRAME_SIGNALLED;
	return frame;
}

/* An owner writes and reads its image. */
static void a_data_connection_writes_and_reads_the_image(void **state)
{
	struct fixture *fixture = *state;
	int control = fixture_tcp(fixture), data = fixture_tcp(fixture);
	struct request_frame frame;
	struct ps_answer answer;
	Perseas__Reply *reply;
	char text[5] = "";

	fixture_bank(fixture);
	reply = fixture_claim(fixture, control, 5);
	answer = open_data(fixture, data, reply->claim->grant->token.data);
	assert_int_equal(answer.status, PS_ANSWER_OK);
	fixture_done(reply);
	frame = frame_of(PS_OP_WRITE, 5000, 5, 42);
	fixture_send(data, &frame, sizeof(frame));
	fixture_send(data, "hello", 5);
	assert_true(fixture_receive(fixture, data, &answer, sizeof(answer)));
	assert_int_equal(answer.status, PS_ANSWER_OK);
	assert_int_equal(answer.cookie, 42);
	frame = frame_of(PS_OP_READ, 5000, 5, 43);
	fixture_send(data, &frame, sizeof(frame));
	assert_true(fixture_receive(fixture, data, &answer, sizeof(answer)));
	assert_int_equal(answer.length, 5);
	assert_true(fixture_receive(fixture, data, text, 5));
	assert_memory_equal(text, "hello", 5);
	frame = frame_of(PS_OP_READ, (1 << 20) + PS_RING_OFFSET - 4, 5, 44);
	fixture_send(data, &frame, sizeof(frame));
	assert_true(fixture_receive(fixture, data, &answer, sizeof(answer)));
	assert_int_equal(answer.status, PS_ANSWER_BAD_FRAME);
	assert_true(fixture_ended(fixture, data));
	close(data);
	close(control);
}

/* Somebody else that the daemon has work for. */
struct other {
	int ends[2]; /* of a pipe; what is in it is the work */
	int data;    /* an owner's connection */
	bool before; /* the owner had its answer when this one's turn came */
};

/* In the middle of the first one's turn the owner commits. */
static void on_first(evutil_socket_t fd, short what, void *arg)
{
	struct other *other = arg;
	struct {
		struct request_frame frame;
		char byte;
	} __attribute__((packed)) write = { frame_of(PS_OP_WRITE, 5000, 1, 42), 'x' };
	char byte;

	(void)what;
	assert_int_equal(read(fd, &byte, 1), 1);
	fixture_send(other->data, &write, sizeof(write));
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct other *other = arg;
	char byte;

	(void)what;
	assert_int_equal(read(fd, &byte, 1), 1);
	other->before = recv(other->data, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* Both of the others were ready before the owner was. */
static void a_commit_waits_for_one_of_the_others_at_most(void **state)
{
	struct fixture *fixture = *state;
	void (*turns[])(evutil_socket_t, short, void *) = { on_first, on_second };
	int control = fixture_tcp(fixture), data = fixture_tcp(fixture);
	struct other others[2] = { { .data = data }, { .data = data } };
	struct event *events[2];
	Perseas__Reply *reply;

	fixture_bank(fixture);
	reply = fixture_claim(fixture, control, 5);
	assert_int_equal(open_data(fixture, data, reply->claim->grant->token.data).status,
	                 PS_ANSWER_OK);
	fixture_done(reply);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe(others[i].ends), 0);
		events[i] = event_new(fixture->daemon->base, others[i].ends[0],
		                      EV_READ | EV_PERSIST, turns[i], &others[i]);
		event_add(events[i], NULL);
		assert_int_equal(write(others[i].ends[1], "", 1), 1);
	}
	fixture_wait(fixture, data);
	event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	assert_true(others[1].before);
	for (int i = 0; i < 2; i++) {
		event_free(events[i]);
		close(others[i].ends[0]);
		close(others[i].ends[1]);
	}
	close(data);
	close(control);
}

/* Tokens that never were, and of a session that a claim has ended. */
static void a_token_of_no_session_opens_nothing(void **state)
{
	struct fixture *fixture = *state;
	int first = fixture_tcp(fixture), second = fixture_tcp(fixture), data;
	uint8_t token[PS_ID_SIZE] = { 0 };
	Perseas__Reply *reply;

	fixture_bank(fixture);
	data = fixture_tcp(fixture);
	assert_int_equal(open_data(fixture, data, token).status, PS_ANSWER_BAD_TOKEN);
	assert_true(fixture_ended(fixture, data));
	close(data);
	reply = fixture_claim(fixture, first, 5);
	memcpy(token, reply->claim->grant->token.data, PS_ID_SIZE);
	fixture_done(reply);
	fixture_done(fixture_claim(fixture, second, 6));
	data = fixture_tcp(fixture);
	assert_int_equal(open_data(fixture, data, token).status, PS_ANSWER_BAD_TOKEN);
	close(data);
	close(first);
	close(second);
}

/* An owner is fenced, another ends its control connection, a third opens a second data path. */
static void a_data_path_ends_with_its_session(void **state)
{
	struct fixture *fixture = *state;
	int first = fixture_tcp(fixture), second = fixture_tcp(fixture);
	int old = fixture_tcp(fixture), again = fixture_tcp(fixture), data = fixture_tcp(fixture);
	Perseas__Reply *reply;

	fixture_bank(fixture);
	reply = fixture_claim(fixture, first, 5);
	open_data(fixture, old, reply->claim->grant->token.data);
	assert_int_equal(open_data(fixture, again, reply->claim->grant->token.data).status,
	                 PS_ANSWER_OK);
	fixture_done(reply);
	assert_true(fixture_ended(fixture, old));
	reply = fixture_claim(fixture, second, 6);
	assert_true(fixture_ended(fixture, again));
	assert_int_equal(open_data(fixture, data, reply->claim->grant->token.data).status,
	                 PS_ANSWER_OK);
	fixture_done(reply);
	close(second);
	assert_true(fixture_ended(fixture, data));
	close(first);
	close(old);
	close(again);
	close(data);
}

/* An owner asks for far more than it takes: 64 MiB, in reads of 32 KiB. */
static void reads_wait_for_their_reader(void **state)
{
	enum { READS = 2048, LENGTH = 32 << 10 };
	struct fixture *fixture = *state;
	int control = fixture_tcp(fixture), data = fixture_tcp(fixture);
	static uint8_t bytes[LENGTH];
	struct request_frame *frames = calloc(READS, sizeof(*frames));
	Perseas__Reply *reply;

	fixture_bank(fixture);
	reply = fixture_claim(fixture, control, 5);
	open_data(fixture, data, reply->claim->grant->token.data);
	fixture_done(reply);
	for (unsigned i = 0; i < READS; i++)
		frames[i] = frame_of(PS_OP_READ, PS_RING_OFFSET, LENGTH, i);
	fixture_send(data, frames, READS * sizeof(*frames));
	free(frames);
	for (int i = 0; i < 100; i++)
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	for (unsigned i = 0; i < READS; i++) {
		struct ps_answer answer;

		assert_true(fixture_receive(fixture, data, &answer, sizeof(answer)));
		assert_int_equal(answer.cookie, i);
		assert_int_equal(answer.length, LENGTH);
		assert_true(fixture_receive(fixture, data, bytes, LENGTH));
	}
	close(data);
	close(control);
}

/* Receives a reply and the descriptors that come with it. */
static Perseas__Reply *receive_fds(struct fixture *fixture, int fd, int *fds, unsigned *count)
{
	static uint8_t bytes[8192];
	struct iovec part = { bytes, sizeof(bytes) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(PS_REGIONS_MAX * sizeof(int))];
	} control;
	struct msghdr message = { .msg_iov = &part,
		                  .msg_iovlen = 1,
		                  .msg_control = &control,
		                  .msg_controllen = sizeof(control) };
	const char *text = NULL;
	Perseas__Reply *reply;
	ssize_t n;

	fixture_wait(fixture, fd);
	n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	assert_true(n > 4);
	reply = ps_reply_unpack(bytes + 4, (size_t)n - 4, &text);
	assert_non_null(reply);
	*count = 0;
	if (message.msg_controllen > 0) {
		*count = (unsigned)((control.head.cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(&control.head), *count * sizeof(int));
	}
	return reply;
}

/* An owner on this host gets the memory itself. */
static void shared_memory_is_the_image_itself(void **state)
{
	struct fixture *fixture = *state;
	int fd = fixture_unix(fixture), tcp = fixture_tcp(fixture), fds[PS_REGIONS_MAX];
	Perseas__Reply *reply;
	unsigned count;
	uint8_t *log;

	fixture_bank(fixture);
	fixture_greet(fixture, fd);
	fixture_ask_claim(fd, 5, true);
	reply = receive_fds(fixture, fd, fds, &count);
	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(reply->claim->grant->descriptors, 2);
	assert_int_equal(count, 2);
	log = mmap(NULL, reply->claim->grant->regions[0]->length, PROT_READ | PROT_WRITE,
	           MAP_SHARED, fds[0], 0);
	assert_ptr_not_equal(log, MAP_FAILED);
	log[PS_RING_OFFSET] = 77;
	assert_int_equal(*session_memory(stores_session(fixture->stores,
	                                                reply->claim->grant->token.data),
	                                 PS_REGION_LOG, PS_RING_OFFSET, 1, false),
	                 77);
	assert_ptr_equal(mmap(NULL, PS_PAGE, PROT_WRITE, MAP_SHARED, fds[1], 0), MAP_FAILED);
	munmap(log, reply->claim->grant->regions[0]->length);
	close(fds[0]);
	close(fds[1]);
	fixture_done(reply);
	fixture_greet(fixture, tcp);
	fixture_ask_claim(tcp, 6, true);
	reply = fixture_reply(fixture, tcp);
	assert_int_equal(reply->status, STATUS(BAD_REQUEST));
	fixture_done(reply);
	close(tcp);
	close(fd);
}

/* A process that claims shared memory and then does nothing more. */
static pid_t start_owner(struct fixture *fixture, uint64_t epoch, int *ready)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };
		int fd = fixture_unix(fixture);
		uint8_t bytes[4096];

		close(ends[0]);
		fixture_send(fd, &hello, sizeof(hello));
		if (recv(fd, &hello, sizeof(hello), MSG_WAITALL) != sizeof(hello))
			_exit(1);
		fixture_ask_claim(fd, epoch, true);
		if (recv(fd, bytes, sizeof(bytes), 0) <= 0 || write(ends[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	*ready = ends[0];
	return pid;
}

/* An owner with the memory is taken over while it lives, and another after kill -9. */
static void only_a_dead_process_leaves_its_image_in_place(void **state)
{
	struct fixture *fixture = *state;

	fixture_bank(fixture);
	for (int killed = 0; killed < 2; killed++) {
		int ready, fd = fixture_tcp(fixture);
		uint64_t epoch = 5 + 2 * (uint64_t)killed;
		pid_t owner = start_owner(fixture, epoch, &ready);
		Perseas__Reply *reply;

		fixture_wait(fixture, ready);
		close(ready);
		if (killed) {
			kill(owner, SIGKILL);
			waitpid(owner, NULL, 0);
		}
		reply = fixture_claim(fixture, fd, epoch + 1);
		assert_int_equal(reply->claim->copied, !killed);
		fixture_done(reply);
		if (!killed) {
			kill(owner, SIGKILL);
			waitpid(owner, NULL, 0);
		}
		close(fd);
	}
}

static void stop_daemon(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	daemon_stop(arg);
}

/* A daemon that spins has to see its timers, and to stop. */
static void a_daemon_that_spins_still_stops(void **state)
{
	struct fixture *fixture = *state;
	const struct timeval soon = { .tv_usec = 20000 };
	struct event *timer = evtimer_new(fixture->daemon->base, stop_daemon, fixture->daemon);
	int control = fixture_tcp(fixture), data = fixture_tcp(fixture);
	struct request_frame frame = frame_of(PS_OP_READ, 0, 8, 1);
	struct ps_answer answer;
	Perseas__Reply *reply;

	fixture_bank(fixture);
	reply = fixture_claim(fixture, control, 5);
	open_data(fixture, data, reply->claim->grant->token.data);
	fixture_done(reply);
	fixture->daemon->spin_ns = 3600000000000u;
	fixture_send(data, &frame, sizeof(frame));
	event_add(timer, &soon);
	daemon_run(fixture->daemon);
	assert_int_equal(recv(data, &answer, sizeof(answer), MSG_DONTWAIT),
	                 (ssize_t)sizeof(answer));
	assert_int_equal(answer.length, 8);
	event_free(timer);
	close(data);
	close(control);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(a_data_connection_writes_and_reads_the_image),
		TEST(a_commit_waits_for_one_of_the_others_at_most),
		TEST(a_token_of_no_session_opens_nothing),
		TEST(a_data_path_ends_with_its_session),
		TEST(reads_wait_for_their_reader),
		TEST(shared_memory_is_the_image_itself),
		TEST(only_a_dead_process_leaves_its_image_in_place),
		TEST(a_daemon_that_spins_still_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
