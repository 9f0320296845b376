/*
 * test_last_copy.c - only one mirror still has memory that is missing here, and that mirror must be
 * made anew, or leave the roster: its bytes are read before it is given up.
 */
#include "demand_direct_rig.h"

static int setup_one_ack(void **state)
{
	return setup_on_demand(state, 2, 1);
}

struct unit_fixture unit_fixture = { setup_one_ack, teardown };

static uint64_t generation(struct fixture *f, unsigned mirror)
{
	Perseas__Header *header = header_of(f, mirror);
	const uint64_t is = header->generation;

	assert_int_equal(header->state, PERSEAS__STATE__STATE_CONSISTENT);
	perseas__header__free_unpacked(header, NULL);
	return is;
}

/* Mirror 1 missed more than the ring holds. */
static void fall_behind(struct fixture *f)
{
	direct_crash(f->o->d, 1);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(put_big(f, 5000 + i, 3000, (uint8_t)i), 0);
}

/* W = 1: mirror 0 is lost, and mirror 1 is stale. Its old image alone has what is missing here, and
 * stays until all is fetched. Only then the new image takes its place. */
TEST(test_the_old_image_is_read_until_all_is_here, struct fixture *f)
{
	struct owner *o = f->o;
	uint64_t was;

	fetch_some(f, 3);
	fall_behind(f);
	direct_crash(o->d, 0);
	direct_start(o->d, 1);
	was = generation(f, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	for (unsigned i = 0; i < 50; i++)
		direct_keep(o->d, o->p);
	pager_gate.mirrors = 2;
	pager_gate.budget = 0;
	for (unsigned done = 1; done < GRANULES; done++) {
		assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_RESYNCING);
		assert_int_equal(generation(f, 1), was);
		assert_true(owner_stat(o).missing > 0);
		pager_gate.budget = 1;
		for (unsigned i = 0; i < ROUNDS && pager_gate.fills < 2 + done; i++)
			pager_direct_turns(o->d, 10);
		assert_int_equal(pager_gate.fills, 2 + done);
		for (unsigned i = 0; i < 20; i++)
			direct_keep(o->d, o->p);
	}
	assert_int_equal(owner_stat(o).missing, 0);
	assert_catches_up(f, 1);
	assert_int_equal(generation(f, 1), was + 1);
	fetch_all(f, 0);
	/* The other one, which is back without its memory, gets it from here. */
	memory_heap_lose(o->d->mirrors[0].memory, NULL);
	direct_start(o->d, 0);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	assert_image(f, 0);
}

static int change(struct owner *o, int kind, const char *address, const char *with)
{
	const struct perseas_roster_change wanted = { kind, address, with, 0, 0 };

	return owner_change(o, &wanted);
}

/* Mirror 0 lost its memory, and mirror 1 alone has what is missing here: it cannot leave. */
TEST(test_the_last_source_cannot_leave, struct fixture *f)
{
	struct owner *o = f->o;

	fetch_some(f, 3);
	owner_lose(o, 0);
	owner_keep(o, 0, PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(change(o, PERSEAS_ROSTER_REMOVE, "sim://1", NULL), PERSEAS_EQUORUM);
	assert_non_null(strstr(o->p->upkeep.change.text, "as it would be has 0 of 1 mirrors live"));
	for (unsigned i = 0; i < 50; i++)
		direct_keep(o->d, o->p);
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	/* Once all is there, it can. */
	fetch_all(f, 2);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	assert_image(f, 0);
	assert_int_equal(change(o, PERSEAS_ROSTER_REMOVE, "sim://1", NULL), 0);
	owner_keep(o, 1, PERSEAS_MIRROR_REMOVED);
	assert_int_equal(put_big(f, BIG - 900, 900, 99), 0);
	o->options.recovery = 0;
	assert_carries(f, 1);
}

/* Sets up two mirrors, and a store on one of them. */
static int setup_only_one(void **state)
{
	struct owner *o = owner_new(2);

	o->options.acks = 1;
	strcpy(o->d->list, "sim://0");
	setup_owner(state, o);
	open_on_demand(*state);
	return 0;
}

/* The only mirror is replaced: it leaves when the new one has what is missing here, too. */
TEST_WITH(test_the_last_source_is_replaced, setup_only_one, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	fetch_some(f, 1);
	assert_int_equal(change(o, PERSEAS_ROSTER_REPLACE, "sim://0", "sim://1"), 0);
	for (unsigned i = 0; i < 50; i++)
		direct_keep(o->d, o->p);
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_LIVE);
	assert_int_equal(put_big(f, 100, 900, 99), 0);
	pager_gate.mirrors = 1;
	for (unsigned i = 0; i < ROUNDS && owner_state(o, 0) == PERSEAS_MIRROR_LIVE; i++) {
		pager_direct_turns(o->d, 1);
		direct_keep(o->d, o->p);
	}
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_REMOVED);
	assert_int_equal(pager_gate.fills, 1 + GRANULES);
	fetch_all(f, 0);
	assert_image(f, 1);
}
