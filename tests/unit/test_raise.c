/*
 * test_raise.c - an owner raises the level of its store while transactions go on, and mirrors and
 * owners come and go meanwhile.
 */
#include "level_rig.h"

/* Transactions go on, the id stays, and what follows is of a later epoch than the rosters tell. */
TEST(a_store_is_raised_while_transactions_go_on)
{
	struct owner *o = begin_low();
	uint8_t id[PS_ID_SIZE];
	uint64_t epoch = o->p->epoch;

	memcpy(id, o->p->store_id, sizeof(id));
	assert_int_equal(owner_change(o, &raise_it), 0);
	for (unsigned rounds = 0; o->p->upkeep.change.stage != PS_CHANGE_NONE; rounds++) {
		assert_true(rounds < ROUNDS);
		assert_int_equal(owner_put(o, 0, 100, (uint8_t)rounds), 0);
		direct_keep(o->d, o->p);
	}
	assert_int_equal(o->p->upkeep.change.result_code, 0);
	assert_raised(o);
	assert_memory_equal(header_at(o, 0)->store_id.data, id, PS_ID_SIZE);
	assert_int_equal(header_at(o, 0)->roster->key_hash.len, PS_SHA256);
	for (unsigned rounds = 0; o->p->epoch == epoch || o->p->is_renewing; rounds++) {
		assert_true(rounds < ROUNDS);
		direct_keep(o->d, o->p);
	}
	assert_true(o->p->epoch > o->p->roster->raised_epoch);
	assert_int_equal(o->p->roster->raised_epoch, epoch);
	assert_int_equal(owner_put(o, 0, 100, 77), 0);
	assert_int_equal(owner_stat(o).live, 3);
	reopen(o);
	assert_int_equal(o->bytes[0], 77);
	assert_int_equal(owner_put(o, 0, 100, 78), 0);
	owner_free(o);
}

TEST(a_store_is_raised_once)
{
	struct owner *o = begin(3, 2);

	assert_int_equal(owner_change(o, &raise_it), PERSEAS_EINVAL);
	owner_free(o);
}

/* A mirror that missed the key would count for nothing afterwards. */
TEST(a_store_is_raised_only_while_all_mirrors_answer)
{
	struct owner *o = begin_low();

	direct_crash(o->d, 2);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_change(o, &raise_it), PERSEAS_EQUORUM);
	assert_non_null(strstr(o->p->upkeep.change.text, "sim://2"));
	direct_start(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	raise_level(o);
	assert_raised(o);
	owner_free(o);
}

/* The mirror dies after the change became joint, and before it knows of it: nothing is decided
 * until it returns. */
TEST(a_raise_waits_for_a_mirror_that_dies_meanwhile)
{
	struct owner *o = begin_low();
	char text[256];

	assert_int_equal(owner_change(o, &raise_it), 0);
	while (o->p->upkeep.change.stage != PS_CHANGE_JOINT)
		direct_keep(o->d, o->p);
	direct_crash(o->d, 2);
	for (unsigned i = 0; i < 20; i++)
		direct_keep(o->d, o->p);
	assert_int_equal(o->p->upkeep.change.stage, PS_CHANGE_JOINT);
	assert_int_equal(owner_put(o, 0, 100, 4), 0);
	/* Meanwhile it can be taken back. */
	ps_admin_enter(o->p);
	assert_int_equal(ps_change_cancel(o->p, text, sizeof(text)), 0);
	ps_admin_leave(o->p);
	while (o->p->upkeep.change.stage != PS_CHANGE_NONE)
		direct_keep(o->d, o->p);
	assert_int_equal(header_at(o, 0)->roster->level, 0);
	assert_int_equal(header_at(o, 0)->key.len, 0);
	direct_start(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	raise_level(o);
	assert_raised(o);
	owner_free(o);
}

TEST(a_store_is_raised_only_while_all_mirrors_read_level_1)
{
	struct owner *o = owner_new(MIRRORS);

	o->options.acks = 2;
	o->d->mirrors[1].version = BEFORE;
	if (open_with(o, 0, 3, PERSEAS_CREATE))
		fail_msg("%s", o->error.text);
	assert_int_equal(owner_change(o, &raise_it), PERSEAS_EVERSION);
	assert_non_null(strstr(o->p->upkeep.change.text, "sim://1"));
	assert_int_equal(header_at(o, 0)->roster->level, 0);
	owner_free(o);
}

/* Its image would be made without the key. */
TEST(a_mirror_of_the_version_before_cannot_join_a_store_of_level_1)
{
	static const struct perseas_roster_change add = { PERSEAS_ROSTER_ADD, NULL, "sim://4", 0,
		                                          0 };
	struct owner *o = begin(3, 2);

	o->d->mirrors[4].version = BEFORE;
	assert_true(change_roster(o, &add) != 0);
	assert_null(store_find(o->d->mirrors[4].stores, STORE));
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	owner_free(o);
}

/* The owner dies after each of the keeper's rounds. The next one finds the store at one level, on
 * all three, and can raise it where it is not. */
TEST(a_raise_that_an_owner_left_is_completed_or_unknown)
{
	unsigned rounds = 0, raised = 0, low = 0;
	bool over;

	do {
		struct owner *o = begin_low();

		assert_int_equal(owner_change(o, &raise_it), 0);
		for (unsigned k = 0; k < rounds && o->p->upkeep.change.stage != PS_CHANGE_NONE; k++)
			direct_keep(o->d, o->p);
		over = o->p->upkeep.change.stage == PS_CHANGE_NONE;
		reopen(o);
		assert_int_equal(o->bytes[0], 2);
		/* Its epoch, and those since, may have records of the old form. */
		if (strstr(perseas_report(o->p), "is completed"))
			assert_int_equal(o->p->roster->raised_epoch, o->p->epoch);
		if (o->p->roster->level)
			raised++;
		else
			low++;
		if (!o->p->roster->level)
			raise_level(o);
		assert_raised(o);
		assert_int_equal(owner_put(o, 0, 100, 5), 0);
		owner_free(o);
	} while (!over && ++rounds < ROUNDS);
	assert_true(over && raised > 0 && low > 0);
}

/* The owner died while the change was joint, and the next one takes it back, key and all. */
TEST(a_raise_that_an_owner_left_can_be_taken_back)
{
	struct owner *o = begin_low();

	assert_int_equal(owner_change(o, &raise_it), 0);
	while (o->p->upkeep.change.stage != PS_CHANGE_JOINT)
		direct_keep(o->d, o->p);
	assert_int_equal(header_at(o, 0)->key.len, PS_KEY_SIZE);
	owner_die(o);
	if (open_with(o, 0, 3, PERSEAS_TAKEOVER | PERSEAS_CANCEL))
		fail_msg("%s", o->error.text);
	owner_map(o);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(header_at(o, i)->roster->level, 0);
		assert_null(header_at(o, i)->next_roster);
		assert_int_equal(header_at(o, i)->key.len, 0);
	}
	assert_int_equal(owner_put(o, 0, 100, 5), 0);
	raise_level(o);
	assert_raised(o);
	owner_free(o);
}

/* The completed raise left a mirror out that was away: it is made anew like one that lost its
 * memory, and holds what the others do. */
TEST(an_image_from_before_the_raise_is_copied_over)
{
	struct owner *o = begin_low();

	/* The mirror dies before it hears of the change, and the owner after the two others know
	 * it. */
	o->d->mirrors[2].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	assert_int_equal(owner_change(o, &raise_it), 0);
	while (o->d->mirrors[2].break_at)
		direct_keep(o->d, o->p);
	direct_crash(o->d, 2);
	for (unsigned i = 0; i < 20; i++)
		direct_keep(o->d, o->p);
	assert_int_equal(o->p->upkeep.change.stage, PS_CHANGE_JOINT);
	assert_int_equal(header_at(o, 0)->next_roster->level, 1);
	owner_die(o);
	if (open_with(o, 0, 3, PERSEAS_TAKEOVER))
		fail_msg("%s", o->error.text);
	owner_map(o);
	assert_int_equal(o->p->roster->level, 1);
	assert_int_equal(owner_put(o, 0, 100, 11), 0);
	direct_start(o->d, 2);
	assert_int_equal(header_at(o, 2)->roster->level, 0);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_raised(o);
	reopen(o);
	assert_int_equal(o->bytes[0], 11);
	owner_free(o);
}
