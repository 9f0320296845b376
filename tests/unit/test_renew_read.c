/*
 * test_renew_read.c - a renewal reads what the owner has not mapped from a mirror that it adopted
 * on, to make a copy for another one, and the data path breaks then. The session does not, so that
 * the mirror still confirms.
 */
#include "resync_rig.h"

static int setup_all(void **state)
{
	return setup_of(state, 3, 3, true);
}

struct unit_fixture unit_fixture = { setup_all, teardown };

/* A fabric whose first read breaks its link, once `armed`. */
static struct {
	struct ps_env_ops ops;
	struct ps_fabric fabric;
	const struct ps_fabric *real;
	bool armed;
} breaking;

static int breaking_read(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                         uint64_t length, uint64_t patience_ns)
{
	const bool breaks = breaking.armed;

	breaking.armed = false;
	return breaks ? PS_LINK_BROKEN
	              : breaking.real->read(link, region, offset, bytes, length, patience_ns);
}

static const struct ps_fabric *breaking_fabric(struct ps_env *env, const struct ps_address *address,
                                               const Perseas__Grant *grant, unsigned tried)
{
	(void)env;
	(void)address;
	(void)grant;
	return tried ? NULL : &breaking.fabric;
}

static void arm(struct owner *o)
{
	breaking.real = o->p->mirrors[0].fabric;
	breaking.fabric = *breaking.real;
	breaking.fabric.read = breaking_read;
	breaking.ops = *o->p->env->ops;
	breaking.ops.fabric = breaking_fabric;
	o->p->env->ops = &breaking.ops;
	breaking.armed = true;
}

/* Mirror 2 missed what the ring does not hold any more, and W cannot be had without it. */
static void fall_behind(struct fixture *f)
{
	struct owner *o = f->o;

	assert_int_equal(perseas_unmap(o->p, f->big), 0);
	direct_crash(o->d, 2);
	assert_int_equal(owner_put(o, 0, 100, 7), PERSEAS_EINDOUBT);
	memset(f->ledger->accounts, 7, 100);
	come_back_late(f, 2);
}

TEST(test_a_link_that_breaks_counts_for_nothing, struct fixture *f)
{
	struct owner *o = f->o;

	fall_behind(f);
	owner_claimed_and_left(o);
	arm(o);
	for (unsigned rounds = 0; rounds < 30; rounds++) {
		direct_keep(o->d, o->p);
		for (unsigned i = 0; i < 3; i++)
			assert_true(owner_state(o, i) != PERSEAS_MIRROR_LIVE ||
			            o->p->mirrors[i].link);
	}
	assert_false(breaking.armed);
	assert_int_equal(owner_stat(o).renewals, 1);
	assert_int_equal(perseas_flush(o->p), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(owner_state(o, i), PERSEAS_MIRROR_LIVE);
		assert_image(f, i);
	}
}
