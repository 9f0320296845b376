/*
 * test_targets.c - the data paths of owners: data connections, and memory that is shared.
 */
#include "data_rig.h"

#include "../../proto/image/sigbus_guard.h"

#include <event2/event.h>

/* A daemon with the bank, whose data is carried by so many threads; 1: by the loop. */
static int setup_of(void **state, unsigned threads)
{
	fixture_threads = threads;
	if (fixture_setup(state))
		return -1;
	fixture_bank(*state);
	return 0;
}

static int setup(void **state)
{
	return setup_of(state, 1);
}

static int setup_threads(void **state)
{
	return setup_of(state, 3);
}

/* For tests that are run with the loop only. */
static int setup_loop(void **state)
{
	return setup(state);
}

struct unit_fixture unit_fixture = { setup, fixture_teardown };
struct unit_fixture unit_fixture_too = { setup_threads, fixture_teardown };

/* An owner writes and reads its image. */
TEST(a_data_connection_writes_and_reads_the_image, struct fixture *fixture)
{
	int control = fixture_tcp(fixture), data = fixture_tcp(fixture);
	struct request_frame frame;
	struct ps_answer answer;
	char text[5] = "";

	claim_data(fixture, control, data, 5);
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
TEST_WITH(a_commit_waits_for_one_of_the_others_at_most, setup_loop, fixture_teardown,
          struct fixture *fixture)
{
	void (*turns[])(evutil_socket_t, short, void *) = { on_first, on_second };
	int control = fixture_tcp(fixture), data = fixture_tcp(fixture);
	struct other others[2] = { { .data = data }, { .data = data } };
	struct event *events[2];

	claim_data(fixture, control, data, 5);
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
}

/* Tokens that never were, and of a session that a claim has ended. */
TEST(a_token_of_no_session_opens_nothing, struct fixture *fixture)
{
	int first = fixture_tcp(fixture), second = fixture_tcp(fixture), data;
	uint8_t token[PS_ID_SIZE] = { 0 };
	Perseas__Reply *reply;

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
}

/* An owner is fenced, another ends its control connection, a third opens a second data path. */
TEST(a_data_path_ends_with_its_session, struct fixture *fixture)
{
	int first = fixture_tcp(fixture), second = fixture_tcp(fixture);
	int old = fixture_tcp(fixture), again = fixture_tcp(fixture), data = fixture_tcp(fixture);
	Perseas__Reply *reply;

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
}

/* An owner asks for far more than it takes: 64 MiB, in reads of 32 KiB. */
TEST(reads_wait_for_their_reader, struct fixture *fixture)
{
	enum { READS = 2048, LENGTH = 32 << 10 };
	int control = fixture_tcp(fixture), data = fixture_tcp(fixture);
	static uint8_t bytes[LENGTH];
	struct request_frame *frames = calloc(READS, sizeof(*frames));

	claim_data(fixture, control, data, 5);
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
}

/* The length of the next reply, whose first bytes lie there still; signs of progress before it are
 * passed over. */
static uint32_t length_of_reply(struct fixture *fixture, int fd)
{
	static uint8_t bytes[8192];
	uint32_t len = 0;

	for (;;) {
		const char *text = NULL;
		Perseas__Reply *reply;
		ssize_t whole;
		bool working;

		do {
			fixture_wait(fixture, fd);
			assert_int_equal(recv(fd, &len, sizeof(len), MSG_PEEK), sizeof(len));
			assert_true(len <= sizeof(bytes) - sizeof(len));
			whole = (ssize_t)(len + sizeof(len));
		} while (recv(fd, bytes, (size_t)whole, MSG_PEEK) < whole);
		reply = ps_reply_unpack(bytes + sizeof(len), len, &text);
		assert_non_null(reply);
		working = reply->body_case == PERSEAS__REPLY__BODY_WORKING;
		fixture_done(reply);
		if (!working)
			return len;
		assert_true(fixture_receive(fixture, fd, bytes, len + sizeof(len)));
	}
}

/* Receives a reply and the descriptors that come with it. */
static Perseas__Reply *receive_fds(struct fixture *fixture, int fd, int *fds, unsigned *count)
{
	static uint8_t bytes[8192];
	struct iovec part = { bytes, length_of_reply(fixture, fd) + sizeof(uint32_t) };
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
	ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);

	assert_int_equal(n, part.iov_len);
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
TEST_WITH(shared_memory_is_the_image_itself, setup_loop, fixture_teardown, struct fixture *fixture)
{
	int fd = fixture_unix(fixture), tcp = fixture_tcp(fixture), fds[PS_REGIONS_MAX];
	Perseas__Reply *reply;
	unsigned count;
	uint8_t *log;

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
	assert_int_equal(*session_memory(stores_find_session(fixture->stores,
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
}

/* Takes a reply in with its descriptors, which stay open. */
static bool take_fds(int fd)
{
	uint8_t bytes[4096];
	struct iovec part = { bytes, sizeof(bytes) };
	char room[CMSG_SPACE(PS_REGIONS_MAX * sizeof(int))];
	struct msghdr message = { .msg_iov = &part,
		                  .msg_iovlen = 1,
		                  .msg_control = room,
		                  .msg_controllen = sizeof(room) };

	return recvmsg(fd, &message, 0) > 0 && message.msg_controllen > 0;
}

/* A process that claims shared memory and then does nothing more. With `forks` a child of it has
 * the memory too, for as long as nobody writes to *ready. */
static pid_t start_owner(struct fixture *fixture, uint64_t epoch, bool forks, int *ready)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };
		int fd = fixture_unix(fixture);
		char over;

		close(ends[0]);
		fixture_send(fd, &hello, sizeof(hello));
		if (recv(fd, &hello, sizeof(hello), MSG_WAITALL) != sizeof(hello))
			_exit(1);
		fixture_ask_claim(fd, epoch, true);
		if (!take_fds(fd) || (forks && fork() > 0) || write(ends[1], "x", 1) != 1)
			_exit(1);
		(void)!read(ends[1], &over, 1); /* until the other end is closed */
		_exit(0);
	}
	close(ends[1]);
	*ready = ends[0];
	return pid;
}

/* An owner with the memory is taken over while it lives, after kill -9, and after its end while a
 * child that it forked goes on: only the kernel knows of that one. */
TEST_WITH(only_memory_that_nobody_has_is_taken_in_place, setup_loop, fixture_teardown,
          struct fixture *fixture)
{
	enum { LIVES, KILLED, FORKED, CASES };

	for (int is = 0; is < CASES; is++) {
		int ready, fd = fixture_tcp(fixture);
		uint64_t epoch = 5 + 2 * (uint64_t)is;
		pid_t owner = start_owner(fixture, epoch, is == FORKED, &ready);
		Perseas__Reply *reply;

		fixture_wait(fixture, ready);
		if (is == KILLED)
			kill(owner, SIGKILL);
		if (is != LIVES)
			waitpid(owner, NULL, 0);
		reply = fixture_claim(fixture, fd, epoch + 1);
		close(ready);
		if (is == LIVES)
			waitpid(owner, NULL, 0);
		assert_int_equal(reply->claim->copied, is != KILLED);
		fixture_done(reply);
		close(fd);
	}
}

/* Claims the bank with the memory itself; the descriptor of its log. */
static int claim_log(struct fixture *fixture, int fd, uint64_t epoch)
{
	int fds[PS_REGIONS_MAX];
	Perseas__Reply *reply;
	unsigned count;

	fixture_greet(fixture, fd);
	fixture_ask_claim(fd, epoch, true);
	reply = receive_fds(fixture, fd, fds, &count);
	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(count, 2);
	fixture_done(reply);
	close(fds[1]);
	return fds[0];
}

static Perseas__Status ask_digest(struct fixture *fixture, int fd, const char *store)
{
	Perseas__DigestRequest digest = PERSEAS__DIGEST_REQUEST__INIT;
	Perseas__Status status;
	Perseas__Reply *reply;

	digest.store = (char *)store;
	digest.length = PS_RING_OFFSET + (1 << 20);
	fixture_ask(fd, PERSEAS__REQUEST__BODY_DIGEST, &digest);
	reply = fixture_reply(fixture, fd);
	status = reply->status;
	fixture_done(reply);
	return status;
}

/* An owner cuts the log short that it was given. What looks at it finds it damaged, the owner is
 * cut, and another store is served on; so it is at a view of all stores, as /metrics takes it. */
TEST(memory_that_is_cut_short_damages_its_store_alone, struct fixture *fixture)
{
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	const struct store_view *views;
	Perseas__Reply *reply;
	size_t count;

	ps_guard_reinstall_handler(); /* over the one of cmocka */
	fixture_make(fixture, "other");
	for (int viewed = 0; viewed < 2; viewed++) {
		int owner = fixture_unix(fixture), fd = fixture_tcp(fixture), log;

		if (viewed)
			fixture_make(fixture, "bank");
		log = claim_log(fixture, owner, 5);
		fixture_greet(fixture, fd);
		assert_int_equal(ask_digest(fixture, fd, "bank"), STATUS(OK));
		assert_int_equal(ftruncate(log, viewed ? 0 : PS_RING_OFFSET), 0);
		if (viewed) {
			daemon_lock(fixture->daemon);
			assert_int_equal(stores_view(fixture->stores, &views, &count), 0);
			daemon_unlock(fixture->daemon);
			assert_int_equal(count, 2);
			assert_string_equal(views[0].name, "bank");
			assert_non_null(strstr(views[0].damage, "cut short"));
		}
		assert_int_equal(ask_digest(fixture, fd, "bank"), STATUS(DAMAGED));
		assert_int_equal(ask_digest(fixture, fd, "other"), STATUS(OK));
		fixture_ask(owner, PERSEAS__REQUEST__BODY_CONFIRM, &confirm);
		reply = fixture_reply(fixture, owner);
		assert_int_equal(reply->status, STATUS(NO_SESSION));
		fixture_done(reply);
		close(log);
		close(owner);
		if (!viewed) {
			Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;

			drop.store = (char *)"bank";
			fixture_ask(fd, PERSEAS__REQUEST__BODY_DROP, &drop);
			reply = fixture_reply(fixture, fd);
			assert_int_equal(reply->status, STATUS(OK));
			fixture_done(reply);
		}
		close(fd);
	}
}

/* Asks for what is behind the head of the log: more than a Unix socket takes at once. */
static void ask_read(int fd)
{
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;

	read.store = (char *)(uintptr_t) "bank";
	read.region = PS_REGION_LOG;
	read.offset = PS_RING_OFFSET;
	read.length = PS_READ_REQUEST_MAX;
	fixture_ask(fd, PERSEAS__REQUEST__BODY_READ, &read);
}

/* The memory changes after the reply was begun, and before a slow peer takes the rest of it. A
 * quick one gets all of it at once. */
TEST(a_reply_is_of_the_time_of_its_request, struct fixture *fixture)
{
	int owner = fixture_unix(fixture), log, peer;
	Perseas__Reply *reply;
	uint8_t *memory;

	log = claim_log(fixture, owner, 5);
	memory = mmap(NULL, PS_RING_OFFSET + PS_READ_REQUEST_MAX, PROT_READ | PROT_WRITE,
	              MAP_SHARED, log, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	for (int slow = 0; slow < 2; slow++) {
		memset(memory + PS_RING_OFFSET, 1, PS_READ_REQUEST_MAX);
		peer = slow ? fixture_unix(fixture) : fixture_tcp(fixture);
		fixture_greet(fixture, peer);
		ask_read(peer);
		if (slow) {
			while (fixture->daemon->large_bytes == 0)
				event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
			memset(memory + PS_RING_OFFSET, 2, PS_READ_REQUEST_MAX);
		}
		reply = fixture_reply(fixture, peer);
		assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_READ);
		assert_int_equal(reply->read->bytes.len, PS_READ_REQUEST_MAX);
		for (unsigned i = 0; i < PS_READ_REQUEST_MAX; i++)
			assert_int_equal(reply->read->bytes.data[i], 1);
		fixture_done(reply);
		assert_int_equal(fixture->daemon->large_bytes, 0);
	}
	munmap(memory, PS_RING_OFFSET + PS_READ_REQUEST_MAX);
	close(log);
}

/* The memory is cut short within what is read, and for two kinds of sockets. Zeros are never sent
 * for it, and the next request is refused. */
TEST(what_is_read_of_torn_memory_is_not_sent, struct fixture *fixture)
{
	const uint64_t lengths[] = { PS_RING_OFFSET, PS_RING_OFFSET + PS_READ_REQUEST_MAX / 4,
		                     PS_RING_OFFSET + PS_READ_REQUEST_MAX - PS_PAGE };

	ps_guard_reinstall_handler();
	for (unsigned i = 0; i < 6; i++) {
		int owner = fixture_unix(fixture), log, peer;
		static uint8_t bytes[PS_READ_REQUEST_MAX + 4];
		Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;

		if (i > 0)
			fixture_bank(fixture);
		log = claim_log(fixture, owner, 5);
		peer = i % 2 ? fixture_unix(fixture) : fixture_tcp(fixture);
		fixture_greet(fixture, peer);
		assert_int_equal(ftruncate(log, (off_t)lengths[i / 2]), 0);
		ask_read(peer);
		assert_false(fixture_receive(fixture, peer, bytes, sizeof(bytes)));
		close(owner);
		peer = fixture_peer(fixture);
		ask_read(peer);
		assert_int_equal(fixture_status(fixture, peer), STATUS(DAMAGED));
		drop.store = (char *)(uintptr_t) "bank";
		fixture_ask(peer, PERSEAS__REQUEST__BODY_DROP, &drop);
		assert_int_equal(fixture_status(fixture, peer), STATUS(OK));
		close(log);
	}
}

/* The host's administrator cuts the log short under an owner over tcp. */
TEST(what_goes_to_torn_memory_is_not_acknowledged, struct fixture *fixture)
{
	int fd = fixture_tcp(fixture), data = fixture_tcp(fixture);
	struct request_frame write = frame_of(PS_OP_WRITE, PS_RING_OFFSET, 8, 1);
	struct ps_answer answer;
	char path[128];

	ps_guard_reinstall_handler();
	claim_data(fixture, fd, data, 5);
	for (int cut = 0; cut < 2; cut++) {
		fixture_send(data, &write, sizeof(write));
		fixture_send(data, "12345678", 8);
		assert_int_equal(fixture_receive(fixture, data, &answer, sizeof(answer)), !cut);
		snprintf(path, sizeof(path), "%s/memory/bank/log.1", fixture->directory);
		assert_int_equal(truncate(path, 0), 0);
	}
}

static void stop_daemon(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	daemon_stop(arg);
}

/* A daemon that spins has to see its timers, and to stop. */
TEST_WITH(a_daemon_that_spins_still_stops, setup_loop, fixture_teardown, struct fixture *fixture)
{
	const struct timeval soon = { .tv_usec = 20000 };
	struct event *timer = evtimer_new(fixture->daemon->base, stop_daemon, fixture->daemon);
	int control = fixture_tcp(fixture), data = fixture_tcp(fixture);
	struct request_frame frame = frame_of(PS_OP_READ, 0, 8, 1);
	struct ps_answer answer;

	claim_data(fixture, control, data, 5);
	fixture->daemon->spin_ns = 3600000000000u;
	fixture_send(data, &frame, sizeof(frame));
	event_add(timer, &soon);
	daemon_run(fixture->daemon);
	assert_int_equal(recv(data, &answer, sizeof(answer), MSG_DONTWAIT),
	                 (ssize_t)sizeof(answer));
	assert_int_equal(answer.length, 8);
	event_free(timer);
}
