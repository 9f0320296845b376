/*
 * test_every_second.c - what the daemon's loop looks after by itself while it serves: the files of
 * images keep their names (names_loop.c) and their sizes (excess_loop.c).
 */
#include "../support/daemon_fixture.h"
#include "../support/unit.h"

#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS_MAX = 10000 }; /* of a millisecond each at least */

/* Returns the path of a file of the bank's image. */
static const char *path_of(const struct fixture *fixture, const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/memory/bank/%s", fixture->directory, name);
	return path;
}

/* Returns -1 if there is no such file. */
static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? -1 : st.st_size;
}

static void step(struct fixture *fixture)
{
	event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	poll(NULL, 0, 1);
}

/* Until the file has this size, and what the daemon did for that is over. */
static void step_until_size(struct fixture *fixture, const char *path, off_t size)
{
	for (unsigned i = 0; size_of(path) != size || fixture->daemon->exclusive_job; i++) {
		assert_true(i < STEPS_MAX);
		step(fixture);
	}
}

/* Nothing but the checks of names counts as an event here, since there are no connections. */
static void step_until_check(struct fixture *fixture)
{
	const uint64_t before = fixture->daemon->last_non_owner_event_ns;

	for (unsigned i = 0; fixture->daemon->last_non_owner_event_ns == before; i++) {
		assert_true(i < STEPS_MAX);
		step(fixture);
	}
}

static void serve_bank(struct fixture *fixture)
{
	fixture->daemon->phase = DAEMON_SERVING;
	fixture_bank(fixture);
}

/* The daemon has looked at the files before, so only the kernel's report makes it look again. */
TEST_WITH(files_that_are_removed_are_made_again, fixture_setup, fixture_teardown,
          struct fixture *fixture)
{
	const char *path = path_of(fixture, "header");
	off_t size;

	serve_bank(fixture);
	size = size_of(path);
	names_loop_open(fixture->daemon);
	step_until_check(fixture);
	assert_int_equal(unlink(path), 0);
	step_until_size(fixture, path, size);
}

/* The owner takes memory again after the daemon has taken it back. */
TEST_WITH(files_that_owners_lengthen_are_cut, fixture_setup, fixture_teardown,
          struct fixture *fixture)
{
	const char *path = path_of(fixture, "log.1");
	int fd = fixture_unix(fixture), log;
	off_t size;

	serve_bank(fixture);
	fixture_greet(fixture, fd);
	fixture_ask_claim(fd, 1, true);
	assert_int_equal(fixture_status(fixture, fd), STATUS(OK));
	log = open(path, O_RDWR | O_CLOEXEC);
	size = size_of(path);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(fallocate(log, 0, size, 1 << 20), 0);
		step_until_size(fixture, path, size);
	}
	close(log);
}
