/*
 * standby_rig.h - what the tests of standbys share: owners that are other processes, and how a
 * standby stands.
 */
#ifndef PERSEAS_TESTS_STANDBY_RIG_H
#define PERSEAS_TESTS_STANDBY_RIG_H

#include "demand_rig.h"

#include "../../client/standby/standby.h"

#include <poll.h>

enum { SHORT_MS = 30, READY = 'r' };

static inline int setup_tcp(void **state)
{
	return rig_setup(state, false);
}

static inline int setup_shared(void **state)
{
	return rig_setup(state, true);
}

static inline void options_begin(struct perseas_options *options)
{
	*options = (struct perseas_options)PERSEAS_OPTIONS_INIT;
	options->ring_size = 1 << 20;
	options->connect_timeout_ms = 2000;
}

static inline perseas_standby_t *begin_as(struct rig *rig, uint32_t flags, uint32_t order)
{
	struct perseas_options options;
	perseas_standby_t *s;

	options_begin(&options);
	options.flags = flags;
	options.order = order;
	assert_int_equal(perseas_standby(STORE, rig->list, &options, &s), 0);
	return s;
}

static inline perseas_standby_t *begin(struct rig *rig)
{
	return begin_as(rig, 0, 0);
}

/* The rig's handle is what the standby gives. */
static inline void become_owner(struct rig *rig, perseas_standby_t *s)
{
	int rc = perseas_standby_wait(s, -1, &rig->p);

	if (rc)
		print_message("%s\n", perseas_message(NULL));
	assert_int_equal(rc, 0);
	assert_int_equal(rig_map(rig), 0);
}

static inline void end_owner(struct rig *rig)
{
	perseas_close(rig->p);
	rig->p = NULL;
}

/* --- others --- */

/* A process that runs this, and says that it is ready: what it returns is its status. */
static inline pid_t start_process(struct rig *rig, int (*fn)(struct rig *rig, int ready))
{
	int ends[2];
	char said = 0;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fn(rig, ends[1]));
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &said, 1), 1);
	assert_int_equal(said, READY);
	close(ends[0]);
	return pid;
}

static inline void say_ready(int ready)
{
	const char said = READY;

	(void)!write(ready, &said, 1);
}

/* Owns the store until it is killed. */
static inline int own(struct rig *rig, int ready)
{
	if (rig_open(rig, 0, 0) || rig_map(rig) || rig_put(rig, 0, 8, 42))
		return 1;
	say_ready(ready);
	for (;;)
		pause();
}

/* The same, by a standby. */
static inline int own_in_turn(struct rig *rig, int ready)
{
	perseas_standby_t *s;
	struct perseas_options options;
	struct perseas_standby_stat stat = { 0 };

	options_begin(&options);
	if (perseas_standby(STORE, rig->list, &options, &s))
		return 1;
	while (stat.state != PERSEAS_STANDBY_OWNED)
		if (perseas_standby_wait(s, 1, &rig->p) != PERSEAS_ETIMEOUT ||
		    perseas_standby_stat(s, &stat))
			return 2;
	say_ready(ready);
	if (perseas_standby_wait(s, -1, &rig->p) || rig_map(rig))
		return 3;
	/* One at a time has the store: each adds one. */
	if (rig_put(rig, 0, 1, (uint8_t)(rig->bytes[0] + 1)))
		return 4;
	perseas_close(rig->p);
	return perseas_standby_close(s);
}

static inline void kill_process(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static inline int status_of_process(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* --- how it stands --- */

static inline struct perseas_standby_stat stat_of(perseas_standby_t *s)
{
	struct perseas_standby_stat stat;

	assert_int_equal(perseas_standby_stat(s, &stat), 0);
	return stat;
}

static inline void await_state(perseas_standby_t *s, int state)
{
	RIG_UNTIL(stat_of(s).state == state);
}

static inline bool can_read(perseas_standby_t *s, int for_ms)
{
	struct pollfd fd = { .fd = perseas_standby_fd(s), .events = POLLIN };

	return poll(&fd, 1, for_ms) == 1;
}

#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

#endif
