/*
 * test_every_second.c - what the daemon's loop looks after by itself while it serves: the files of
 * images keep their names (names_loop.c) and their sizes (excess_loop.c).
 */
#include "../../server/host/pause.h"
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

/* Files of the image go twice. The check that finds the first repair over begins the pause before
 * the second one: a repair that begins in the same step comes too early, unless the step itself
 * took as long as the pause. Only checks count as events, since the kernel reports no changes. */
TEST_WITH(an_image_is_made_again_after_a_pause, fixture_setup, fixture_teardown,
          struct fixture *fixture)
{
	static struct memory_ops ops; /* outlives a test that fails */
	uint64_t checked_ns, step_ns;
	off_t size;

	ops = *fixture->memory->ops;
	ops.watch_names = NULL;
	ops.read_changes = NULL;
	fixture->memory->ops = &ops;
	serve_bank(fixture);
	size = size_of(path_of(fixture, "log.1"));
	names_loop_open(fixture->daemon);
	assert_int_equal(unlink(path_of(fixture, "log.1")), 0);
	step_until_size(fixture, path_of(fixture, "log.2"), size);
	assert_int_equal(unlink(path_of(fixture, "log.2")), 0);
	checked_ns = fixture->daemon->last_non_owner_event_ns;
	do {
		step_ns = daemon_now_ns();
		step(fixture);
	} while (fixture->daemon->last_non_owner_event_ns == checked_ns);
	if (daemon_now_ns() - step_ns < PAUSE_LEAST_MS * 1000000ull) {
		assert_null(fixture->daemon->exclusive_job);
		assert_int_equal(size_of(path_of(fixture, "log.3")), -1);
	}
	step_until_size(fixture, path_of(fixture, "log.3"), size);
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
