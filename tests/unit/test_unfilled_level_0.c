/*
 * test_unfilled_level_0.c - a command takes back the store of level 0 that it made: no mark keeps
 * others from opening that store meanwhile, and what they committed stays.
 */
#include "owner.h"

#include "../../client/open/open.h"
#include "../../client/open/unfilled.h"
#include "../../server/store/store_private.h"

static int setup_old(void **state)
{
	struct owner *o = owner_new(3);

	o->d->mirrors[1].version = 8;
	*state = o;
	return 0;
}

struct unit_fixture unit_fixture = { setup_old, owner_teardown };

static unsigned count_images(struct owner *o)
{
	unsigned count = 0;

	for (unsigned i = 0; i < o->d->count; i++)
		count += store_find(o->d->mirrors[i].stores, STORE) != NULL;
	return count;
}

static void begin_filling(struct owner *o, uint8_t id[PS_ID_SIZE])
{
	assert_int_equal(ps_open_filling(direct_env(o->d), STORE, direct_list(o->d), &o->options,
	                                 id, &o->p, &o->error),
	                 0);
}

static int take_back(struct owner *o, const uint8_t *id)
{
	return ps_unfilled_store_remove(direct_env(o->d), STORE, direct_list(o->d), &o->options, id,
	                                &o->error);
}

TEST(nothing_that_others_committed_is_taken_back, struct owner *o)
{
	uint8_t id[PS_ID_SIZE];

	begin_filling(o, id);
	owner_die(o);
	owner_begin(o);
	assert_int_equal(take_back(o, id), PERSEAS_EBUSY);
	owner_close(o);
	assert_int_equal(take_back(o, id), PERSEAS_EEXIST);
	assert_int_equal(count_images(o), 3);
}

TEST(an_empty_store_is_taken_back_by_its_id_alone, struct owner *o)
{
	uint8_t id[PS_ID_SIZE], other[PS_ID_SIZE] = { 1 };

	begin_filling(o, id);
	owner_die(o);
	assert_int_equal(take_back(o, NULL), PERSEAS_EEXIST);
	assert_int_equal(take_back(o, other), PERSEAS_EEXIST);
	direct_crash(o->d, 2);
	assert_int_equal(take_back(o, id), PERSEAS_EUNREACHABLE);
	direct_start(o->d, 2);
	assert_int_equal(count_images(o), 3);
	if (take_back(o, id))
		fail_msg("%s", o->error.text);
	assert_int_equal(count_images(o), 0);
	assert_int_equal(take_back(o, id), 0);
	direct_crash(o->d, 2);
	assert_int_equal(take_back(o, id), PERSEAS_EUNREACHABLE);
}
