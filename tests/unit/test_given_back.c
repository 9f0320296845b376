/*
 * test_given_back.c - the memory of files that nobody has any more is given back beside the loop.
 * The calls that can take long are put in the place of the C library's here: on the loop's thread,
 * or on another one while the loop stands still, they are noted.
 */
#include "../support/daemon_fixture.h"

#include "../../server/host/jobs.h"
#include "../support/unit.h"

#include <event2/event.h>
#include <sys/syscall.h>

enum { RING = 4 << 20, LARGE = 1 << 20, STEPS_MAX = 10000 };

static pthread_t loop;
static atomic_bool watching;
static atomic_uint steps;       /* of the loop */
static atomic_uint held, aside; /* calls that stopped it, and calls that did not */
static struct event *stepping;

/* Checks that the loop goes on while this thread does something. */
static void look_at_loop(void)
{
	const unsigned before = atomic_load(&steps);

	for (int i = 0; i < STEPS_MAX && !pthread_equal(pthread_self(), loop); i++) {
		if (atomic_load(&steps) != before) {
			atomic_fetch_add(&aside, 1);
			return;
		}
		poll(NULL, 0, 1);
	}
	atomic_fetch_add(&held, 1);
}

int munmap(void *base, size_t len)
{
	if (atomic_load(&watching) && len >= LARGE)
		look_at_loop();
	return (int)syscall(SYS_munmap, base, len);
}

/* For a file without a name: the process that closes it may be the last. */
int close(int fd)
{
	struct stat st;

	if (atomic_load(&watching) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_nlink == 0 && (uint64_t)st.st_blocks * 512 >= LARGE)
		look_at_loop();
	return (int)syscall(SYS_close, fd);
}

int ftruncate(int fd, off_t size)
{
	struct stat st;

	if (atomic_load(&watching) && fstat(fd, &st) == 0 && st.st_size >= size + LARGE)
		look_at_loop();
	return (int)syscall(SYS_ftruncate, fd, size);
}

static void count_step(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	atomic_fetch_add(&steps, 1);
}

static int setup(void **state)
{
	const struct timeval often = { .tv_usec = 1000 };
	struct fixture *fixture;
	int ret = fixture_setup(state);

	fixture = *state;
	fixture_bank(fixture);
	loop = pthread_self();
	stepping = event_new(fixture->daemon->base, -1, EV_PERSIST, count_step, NULL);
	event_add(stepping, &often);
	atomic_store(&held, 0);
	atomic_store(&aside, 0);
	atomic_store(&watching, true);
	return ret;
}

static int teardown(void **state)
{
	atomic_store(&watching, false);
	event_free(stepping);
	return fixture_teardown(state);
}

struct unit_fixture unit_fixture = { setup, teardown };

static uint64_t used(const struct fixture *fixture)
{
	return fixture->memory->ops->used(fixture->memory);
}

/* Steps the daemon until no more than so many bytes are taken. */
static void wait_for_used(struct fixture *fixture, uint64_t bytes)
{
	for (int i = 0; i < STEPS_MAX && used(fixture) > bytes; i++) {
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
		poll(NULL, 0, 1);
	}
	assert_int_equal(used(fixture), bytes);
}

static Perseas__Reply *answer(struct fixture *fixture, int fd)
{
	Perseas__Reply *reply = fixture_reply(fixture, fd);

	assert_int_equal(reply->status, STATUS(OK));
	return reply;
}

/* Begins a second image of the store, which stays unfinished. */
static void rebuild(struct fixture *fixture, int fd, uint64_t epoch, Perseas__Header *header)
{
	Perseas__RebuildRequest request = PERSEAS__REBUILD_REQUEST__INIT;
	uint8_t owner[PS_ID_SIZE] = { (uint8_t)epoch };

	request.epoch = epoch;
	request.owner = (ProtobufCBinaryData){ PS_ID_SIZE, owner };
	request.header = header;
	header->log_size = RING;
	fixture_ask(fd, PERSEAS__REQUEST__BODY_REBUILD, &request);
	fixture_done(answer(fixture, fd));
}

/* The store's next client waits until the memory is back. */
TEST(an_owner_that_dies_while_its_image_is_made_anew, struct fixture *fixture)
{
	const uint64_t before = used(fixture);
	int owner = fixture_tcp(fixture), next = fixture_tcp(fixture);
	Perseas__Reply *claimed = fixture_claim(fixture, owner, 1), *reply;

	rebuild(fixture, owner, 1, claimed->claim->header);
	fixture_done(claimed);
	assert_true(used(fixture) > before + RING);
	fixture_greet(fixture, next);
	close(owner);
	fixture_ask_claim(next, 2, false);
	reply = answer(fixture, next);
	assert_int_equal(used(fixture), before);
	rebuild(fixture, next, 2, reply->claim->header);
	fixture_done(reply);
	close(next);
	wait_for_used(fixture, before);
	assert_true(atomic_load(&aside) > 0);
	assert_int_equal(atomic_load(&held), 0);
}

/* An owner that had the memory is taken over, and its process ends later. */
TEST(a_replaced_image_that_a_process_had, struct fixture *fixture)
{
	int owner = fixture_unix(fixture), next = fixture_tcp(fixture), memory;
	uint64_t before;
	char path[128];
	Perseas__Reply *reply;

	fixture_greet(fixture, owner);
	fixture_ask_claim(owner, 1, true);
	fixture_done(answer(fixture, owner));
	before = used(fixture);
	snprintf(path, sizeof(path), "%s/memory/bank/log.1", fixture->directory);
	memory = open(path, O_RDWR);
	assert_true(memory >= 0);
	fixture_greet(fixture, next);
	fixture_ask_claim(next, 2, false);
	reply = answer(fixture, next);
	assert_true(reply->claim->copied);
	fixture_done(reply);
	assert_true(used(fixture) > before);
	syscall(SYS_close, memory);
	/* The list says how much is used. */
	fixture_ask_list(next);
	fixture_done(answer(fixture, next));
	wait_for_used(fixture, before);
	close(owner);
	close(next);
	assert_true(atomic_load(&aside) > 0);
	assert_int_equal(atomic_load(&held), 0);
}

/* Bytes that an owner put behind a piece are cut off. */
TEST(a_piece_that_was_made_longer, struct fixture *fixture)
{
	int owner = fixture_unix(fixture), next = fixture_tcp(fixture), memory;
	char path[128];

	fixture_greet(fixture, owner);
	fixture_ask_claim(owner, 1, true);
	fixture_done(answer(fixture, owner));
	snprintf(path, sizeof(path), "%s/memory/bank/log.1", fixture->directory);
	memory = open(path, O_RDWR);
	assert_int_equal(fallocate(memory, 0, 0, 8 << 20), 0);
	syscall(SYS_close, memory);
	close(owner);
	fixture_greet(fixture, next);
	fixture_ask_claim(next, 2, false);
	fixture_done(answer(fixture, next));
	memory = open(path, O_RDONLY);
	assert_true(lseek(memory, 0, SEEK_END) < 2 << 20);
	syscall(SYS_close, memory);
	close(next);
	assert_true(atomic_load(&aside) > 0);
	assert_int_equal(atomic_load(&held), 0);
}
