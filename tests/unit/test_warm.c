/*
 * test_warm.c - standbys that keep a copy of a store's memory: what the next owner takes from it is
 * what the last one left, and what may be otherwise is not taken.
 */
#include "warm_rig.h"

struct unit_fixture unit_fixture = { setup_warm_tcp, teardown_warm };

/* --- what is taken --- */

/* All of it is there before the owner dies: nothing is fetched. */
TEST(what_was_left_is_taken, struct rig *rig)
{
	perseas_standby_t *s = begin_warm_behind(rig, own);

	assert_int_equal(stat_of(s).memory, SIZE);
	take_over(rig, s);
	assert_used(rig, true);
	assert_int_equal(stat_of(s).memory, 0);
	assert_int_equal(stat_of(s).warm, 0);
	assert_int_equal(rig->bytes[0], 42);
	assert_as_made(rig, 8);
	assert_int_equal(fetched(rig), 0);
	close_and_compare(rig);
}
TEST_ALSO(what_was_left_is_taken, setup_warm_shared, teardown_warm);

/* Where memory cannot be fetched on demand, it is not read from mirrors either. */
TEST(what_is_read_first_is_taken, struct rig *rig)
{
	perseas_standby_t *s;

	start_owner(rig, own);
	s = begin_warm(rig, PERSEAS_RECOVERY_READ_FIRST);
	RIG_UNTIL(is_warm(s));
	take_over(rig, s);
	assert_used(rig, true);
	assert_int_equal(rig->bytes[0], 42);
	assert_as_made(rig, 8);
	close_and_compare(rig);
}

/* The owner is killed while it changes memory, and the copy follows. */
TEST(whoever_is_killed_at_work_is_followed, struct rig *rig)
{
	for (unsigned i = 0; i < 4; i++) {
		perseas_standby_t *s;

		start_owner(rig, own_busily);
		s = begin_warm(rig, i % 2 ? 0 : PERSEAS_RECOVERY_ON_DEMAND);
		RIG_UNTIL(stat_of(s).warm > SIZE / 2);
		take_over(rig, s);
		assert_used(rig, true);
		close_and_compare(rig);
	}
}
TEST_ALSO(whoever_is_killed_at_work_is_followed, setup_warm_shared, teardown_warm);

TEST(what_changed_since_comes_from_mirrors, struct rig *rig)
{
	become_owner_behind(rig);
	assert_used(rig, true);
	assert_int_equal(rig->bytes[0], 42);
	assert_int_equal(rig->bytes[5000], 77);
	assert_true(fetched(rig) > 0 && fetched(rig) < SIZE);
	close_and_compare(rig);
}

TEST(a_segment_may_come_later, struct rig *rig)
{
	perseas_standby_t *s = begin_warm_behind(rig, own_and_obey);
	void *more;

	ask(2);
	RIG_UNTIL(stat_of(s).memory == SIZE + 70000 && is_warm(s));
	assert_int_equal(drops_of(s), 0);
	take_over(rig, s);
	assert_int_equal(perseas_map(rig->p, "more", 0, &more), 0);
	for (unsigned i = 0; i < 70000; i++)
		assert_int_equal(((uint8_t *)more)[i], 9);
	assert_int_equal(fetched(rig), 0);
}

static const struct ps_env_ops *real_ops;
static struct ps_env_ops held_ops;
static _Atomic unsigned bursts;
static unsigned slots_asked;

/* The owner goes on by a burst before the second slot of some looks at the log: so that slot counts
 * more than the look found. */
static int send_after_burst(struct ps_control *control, const Perseas__Request *request,
                            struct ps_error *error)
{
	const bool slot = request->body_case == PERSEAS__REQUEST__BODY_READ &&
	                  request->read->region == PS_REGION_LOG && !request->read->offset;

	if (slot && slots_asked++ % 8 == 1 && bursts < BURSTS) {
		ask(BURST + (int)bursts);
		bursts++;
	}
	return real_ops->send(control, request, error);
}

/* The owner is faster than its follower, and does not lap it. */
TEST(an_owner_that_goes_on_meanwhile_is_followed, struct rig *rig)
{
	perseas_standby_t *s = begin_warm_behind(rig, own_and_obey);

	real_ops = s->warmth->env->ops;
	held_ops = *real_ops;
	held_ops.send = send_after_burst;
	bursts = 0;
	slots_asked = 0;
	s->warmth->env->ops = &held_ops;
	RIG_UNTIL(bursts == BURSTS);
	RIG_UNTIL(is_warm(s));
	assert_int_equal(drops_of(s), 0);
	take_over(rig, s);
	assert_used(rig, true);
	close_and_compare(rig);
}

static struct ps_pager_ops poor_pager;
static _Atomic int refusals;

static uint32_t fill_later(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes,
                           uint32_t length, bool watched)
{
	/* A page of a granule. */
	if (atomic_fetch_sub(&refusals, 1) > 0 && length > PS_PAGE)
		length = PS_PAGE;
	return ps_pager_uffd.fill(pager, to, bytes, length, watched);
}

static struct perseas *kept; /* nothing is taken of its copy; NULL: of any it may be */
static _Atomic bool keeper_is_held, keeper_rests;

static uint32_t fill_not_from_copy(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes,
                                   uint32_t length, bool watched)
{
	const struct perseas *p = __atomic_load_n(&kept, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; p && i < p->warm_copy->count; i++) {
		const struct ps_warm_part *part = &p->warm_copy->parts[i];

		if (bytes >= part->bytes && bytes < part->bytes + part->size)
			return 0;
	}
	return ps_pager_uffd.fill(pager, to, bytes, length, watched);
}

static void hold_keeper(struct ps_env *env, enum ps_sleeper who, struct pollfd *fds, unsigned count,
                        uint64_t until_ns)
{
	if (who == PS_KEEPER)
		keeper_rests = true;
	while (who == PS_KEEPER && keeper_is_held)
		real_ops->pause(env, who, NULL, 0, real_ops->now(env) + 1000000);
	real_ops->pause(env, who, fds, count, until_ns);
}

/* Keeps the whole copy until the segment is unmapped: nothing is taken from it, and the keeper does
 * not give it up when all memory is here. */
static void keep_copy(perseas_standby_t *s)
{
	poor_pager = ps_pager_uffd;
	poor_pager.fill = fill_not_from_copy;
	kept = s->p;
	s->p->env->pager = &poor_pager;
	real_ops = s->p->env->ops;
	held_ops = *real_ops;
	held_ops.pause = hold_keeper;
	keeper_rests = false;
	keeper_is_held = true;
	s->p->env->ops = &held_ops;
}

/* The copy lacks this owner's changes. */
TEST(what_was_unmapped_is_not_taken_again, struct rig *rig)
{
	perseas_standby_t *s = begin_warm_behind(rig, own);

	keep_copy(s);
	kill_owner();
	assert_int_equal(perseas_standby_wait(s, -1, &rig->p), 0);
	RIG_UNTIL(keeper_rests);
	assert_int_equal(rig_map(rig), 0);
	assert_int_equal(rig_put(rig, 3 << 20, 8, 99), 0);
	assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	assert_non_null(rig->p->warm_copy);
	__atomic_store_n(&kept, NULL, __ATOMIC_RELEASE);
	assert_int_equal(rig_map(rig), 0);
	keeper_is_held = false;
	assert_int_equal(rig->bytes[3 << 20], 99);
	assert_true(fetched(rig) >= SIZE);
	close_and_compare(rig);
}

/* For a moment there is no memory for it. */
TEST(what_cannot_be_taken_is_fetched, struct rig *rig)
{
	perseas_standby_t *s = begin_warm_behind(rig, own);

	poor_pager = ps_pager_uffd;
	poor_pager.fill = fill_later;
	refusals = 2;
	s->p->env->pager = &poor_pager;
	take_over(rig, s);
	assert_int_equal(rig->bytes[0], 42);
	assert_as_made(rig, 8);
	assert_true(fetched(rig) > 0);
	/* The copy still has it, as it was. */
	assert_int_equal(rig_put(rig, 100, 8, 99), 0);
	assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	assert_int_equal(rig_map(rig), 0);
	assert_int_equal(rig->bytes[100], 99);
	close_and_compare(rig);
}

/* At this rate less than a page may be read at once. */
TEST(a_low_rate_is_a_rate, struct rig *rig)
{
	struct perseas_options options = standby_options();
	perseas_standby_t *s;

	start_owner(rig, own);
	options.warm = 1;
	options.warm_rate = 20000;
	s = begin_with(STORE, rig->list, &options);
	RIG_UNTIL(stat_of(s).warm >= 8192);
	kill_owner();
}

/* The copy is given up, and not tried again at once. */
TEST(without_memory_there_is_no_copy, struct rig *rig)
{
	perseas_standby_t *s = begin_warm_behind(rig, own_and_obey);
	const int poor = open("/dev/null", O_RDONLY);

	pthread_mutex_lock(&s->warmth->lock);
	assert_true(dup2(poor, s->warmth->copy->fd) >= 0);
	pthread_mutex_unlock(&s->warmth->lock);
	ask(1);
	RIG_UNTIL(drops_of(s) == 1);
	assert_true(s->warmth->next_copy_at > s->warmth->env->ops->now(s->warmth->env));
	take_over(rig, s);
	assert_int_equal(rig->bytes[5000], 77);
	close_standby();
	close(poor);
	assert_as_mirrors(rig);
}

/* --- what is not --- */

/* A copy of wrong bytes whose transaction is this many epochs and transactions further on. */
static void is_not_used(struct rig *rig, unsigned epochs, unsigned transactions)
{
	perseas_standby_t *s = begin_warm_behind(rig, own);

	freeze(s);
	s->warmth->copy->point.epoch += epochs;
	s->warmth->copy->point.seq += transactions;
	memset(s->warmth->copy->parts[0].bytes, 0, SIZE);
	take_over(rig, s);
	assert_used(rig, false);
	assert_as_made(rig, 8);
}

/* Its transaction is another one than the chosen history has at that place. */
TEST(a_copy_of_another_history_is_not_used, struct rig *rig)
{
	is_not_used(rig, 1, 0);
}

/* The copy's transaction never existed. */
TEST(a_copy_that_is_ahead_is_not_used, struct rig *rig)
{
	is_not_used(rig, 0, 1);
}

/* The log is overwritten before it was followed: then nothing is known of what changed. */
TEST(a_lap_ends_a_copy, struct rig *rig)
{
	perseas_standby_t *s = begin_warm_behind(rig, own_and_obey);

	pthread_mutex_lock(&s->warmth->lock);
	ask(LAP);
	pthread_mutex_unlock(&s->warmth->lock);
	RIG_UNTIL(drops_of(s) == 1);
	RIG_UNTIL(is_warm(s));
	take_over(rig, s);
	assert_used(rig, true);
	close_and_compare(rig);
}

/* Changes outside the log are counted in the mirror's header only: a session that is taken up
 * again, a joining, a second image. Here the copy began with another count. */
TEST(what_is_no_transaction_ends_a_copy, struct rig *rig)
{
	perseas_standby_t *s = begin_warm_behind(rig, own);

	s->warmth->base->store->status->header->rewrites--;
	RIG_UNTIL(drops_of(s) == 1);
	RIG_UNTIL(is_warm(s));
	s->warmth->base->store->status->header->generation--;
	RIG_UNTIL(drops_of(s) == 2);
	kill_owner();
}

TEST(another_owner_ends_a_copy, struct rig *rig)
{
	perseas_standby_t *s = begin_warm_behind(rig, own);

	kill_owner();
	start_owner(rig, own);
	RIG_UNTIL(drops_of(s) >= 1);
	RIG_UNTIL(is_warm(s));
	take_over(rig, s);
	assert_used(rig, true);
	assert_as_made(rig, 8);
	close_and_compare(rig);
}

/* The mirror that it reads from dies with the owner. */
TEST(a_mirror_may_die_with_the_owner, struct rig *rig)
{
	perseas_standby_t *s = begin_warm_behind(rig, own);
	unsigned read = strstr(rig->list, s->warmth->address) == rig->list ? 0 : 1;

	kill_owner();
	rig_kill(&rig->mirrors[read]);
	rig_start(&rig->mirrors[read]);
	become_owner(rig, s);
	assert_int_equal(rig->bytes[0], 42);
	assert_as_made(rig, 8);
	close_and_compare(rig);
}
