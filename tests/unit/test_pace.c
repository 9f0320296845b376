/*
 * test_pace.c - mirrors that cannot keep up with an owner that never pauses: commits wait for them
 * a bounded while, so that they are not lost although W others are enough.
 */
#include "resync_rig.h"

enum { COMMITS = 600, LENGTH = 3000 }; /* some laps of the ring */

static unsigned told;

static void note(void *arg, const struct perseas_event *event)
{
	(void)arg;
	told += event->kind == PERSEAS_EVENT_MIRROR_LAGS;
}

/* Sets up two mirrors with W = 1. */
static int setup_paced(void **state, uint32_t pace_ms)
{
	struct fixture *f;

	setup_lone_acks(state);
	f = *state;
	f->o->options.pace_ms = pace_ms;
	f->o->options.on_event = note;
	told = 0;
	owner_reopen(f->o);
	map_big(f);
	return 0;
}

static int setup_default(void **state)
{
	return setup_paced(state, 0);
}

struct unit_fixture unit_fixture = { setup_default, teardown };

static int setup_off(void **state)
{
	return setup_paced(state, UINT32_MAX);
}

/* While a commit waits, the slow mirror takes a little. */
static void take_some(void *arg)
{
	direct_release(arg, 1, 3);
}

static void slow_down(struct fixture *f, bool goes_on)
{
	f->o->d->mirrors[1].hold = DIRECT_HOLD_WRITES;
	f->o->d->on_pause = goes_on ? take_some : NULL;
	f->o->d->on_pause_arg = f->o->d;
}

static void recover(struct fixture *f)
{
	f->o->d->mirrors[1].hold = DIRECT_HOLD_NOTHING;
	f->o->d->on_pause = NULL;
	direct_release(f->o->d, 1, 10000);
}

static void commit_without_pause(struct fixture *f)
{
	for (unsigned i = 0; i < COMMITS; i++)
		assert_int_equal(put_big(f, i * 100, LENGTH, (uint8_t)i), 0);
}

/* The mirror is slower than the owner, and live all the time; status says so. */
TEST(test_a_slow_mirror_is_kept, struct fixture *f)
{
	struct perseas_mirror_stat stat;

	slow_down(f, true);
	commit_without_pause(f);
	assert_int_equal(owner_stat(f->o).dropped, 0);
	assert_true(owner_stat(f->o).paced > 0 && owner_stat(f->o).paced_ns > 0);
	assert_int_equal(perseas_mirror_stat(f->o->p, 1, &stat), 0);
	assert_int_equal(stat.state, PERSEAS_MIRROR_LIVE);
	assert_non_null(strstr(stat.trouble, "cannot keep up"));
	direct_keep(f->o->d, f->o->p);
	assert_int_equal(told, 1);
	recover(f);
	assert_catches_up(f, 1);
	direct_keep(f->o->d, f->o->p);
	assert_int_equal(perseas_mirror_stat(f->o->p, 1, &stat), 0);
	assert_string_equal(stat.trouble, "");
}

/* An owner that does not want to wait is not held up, and the mirror is dropped. */
TEST_WITH(test_without_pacing_it_is_dropped, setup_off, teardown, struct fixture *f)
{
	slow_down(f, true);
	commit_without_pause(f);
	assert_true(owner_stat(f->o).dropped > 0);
	assert_int_equal(owner_stat(f->o).paced, 0);
	recover(f);
	assert_catches_up(f, 1);
}

/* A mirror that takes nothing any more holds up one commit, once, for no longer than the limit. */
TEST(test_a_dead_mirror_stops_no_commits, struct fixture *f)
{
	const uint64_t start = f->o->d->now;
	const uint64_t most = (uint64_t)f->o->p->options.pace_ms * 1000000;

	slow_down(f, false);
	commit_without_pause(f);
	assert_int_equal(owner_stat(f->o).dropped, 1);
	assert_int_equal(owner_stat(f->o).paced, 1);
	assert_true(owner_stat(f->o).paced_ns >= most);
	assert_true(f->o->d->now - start < most + most / 2);
	recover(f);
	assert_catches_up(f, 1);
}

/* The other one is gone, so that W need it: it is not dropped, however long it takes nothing. */
TEST(test_a_mirror_that_is_needed_is_not_dropped, struct fixture *f)
{
	const struct perseas *p = f->o->p;

	slow_down(f, false);
	while (ps_ring_bytes_from_entry(&p->commit.ring, p->mirrors[1].acked_seq + 1) + 2 * LENGTH <
	       p->commit.ring.size / 2)
		assert_int_equal(put_big(f, 0, LENGTH, 1), 0);
	direct_crash(f->o->d, 0);
	direct_keep(f->o->d, f->o->p);
	assert_int_equal(owner_state(f->o, 0), PERSEAS_MIRROR_DOWN);
	assert_int_equal(put_big(f, 0, 4 * LENGTH, 2), PERSEAS_EBLOCKED);
	assert_int_equal(owner_stat(f->o).dropped, 0);
	assert_int_equal(owner_state(f->o, 1), PERSEAS_MIRROR_LIVE);
	recover(f);
	assert_int_equal(put_big(f, 0, 4 * LENGTH, 2), 0);
}

/* The mirror is being copied whole and cannot keep up with the transactions sent meanwhile: it
 * becomes live all the same. */
TEST(test_a_slow_mirror_is_copied_whole, struct fixture *f)
{
	struct owner *o = f->o;

	make_stale(f, 1);
	slow_down(f, true);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	for (unsigned rounds = 0; owner_state(o, 1) != PERSEAS_MIRROR_LIVE; rounds++) {
		assert_true(rounds < ROUNDS / 10);
		for (unsigned i = 0; i < 50; i++)
			assert_int_equal(put_big(f, rounds * 100 + i, LENGTH, (uint8_t)i), 0);
		direct_keep(o->d, o->p);
	}
	assert_int_equal(owner_stat(o).dropped, 0);
	assert_int_equal(owner_stat(o).resyncs, 1);
	recover(f);
	assert_catches_up(f, 1);
}

static struct ps_env_ops two_fabrics;
static struct ps_fabric better;
static const struct ps_fabric *other;

static struct ps_link *test_nothing(struct ps_env *env, const struct ps_address *address,
                                    const Perseas__Grant *grant, struct ps_error *error)
{
	(void)env;
	(void)address;
	(void)grant;
	(void)error;
	return NULL;
}

static const struct ps_fabric *find_fabric(struct ps_env *env, const struct ps_address *address,
                                           const Perseas__Grant *grant, unsigned tried)
{
	(void)env;
	(void)address;
	(void)grant;
	if (tried > 1)
		return NULL;
	return tried ? other : &better;
}

/* From the next link on, mirrors are reached over `better` first, and then over `other`. */
static void offer_two_fabrics(struct fixture *f)
{
	struct perseas *p = f->o->p;

	other = p->mirrors[1].fabric;
	better = *other;
	better.begin_route_test = test_nothing;
	two_fabrics = *p->env->ops;
	two_fabrics.fabric = find_fabric;
	p->env->ops = &two_fabrics;
}

/* Commits until mirror 1 is dropped, and lets it come back. */
static void drop_and_reconnect(struct fixture *f)
{
	const uint64_t dropped = owner_stat(f->o).dropped;

	for (unsigned i = 0; owner_stat(f->o).dropped == dropped; i++) {
		assert_true(i < COMMITS);
		assert_int_equal(put_big(f, i * 100, LENGTH, (uint8_t)i), 0);
	}
	assert_int_equal(owner_state(f->o, 1), PERSEAS_MIRROR_DOWN);
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
}

/* Links over the better fabric come up and then carry nothing, and commits drop the mirror before
 * the fabric notices. The mirror is reached over the other fabric soon. */
static void check_dead_path_is_left(struct fixture *f)
{
	const struct ps_mirror *m = &f->o->p->mirrors[1];

	assert_int_equal(put_big(f, 0, LENGTH, 1), 0);
	assert_int_equal(perseas_flush(f->o->p), 0);
	offer_two_fabrics(f);
	slow_down(f, false);
	/* The first link had completed commits before. */
	drop_and_reconnect(f);
	assert_int_equal(m->way_back.break_count, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_ptr_equal(m->fabric, &better);
		drop_and_reconnect(f);
	}
	assert_ptr_equal(m->fabric, other);
	assert_int_not_equal(m->detour_reason[0], 0);
	recover(f);
	assert_catches_up(f, 1);
}

TEST(test_a_path_that_carries_nothing_is_left, struct fixture *f)
{
	check_dead_path_is_left(f);
}

TEST_WITH(test_a_dead_path_is_left_without_pacing, setup_off, teardown, struct fixture *f)
{
	check_dead_path_is_left(f);
}

/* Has mirror 1 complete a part of what its link has in flight. */
static void complete_some(struct fixture *f)
{
	const struct ps_mirror *m = &f->o->p->mirrors[1];
	const uint64_t acked = m->acked_seq;

	for (unsigned i = 0; m->acked_seq == acked; i++) {
		assert_true(i < 100);
		direct_release(f->o->d, 1, 1);
		pthread_mutex_lock(&f->o->p->lock);
		ps_mirrors_poll(f->o->p);
		pthread_mutex_unlock(&f->o->p->lock);
	}
}

/* A mirror that is too slow for the owner completes a little over each link: that is no fault of
 * the fabric, and another one would not be faster. */
TEST_WITH(test_a_slow_mirror_keeps_its_fabric, setup_off, teardown, struct fixture *f)
{
	offer_two_fabrics(f);
	slow_down(f, false);
	assert_int_equal(put_big(f, 0, LENGTH, 1), 0);
	for (unsigned i = 0; i < 8; i++) {
		complete_some(f);
		drop_and_reconnect(f);
		assert_int_equal(f->o->p->mirrors[1].way_back.break_count, 0);
		assert_ptr_equal(f->o->p->mirrors[1].fabric, &better);
	}
	recover(f);
	assert_catches_up(f, 1);
}
