/*
 * test_unarrived.c - a mirror that answers on the control connection, while nothing that is sent
 * on the data connection arrives, as when full-size packets are lost on the way: its trouble text
 * says so until something arrives.
 */
#include "resync_rig.h"

#include "../../client/core/pace.h"

struct unit_fixture unit_fixture = { setup_lone_acks, teardown };

static int poll_lost(struct ps_link *link)
{
	(void)link;
	return PS_LINK_LOST;
}

/* The next poll of the mirror's link finds that its host acknowledged nothing. */
static void lose_link(struct fixture *f, struct ps_fabric *fabric)
{
	struct ps_mirror *m = &f->o->p->mirrors[1];

	*fabric = *m->fabric;
	fabric->poll = poll_lost;
	m->fabric = fabric;
	assert_int_equal(put_big(f, 0, 100, 1), 0);
	pthread_mutex_lock(&f->o->p->lock);
	ps_mirrors_poll(f->o->p);
	pthread_mutex_unlock(&f->o->p->lock);
}

static void expect(struct fixture *f, enum perseas_mirror_state state, const char *trouble)
{
	struct perseas_mirror_stat stat;

	assert_int_equal(perseas_mirror_stat(f->o->p, 1, &stat), 0);
	assert_int_equal(stat.state, state);
	assert_string_equal(stat.trouble, trouble);
}

TEST(what_is_wrong_is_said_until_something_arrives, struct fixture *f)
{
	struct ps_fabric fabric;

	f->o->d->mirrors[1].hold = DIRECT_HOLD_WRITES;
	lose_link(f, &fabric);
	expect(f, PERSEAS_MIRROR_DOWN, PS_NOTHING_ARRIVED);
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
	expect(f, PERSEAS_MIRROR_LIVE, PS_NOTHING_ARRIVED);
	assert_int_equal(put_big(f, 0, 100, 2), 0);
	expect(f, PERSEAS_MIRROR_LIVE, PS_NOTHING_ARRIVED);
	f->o->d->mirrors[1].hold = DIRECT_HOLD_NOTHING;
	direct_release(f->o->d, 1, 10000);
	assert_catches_up(f, 1);
	expect(f, PERSEAS_MIRROR_LIVE, "");
}

/* The link breaks again, for a known reason. */
TEST(another_end_of_the_link_is_another_trouble, struct fixture *f)
{
	struct ps_fabric fabric;

	f->o->d->mirrors[1].hold = DIRECT_HOLD_WRITES;
	lose_link(f, &fabric);
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 0, 100, 2), 0);
	f->o->d->mirrors[1].hold = DIRECT_HOLD_NOTHING;
	direct_start(f->o->d, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
	expect(f, PERSEAS_MIRROR_LIVE, "");
}

/* In each case twice mirror_timeout_ms, but time enough to send a lost packet again, and no more
 * than sockets have. */
TEST(a_link_is_given_up_within_twice_the_mirrors_limit, struct fixture *f)
{
	static const struct {
		uint32_t mirror_timeout_ms, unarrived_ms;
	} limits[] = { { 0, 6000 }, { 3000, 6000 }, { 100, 2000 }, { 5000, 0 }, { UINT32_MAX, 0 } };

	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		f->o->options.mirror_timeout_ms = limits[i].mirror_timeout_ms;
		owner_reopen(f->o);
		assert_int_equal(f->o->p->env->unacknowledged_limit_ms, limits[i].unarrived_ms);
	}
}
