/*
 * test_link_end.c - the one end of a link: what is left of it, and who is told.
 */
#include "ends.h"
#include "../../client/core/mirror.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

static unsigned woken; /* bit i: enum ps_sleeper i */

static void note_wake(struct ps_env *env, enum ps_sleeper who)
{
	(void)env;
	woken |= 1u << who;
}

/* Ends the link of mirror 2, and gives who was woken by that. */
static unsigned end_link(struct owner *o)
{
	struct ps_env *env = o->p->env;
	const struct ps_env_ops *ops = env->ops;
	struct ps_env_ops noting = *ops;

	noting.wake = note_wake;
	woken = 0;
	pthread_mutex_lock(&o->p->lock);
	env->ops = &noting;
	ps_link_end(o->p, &o->p->mirrors[2]);
	env->ops = ops;
	pthread_mutex_unlock(&o->p->lock);
	return woken;
}

static void assert_nothing_is_left(const struct ps_mirror *m)
{
	assert_null(m->link);
	assert_false(m->is_active);
	assert_int_equal(m->chains_in_flight, 0);
	assert_int_equal(m->completions_until_chunk, 0);
}

/* A commit sleeps on the link, the keeper on all there is; and a link that has ended ends again. */
TEST(an_end_takes_all_and_wakes_who_sleeps, struct owner *o)
{
	const unsigned both = 1u << PS_COMMITTER | 1u << PS_KEEPER;
	struct ps_mirror *m = &o->p->mirrors[2];

	o->d->mirrors[2].hold = DIRECT_HOLD_COMPLETIONS;
	assert_int_equal(owner_put(o, 0, 8, 1), 0);
	assert_int_equal(m->chains_in_flight, 1);
	m->completions_until_chunk = 1; /* as while its image is copied */
	o->p->commit.wait_line.has_leader = true;
	assert_int_equal(end_link(o), both);
	assert_nothing_is_left(m);
	assert_int_equal(end_link(o), 0);
	assert_nothing_is_left(m);
	o->p->commit.wait_line.has_leader = false;
}

/* Nobody sleeps on the links, so no commit is woken. */
TEST(an_end_wakes_no_more_than_those, struct owner *o)
{
	assert_int_equal(end_link(o), 1u << PS_KEEPER);
	assert_nothing_is_left(&o->p->mirrors[2]);
}

/* Entries in flight are forgotten, and sent again over the next link. */
TEST(a_mirror_goes_on_over_the_next_link, struct owner *o)
{
	struct perseas_mirror_stat stat;

	o->d->mirrors[2].hold = DIRECT_HOLD_COMPLETIONS;
	assert_int_equal(owner_put(o, 0, 8, 1), 0);
	pthread_mutex_lock(&o->p->lock);
	ps_mirror_break_link(o->p, &o->p->mirrors[2], PS_LINK_BROKEN, "by the test");
	pthread_mutex_unlock(&o->p->lock);
	o->d->mirrors[2].hold = DIRECT_HOLD_NOTHING;
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_put(o, 8, 8, 2), 0);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(perseas_mirror_stat(o->p, 2, &stat), 0);
	assert_int_equal(stat.seq, owner_stat(o).seq);
}

/* Commits through the ring or not: a link that breaks is counted, and told of, in the same way. */
TEST(a_link_breaks_in_one_way, struct owner *o)
{
	unsigned breaks = 0;

	for (unsigned staged = 0; staged < 2; staged++) {
		struct perseas_mirror_stat stat;

		owner_close(o);
		o->d->staged = staged;
		owner_reopen(o);
		owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
		assert_int_equal(o->p->commit.uses_ring, staged);
		o->d->mirrors[2].writes_left = 0;
		breaks = o->p->mirrors[2].way_back.break_count;
		assert_int_equal(owner_put(o, 0, 8, (uint8_t)(staged + 1)), 0);
		assert_int_equal(o->p->mirrors[2].way_back.break_count, breaks + 1);
		assert_int_equal(perseas_mirror_stat(o->p, 2, &stat), 0);
		assert_int_equal(stat.state, PERSEAS_MIRROR_DOWN);
		assert_non_null(strstr(stat.trouble, "the data connection broke"));
		o->d->mirrors[2].writes_left = -1;
	}
}

static void end_without_the_lock(struct owner *o)
{
	ps_link_end(o->p, &o->p->mirrors[2]);
}

/* Commits may be posting to it. */
TEST(an_end_without_the_lock_is_a_mistake_of_ours, struct owner *o)
{
	assert_ends(o, end_without_the_lock);
}
