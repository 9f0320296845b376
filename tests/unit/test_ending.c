/*
 * test_ending.c - a claim of an image that a process has which is about to end: the daemon waits
 * for that, and takes the image in place then; and does not wait for a process that goes on. The
 * processes are real ones, which a tracer keeps in their exit for as long as a test needs.
 */
#include "../support/daemon_fixture.h"

#include "../../proto/data/frame.h"
#include "../../server/loop/connection.h"
#include "../support/unit.h"

#include <event2/event.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

enum {
	RING = 4 << 20,      /* of an image that is made next to the old one */
	STEPS_MAX = 20000,   /* of a millisecond each at most */
	NEVER = 3600 * 1000, /* ms: no test waits so long */
	LONG = 5000,         /* ms */
	SHORT = 200,         /* ms: longer than BRIEF, and soon over where it is waited out */
	BRIEF = 2,           /* waits in 10 ms, at most */
};

static atomic_uint asked;  /* how often the kernel was asked whether a process is about to end */
static atomic_uint waits;  /* number of waits outside the loop */
static atomic_int answer;  /* the error that the kernel gives; 0: its own */
static atomic_bool stands; /* the memory of a second image is not given back */

int process_mrelease(int pidfd, unsigned flags)
{
	int ret = -1;

	if (atomic_load(&answer))
		errno = atomic_load(&answer);
	else
		ret = (int)syscall(SYS_process_mrelease, pidfd, flags);
	atomic_fetch_add(&asked, 1);
	return ret;
}

int poll(struct pollfd *fds, nfds_t count, int ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000L };

	if (ms > 0 && count > 0 && gettid() != getpid())
		atomic_fetch_add(&waits, 1);
	return ppoll(fds, count, ms < 0 ? NULL : &time, NULL);
}

static void rest(void)
{
	const struct timespec time = { 0, 1000000 };

	(void)ppoll(NULL, 0, &time, NULL);
}

int munmap(void *base, size_t len)
{
	while (len >= RING && atomic_load(&stands))
		rest();
	return (int)syscall(SYS_munmap, base, len);
}

/* The process that has the memory of the bank. */
static struct owner {
	pid_t pid;
	int told; /* what it says */
	int go;   /* closed: it goes on */
	int keep; /* closed: a child of it, which has the memory, ends */
} owner;

enum way { ENDS, LEAVES_A_CHILD, LOSES_ITS_FIRST_THREAD };

static int setup(void **state)
{
	const int ret = fixture_setup(state);
	struct fixture *fixture = *state;

	stores_set_holder_wait(fixture->stores, NEVER);
	fixture_bank(fixture);
	atomic_store(&asked, 0);
	atomic_store(&waits, 0);
	atomic_store(&answer, 0);
	return ret;
}

static int teardown(void **state)
{
	atomic_store(&stands, false);
	return fixture_teardown(state);
}

struct unit_fixture unit_fixture = { setup, teardown };
struct unit_fixture unit_group = { unit_limit_time, NULL };

/* --- the owner's process --- */

static void receive_or_end(int fd, void *bytes, size_t len)
{
	if (recv(fd, bytes, len, MSG_WAITALL) != (ssize_t)len)
		_exit(1);
}

/* Until the reply is there; what it says is not looked at. */
static void await_reply(int fd)
{
	uint8_t bytes[4096];
	uint32_t len;

	receive_or_end(fd, &len, sizeof(len));
	if (len > sizeof(bytes))
		_exit(1);
	receive_or_end(fd, bytes, len);
}

static void *stay(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void await_end_of(int pipe)
{
	char byte;

	while (read(pipe, &byte, 1) < 0)
		;
}

/* Takes the memory that a daemon would hand over, but by name. */
static void take_memory(struct fixture *fixture)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/memory/bank/log.1", fixture->directory);
	if (open(path, O_RDWR) < 0)
		_exit(1);
}

static void own(struct fixture *fixture, enum way way, uint64_t epoch, const int told[2],
                const int go[2], const int keep[2])
{
	struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };
	int fd = fixture_unix(fixture);
	pthread_t thread;

	close(told[0]);
	close(go[1]);
	close(keep[1]);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP))
		_exit(1);
	fixture_send(fd, &hello, sizeof(hello));
	receive_or_end(fd, &hello, sizeof(hello));
	fixture_ask_claim(fd, epoch, true);
	await_reply(fd);
	take_memory(fixture);
	if (way == LEAVES_A_CHILD && fork() == 0) {
		await_end_of(keep[0]);
		_exit(0);
	}
	if (way == LOSES_ITS_FIRST_THREAD && pthread_create(&thread, NULL, stay, NULL))
		_exit(1);
	if (write(told[1], &fd, sizeof(fd)) < 0)
		_exit(1);
	await_end_of(go[0]);
	if (way == LOSES_ITS_FIRST_THREAD)
		syscall(SYS_exit, 0);
	_exit(0);
}

/* --- and the test's --- */

static uint64_t promised(struct fixture *fixture)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	struct why why;

	assert_int_equal(store_status(fixture->stores, "bank", &status, &why), 0);
	return status.header->promised_epoch;
}

static void wait_for_stop(int expected)
{
	int how;

	assert_int_equal(waitpid(owner.pid, &how, __WALL), owner.pid);
	assert_true(WIFSTOPPED(how) && how >> 8 == expected);
}

/* Begins a process that claims the bank, and has its memory; gives the number of its connection
 * there. */
static int owner_begin(struct fixture *fixture, enum way way)
{
	const uint64_t epoch = promised(fixture) + 1;
	int told[2], go[2], keep[2], connection = -1;

	assert_int_equal(pipe(told) | pipe(go) | pipe(keep), 0);
	owner.pid = fork();
	if (owner.pid == 0)
		own(fixture, way, epoch, told, go, keep);
	assert_true(owner.pid > 0);
	close(told[1]);
	close(go[0]);
	close(keep[0]);
	owner = (struct owner){ owner.pid, told[0], go[1], keep[1] };
	wait_for_stop(SIGSTOP);
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, owner.pid, NULL,
	                        PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL),
	                 0);
	assert_int_equal(ptrace(PTRACE_CONT, owner.pid, NULL, NULL), 0);
	fixture_wait(fixture, owner.told);
	return read(owner.told, &connection, sizeof(connection)) < 0 ? -1 : connection;
}

/* Stops the owner at the beginning of its exit, when it still has everything. */
static void owner_end(void)
{
	close(owner.go);
	wait_for_stop(SIGTRAP | PTRACE_EVENT_EXIT << 8);
}

/* Lets the owner end at some time. */
static void owner_let_go(void)
{
	assert_int_equal(ptrace(PTRACE_DETACH, owner.pid, NULL, NULL), 0);
}

static void owner_bury(void)
{
	assert_int_equal(waitpid(owner.pid, NULL, __WALL), owner.pid);
	close(owner.told);
	close(owner.keep);
}

/* Lets the owner end, and waits for it. */
static void owner_let_end(void)
{
	owner_let_go();
	owner_bury();
}

static void step(struct fixture *fixture)
{
	event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	rest();
}

/* Steps the daemon until the kernel was asked so often. */
static void wait_until_asked(struct fixture *fixture, unsigned times)
{
	for (int i = 0; i < STEPS_MAX && atomic_load(&asked) < times; i++)
		step(fixture);
	assert_int_equal(atomic_load(&asked), times);
}

static int begin_claim(struct fixture *fixture, uint64_t epoch)
{
	const int fd = fixture_peer(fixture);

	fixture_ask_claim(fd, epoch, false);
	return fd;
}

/* Ends the session of a granted claim. Returns true if the image was copied away for the claim. */
static bool end_claim(struct fixture *fixture, int fd)
{
	Perseas__Reply *reply = fixture_reply(fixture, fd);
	bool copied;

	assert_int_equal(reply->status, STATUS(OK));
	copied = reply->claim->copied;
	assert_int_equal(reply->claim->header->generation, copied ? 2 : 1);
	fixture_done(reply);
	close(fd);
	return copied;
}

/* An owner is in its exit from now on, and a claim waits for it; gives the claim's connection. */
static int begin_both(struct fixture *fixture, enum way way)
{
	int next;

	owner_begin(fixture, way);
	owner_end();
	next = begin_claim(fixture, 2);
	wait_until_asked(fixture, 1);
	return next;
}

/* Lets the owner end, which ends the claim's wait. Returns true if the image was copied away for
 * the claim. */
static bool end_both(struct fixture *fixture, int fd)
{
	bool copied;

	owner_let_go();
	copied = end_claim(fixture, fd);
	owner_bury();
	return copied;
}

/* However far the kernel is with its memory. */
TEST(an_owner_that_is_about_to_end_is_waited_for, struct fixture *fixture)
{
	static const int answers[] = { 0, ESRCH, EAGAIN };
	int next;
	unsigned before;

	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		owner_begin(fixture, ENDS);
		owner_end();
		atomic_store(&answer, answers[i]);
		before = atomic_load(&waits);
		next = begin_claim(fixture, promised(fixture) + 1);
		wait_until_asked(fixture, i + 1);
		while (jobs_count(fixture->daemon->jobs) > 0 &&
		       atomic_load(&waits) <= before + BRIEF)
			step(fixture);
		assert_false(end_both(fixture, next));
	}
}

/* Two claim it meanwhile, and others look. */
TEST(others_are_served_while_an_end_is_waited_for, struct fixture *fixture)
{
	const int other = fixture_peer(fixture);
	int next, last;

	next = begin_both(fixture, ENDS);
	last = begin_claim(fixture, 3);
	fixture_ask_list(other);
	fixture_take_list(fixture, other);
	assert_int_equal(promised(fixture), 1);
	owner_let_go();
	assert_false(end_claim(fixture, next));
	assert_false(end_claim(fixture, last));
	assert_int_equal(atomic_load(&asked), 1);
	owner_bury();
}

/* The owner ends, and a child of it has the memory. */
TEST(memory_that_outlives_its_owner_is_copied_away, struct fixture *fixture)
{
	const int next = begin_both(fixture, LEAVES_A_CHILD);

	assert_true(end_both(fixture, next));
}

/* The bank is claimed from this process, which has its memory and keeps it. It is killed then. */
static void expect_a_copy_at_once(struct fixture *fixture)
{
	const int next = begin_claim(fixture, 2);
	int how;

	assert_true(end_claim(fixture, next));
	assert_int_equal(atomic_load(&waits), 0);
	assert_int_equal(atomic_load(&asked), 1);
	kill(owner.pid, SIGKILL);
	while (waitpid(owner.pid, &how, __WALL) == owner.pid && WIFSTOPPED(how))
		owner_let_go();
	close(owner.told);
	close(owner.keep);
}

TEST(an_owner_that_goes_on_is_not_waited_for, struct fixture *fixture)
{
	stores_set_holder_wait(fixture->stores, SHORT);
	owner_begin(fixture, ENDS);
	expect_a_copy_at_once(fixture);
	close(owner.go);
}

TEST(an_owner_that_is_stopped_is_not_waited_for, struct fixture *fixture)
{
	stores_set_holder_wait(fixture->stores, SHORT);
	owner_begin(fixture, ENDS);
	assert_int_equal(kill(owner.pid, SIGSTOP), 0);
	wait_for_stop(SIGSTOP);
	expect_a_copy_at_once(fixture);
	close(owner.go);
}

/* Other threads go on, and may write. */
TEST(an_owner_whose_first_thread_has_ended_is_not_waited_for, struct fixture *fixture)
{
	stores_set_holder_wait(fixture->stores, SHORT);
	owner_begin(fixture, LOSES_ITS_FIRST_THREAD);
	owner_end();
	owner_let_go();
	expect_a_copy_at_once(fixture);
}

/* Nothing is known of the owner, as where a filter of system calls forbids it. */
TEST(an_owner_of_which_nothing_is_known_is_not_waited_for_long, struct fixture *fixture)
{
	int next;

	stores_set_holder_wait(fixture->stores, SHORT);
	owner_begin(fixture, ENDS);
	owner_end();
	atomic_store(&answer, EPERM);
	next = begin_claim(fixture, 2);
	assert_true(end_claim(fixture, next));
	assert_true(atomic_load(&waits) <= BRIEF);
	owner_let_end();
}

/* A process that never ends costs its patience once: the next claim does not wait for it. */
TEST(an_owner_that_never_ends_is_not_waited_for_again, struct fixture *fixture)
{
	int next;

	stores_set_holder_wait(fixture->stores, 1);
	owner_begin(fixture, ENDS);
	owner_end();
	next = begin_claim(fixture, 2);
	assert_true(end_claim(fixture, next));
	owner_let_end();
}

static void wait_for_jobs(struct fixture *fixture)
{
	for (int i = 0; i < STEPS_MAX && jobs_count(fixture->daemon->jobs) > 0; i++)
		step(fixture);
	assert_int_equal(jobs_count(fixture->daemon->jobs), 0);
}

static bool has_gone(const struct fixture *fixture)
{
	for (struct connection *at = fixture->daemon->connections; at; at = at->next)
		if (at->close_after_job)
			return true;
	return false;
}

/* Nothing of its claim has happened then. */
TEST(whoever_claims_may_leave_meanwhile, struct fixture *fixture)
{
	unsigned before;
	int next;

	stores_set_holder_wait(fixture->stores, LONG);
	next = begin_both(fixture, ENDS);
	close(next);
	for (int i = 0; i < STEPS_MAX && !has_gone(fixture); i++)
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	before = atomic_load(&waits);
	wait_for_jobs(fixture);
	assert_true(atomic_load(&waits) <= before + 1);
	assert_int_equal(promised(fixture), 1);
	next = begin_claim(fixture, 3);
	wait_until_asked(fixture, 2);
	assert_false(end_both(fixture, next));
}

TEST(the_daemon_may_end_meanwhile, struct fixture *fixture)
{
	stores_set_holder_wait(fixture->stores, LONG);
	begin_both(fixture, ENDS);
	daemon_lock(fixture->daemon);
	connections_close(fixture->daemon);
	daemon_unlock(fixture->daemon);
	assert_int_equal(promised(fixture), 1);
	owner_let_end();
}

/* --- a second image that is given up during the wait --- */

/* In the place of the owner's process, over its connection. */
static void rebuild(struct fixture *fixture, int fd)
{
	Perseas__RebuildRequest request = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	uint8_t id[PS_ID_SIZE] = { 1 };
	Perseas__Header header;
	struct why why;

	assert_int_equal(store_status(fixture->stores, "bank", &status, &why), 0);
	header = *status.header;
	header.log_size = RING;
	request.epoch = 1;
	request.owner = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	request.header = &header;
	fixture_ask(fd, PERSEAS__REQUEST__BODY_REBUILD, &request);
	assert_int_equal(fixture_status(fixture, fd), STATUS(OK));
}

static bool has_piece(const struct fixture *fixture, const char *piece)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/memory/bank/%s", fixture->directory, piece);
	return stat(path, &st) == 0;
}

/* The session ends while the claim waits for its process, which leaves the memory to a child. The
 * second image is being given back when the copy is made, and must not be copied. */
TEST(an_image_beside_takes_no_copy_along, struct fixture *fixture)
{
	const int theirs = owner_begin(fixture, LEAVES_A_CHILD);
	const int pidfd = pidfd_open(owner.pid, 0), fd = pidfd_getfd(pidfd, theirs, 0);
	Perseas__Reply *reply;
	int next;

	assert_true(fd >= 0);
	rebuild(fixture, fd);
	assert_true(has_piece(fixture, "log.2"));
	owner_end();
	next = begin_claim(fixture, 2);
	wait_until_asked(fixture, 1);
	atomic_store(&stands, true);
	shutdown(fd, SHUT_RDWR);
	for (int i = 0; i < STEPS_MAX && !stores_are_freeing(fixture->stores, "bank"); i++)
		step(fixture);
	owner_let_go();
	reply = fixture_reply(fixture, next);
	assert_int_equal(reply->status, STATUS(OK));
	assert_true(reply->claim->copied);
	assert_int_equal(reply->claim->header->generation, 3);
	fixture_done(reply);
	assert_true(stores_are_freeing(fixture->stores, "bank"));
	atomic_store(&stands, false);
	wait_for_jobs(fixture);
	assert_false(has_piece(fixture, "log.2"));
	assert_true(has_piece(fixture, "log.3") && has_piece(fixture, "promise.3"));
	owner_bury();
	close(pidfd);
	close(fd);
}
