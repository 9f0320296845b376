/*
 * warm_rig.h - owners that do what a test asks, and standbys that keep a copy, for the tests of
 * copies that follow a store.
 */
#ifndef PERSEAS_TESTS_WARM_RIG_H
#define PERSEAS_TESTS_WARM_RIG_H

#include "standby_rig.h"

/* A quarter of the ring takes a transaction of PUT, and LAP of them fill more than the log. */
enum { PUT = 100 << 10, LAP = 200 };

/* Bursts have numbers from this one on, and fill more of the log than one look at it brings. */
enum { BURST = 1000, BURSTS = 24, IN_BURST = 12 };

/* What the test and its owner tell each other. */
static struct {
	_Atomic int asked, done;
} * between;

static int setup_between(void)
{
	between = mmap(NULL, sizeof(*between), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
	               -1, 0);
	return between == MAP_FAILED;
}

static int setup_warm_tcp(void **state)
{
	return setup_between() || setup_tcp(state);
}

static inline int setup_warm_shared(void **state)
{
	return setup_between() || setup_shared(state);
}

static int teardown_warm(void **state)
{
	munmap(between, sizeof(*between));
	return teardown_standby(state);
}

/* --- owners --- */

static int put_anywhere(struct rig *rig, uint64_t *state)
{
	const uint64_t at = unit_draw(state) % SIZE;
	const uint64_t most = SIZE - at < 6000 ? SIZE - at : 6000;

	return rig_put(rig, at, 1 + unit_draw(state) % most, (uint8_t)unit_draw(state));
}

/* Changes what it likes until it is killed. */
static int own_busily(struct rig *rig)
{
	uint64_t state = 1 + (uint64_t)getpid();

	if (rig_open(rig, 0, 0) || rig_map(rig))
		return 1;
	for (unsigned i = 0;; i++) {
		if (put_anywhere(rig, &state))
			return 2;
		if (i == 100)
			say_ready();
		if (i > 100 && i % 4 == 0)
			poll(NULL, 0, 1);
	}
}

/* Does, whenever it is asked, what the number says. */
static int own_and_obey(struct rig *rig)
{
	void *more;

	if (rig_open(rig, 0, 0) || rig_map(rig) || rig_put(rig, 0, 8, 42))
		return 1;
	say_ready();
	for (;;) {
		const int asked = between->asked;

		if (asked == between->done) {
			poll(NULL, 0, 1);
			continue;
		}
		for (unsigned i = 0; asked == LAP && i < LAP; i++)
			if (rig_put(rig, i % 8 * PUT, PUT, (uint8_t)i))
				return 2;
		for (unsigned i = 0; asked >= BURST && i < IN_BURST; i++)
			if (rig_put(rig, i % 8 * PUT, PUT, (uint8_t)(asked + i)))
				return 6;
		if (asked == 1 && rig_put(rig, 5000, 8, 77))
			return 3;
		if (asked == 2) {
			if (perseas_map(rig->p, "more", 70000, &more))
				return 4;
			memset(more, 9, 70000);
			if (perseas_publish(rig->p))
				return 5;
		}
		between->done = asked;
	}
}

static void ask(int what)
{
	between->asked = what;
	RIG_UNTIL(between->done == what);
}

/* --- standbys --- */

static perseas_standby_t *begin_warm(struct rig *rig, uint32_t recovery)
{
	struct perseas_options options = standby_options();

	options.warm = 1;
	options.recovery = recovery;
	return begin_with(STORE, rig->list, &options);
}

static bool is_warm(perseas_standby_t *s)
{
	const struct perseas_standby_stat stat = stat_of(s);

	return stat.memory && stat.warm == stat.memory;
}

/* The standby of a store that another process owns, once its copy has all of the memory. */
static perseas_standby_t *begin_warm_behind(struct rig *rig, int (*fn)(struct rig *rig))
{
	perseas_standby_t *s;

	start_owner(rig, fn);
	s = begin_warm(rig, PERSEAS_RECOVERY_ON_DEMAND);
	RIG_UNTIL(is_warm(s));
	return s;
}

static inline uint64_t drops_of(perseas_standby_t *s)
{
	struct ps_warm_thread_figures figures;

	ps_warm_thread_read_figures(s->warmth, &figures);
	return figures.drops;
}

/* It follows no more, and what it has stays. */
static void freeze(perseas_standby_t *s)
{
	pthread_mutex_lock(&s->warmth->lock);
	s->warmth->is_ending = true;
	pthread_mutex_unlock(&s->warmth->lock);
}

static void assert_used(struct rig *rig, bool used)
{
	const char *report = perseas_report(rig->p);

	if (!strstr(report, used ? "are in the standby's copy" : "standby's copy is not used"))
		fail_msg("%s", report);
}

static uint64_t fetched(struct rig *rig)
{
	assert_int_equal(perseas_wait_whole(rig->p, PATIENCE), 0);
	assert_int_equal(rig_stat(rig).missing, 0);
	return rig_stat(rig).fetched;
}

static void assert_as_made(const struct rig *rig, uint64_t from)
{
	for (uint64_t i = from; i < SIZE; i++)
		if (rig->bytes[i] != rig_byte(i))
			fail_msg("byte %llu is wrong", (unsigned long long)i);
}

/* The mirrors have the same: read by another open. */
static void assert_as_mirrors(struct rig *rig)
{
	uint8_t *bytes = malloc(SIZE);

	assert_non_null(bytes);
	memcpy(bytes, rig->bytes, SIZE);
	perseas_close(rig->p);
	assert_int_equal(rig_open(rig, 0, 0), 0);
	assert_int_equal(rig_map(rig), 0);
	for (uint64_t i = 0; i < SIZE; i++)
		if (bytes[i] != rig->bytes[i])
			fail_msg("byte %llu is not that of the mirrors", (unsigned long long)i);
	end_owner(rig);
	free(bytes);
}

static inline void close_and_compare(struct rig *rig)
{
	close_standby();
	assert_as_mirrors(rig);
}

/* Of a store of which the last owner changed one page more than the standby's copy has. */
static inline void become_owner_behind(struct rig *rig)
{
	perseas_standby_t *s = begin_warm_behind(rig, own_and_obey);

	freeze(s);
	ask(1);
	take_over(rig, s);
}

#endif
