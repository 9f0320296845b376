/*
 * test_readdress.c - changes of the roster whose new address leads to a member: a daemon counts
 * once, and a member that takes its own place gets another address.
 */
#include "level_rig.h"

struct unit_fixture unit_fixture = { NULL, owner_teardown };

/* State that a change of the address must leave as it was. */
struct before {
	uint8_t images[MIRRORS][PS_ID_SIZE];
	uint64_t version;
};

static void note_before(struct owner *o, struct before *before)
{
	const Perseas__Roster *roster = o->p->roster;

	before->version = roster->version;
	for (size_t k = 0; k < roster->n_members; k++)
		memcpy(before->images[k], roster->members[k]->image_id.data, PS_ID_SIZE);
}

/* The members have the images that they had, nothing was copied, and commits are acknowledged. */
static void assert_images_kept(struct owner *o, const struct before *before)
{
	const Perseas__Roster *roster = o->p->roster;

	assert_null(o->p->next_roster);
	for (size_t k = 0; k < roster->n_members; k++)
		assert_memory_equal(roster->members[k]->image_id.data, before->images[k],
		                    PS_ID_SIZE);
	assert_int_equal(owner_stat(o).resyncs, 0);
	assert_int_equal(owner_put(o, 0, 100, 5), 0);
}

static void assert_refused(struct owner *o, const struct perseas_roster_change *wanted)
{
	struct before before;

	note_before(o, &before);
	assert_int_equal(change_roster(o, wanted), PERSEAS_EINVAL);
	assert_non_null(strstr(o->p->upkeep.change.text, "of the roster, and counts once"));
	assert_int_equal(o->p->roster->version, before.version);
	assert_images_kept(o, &before);
}

/* Nor does it take another member's place, or its own with another W, or as one that is gone. */
TEST(a_member_does_not_join_at_another_address)
{
	static const struct perseas_roster_change wanted[] = {
		{ PERSEAS_ROSTER_ADD, NULL, "sim://4", 0, 0 },
		{ PERSEAS_ROSTER_REPLACE, "sim://1", "sim://4", 0, 0 },
		{ PERSEAS_ROSTER_REPLACE, "sim://0", "sim://4", 1, 0 },
		{ PERSEAS_ROSTER_REPLACE, "sim://0", "sim://4", 0, 1 },
	};

	for (unsigned n = 0; n < sizeof(wanted) / sizeof(wanted[0]); n++) {
		struct owner *o = begin_test(2, 2);

		o->d->leads[4] = 0;
		assert_refused(o, &wanted[n]);
	}
}

/* The roster has the new address, on every mirror, and the next owner finds the store there. */
TEST(a_member_that_takes_its_own_place_gets_another_address)
{
	for (unsigned n = 1; n <= 3; n++) {
		struct owner *o = begin_test(n, n);
		struct before before;

		o->d->leads[4] = 0;
		note_before(o, &before);
		replace_member(o, "sim://0", "sim://4");
		assert_int_equal(o->p->roster->version, before.version + 1);
		assert_string_equal(o->p->roster->members[0]->address, "sim://4");
		assert_images_kept(o, &before);
		owner_die(o);
		o->d->leads[0] = 3;
		reopen_with(o, n > 1 ? 1 : 4, 1, PERSEAS_TAKEOVER);
		assert_int_equal(owner_stat(o).live, n);
		assert_int_equal(o->bytes[0], 5);
	}
}

/* The owner does not reach the member at its present address. It shows its image at the new one. */
TEST(a_member_is_found_at_its_new_address_alone)
{
	struct owner *o = begin_test(3, 2);
	struct before before;

	note_before(o, &before);
	direct_crash(o->d, 0);
	direct_crash(o->d, 3);
	direct_keep(o->d, o->p);
	o->d->leads[0] = 3;
	o->d->leads[4] = 0;
	direct_start(o->d, 0);
	replace_member(o, "sim://0", "sim://4");
	assert_string_equal(o->p->roster->members[0]->address, "sim://4");
	OWNER_KEEP_UNTIL(o, owner_stat(o).live == 3);
	assert_images_kept(o, &before);
}

/* The image of the member, and a daemon that is not the one with which the owner has a session: a
 * copy of its memory, say. */
TEST(a_copy_of_a_member_does_not_take_its_place)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, "sim://0", "sim://4",
		                                      0, 0 };
	struct owner *o = begin_test(2, 2);

	o->d->leads[4] = 0;
	o->p->mirrors[0].daemon_id[0] ^= 1;
	assert_refused(o, &wanted);
	o->p->mirrors[0].daemon_id[0] ^= 1;
}

/* The owner never met the member that is to leave, so the image alone tells which member is at the
 * new address. */
TEST(a_member_does_not_take_the_place_of_one_that_is_away)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, "sim://1", "sim://4",
		                                      0, 0 };
	struct owner *o = begin_test(3, 2);

	owner_die(o);
	direct_crash(o->d, 1);
	o->d->leads[4] = 0;
	reopen_with(o, 0, 3, PERSEAS_TAKEOVER);
	assert_refused(o, &wanted);
}

/* Another change of the roster is joint. */
TEST(an_address_is_not_recorded_during_another_change)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, "sim://0", "sim://4",
		                                      0, 0 };
	struct owner *o = begin_test(3, 2);

	o->d->leads[4] = 0;
	begin_removal(o, "sim://2");
	owner_keep_stage(o, PS_CHANGE_JOINT);
	assert_int_equal(perseas_roster(o->p, &wanted), PERSEAS_EBUSY);
	assert_says(o, "another change of the roster is not over");
	assert_string_equal(o->p->roster->members[0]->address, "sim://0");
	owner_complete(o);
	replace_member(o, "sim://0", "sim://4");
	assert_string_equal(o->p->roster->members[0]->address, "sim://4");
}

/* The owner dies when one of three mirrors has recorded the new address of member 0. */
static struct owner *die_while_recording(unsigned recorder, struct before *before)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, "sim://0", "sim://4",
		                                      0, 0 };
	struct owner *o = begin_test(3, 2);

	note_before(o, before);
	o->d->leads[4] = 0;
	for (unsigned i = 0; i < 3; i++)
		o->d->mirrors[i].break_at = i == recorder ? 0 : PERSEAS__REQUEST__BODY_ROSTER;
	assert_int_equal(owner_change(o, &wanted), 0);
	OWNER_KEEP_UNTIL(o, header_at(o, recorder)->roster->version > before->version);
	for (unsigned i = 0; i < 3; i++)
		if (i != recorder)
			direct_crash(o->d, i);
	for (unsigned rounds = 0; rounds < 20; rounds++)
		direct_keep(o->d, o->p);
	assert_int_equal(o->p->upkeep.change.stage, PS_CHANGE_SETTLING);
	owner_die(o);
	for (unsigned i = 0; i < 3; i++) {
		o->d->mirrors[i].break_at = 0;
		if (i == recorder)
			continue;
		direct_start(o->d, i);
		assert_int_equal(header_at(o, i)->roster->version, before->version);
	}
	return o;
}

/* The next owner goes by the newest roster that it sees. */
TEST(an_address_that_one_mirror_recorded_is_known)
{
	for (unsigned recorder = 0; recorder < 3; recorder++) {
		struct before before;
		struct owner *o = die_while_recording(recorder, &before);

		reopen_with(o, 0, 3, PERSEAS_TAKEOVER);
		assert_string_equal(o->p->roster->members[0]->address, "sim://4");
		assert_int_equal(owner_stat(o).live, 3);
		assert_images_kept(o, &before);
	}
}

/* The next owner does not see the mirror that recorded the address. That mirror comes back as the
 * member that it was: neither roster is a fork of the other. */
TEST(an_address_that_one_mirror_recorded_is_forgotten_without_it)
{
	for (unsigned recorder = 0; recorder < 3; recorder++) {
		struct before before;
		struct owner *o = die_while_recording(recorder, &before);

		direct_crash(o->d, recorder);
		reopen_with(o, 0, 3, PERSEAS_TAKEOVER);
		assert_string_equal(o->p->roster->members[0]->address, "sim://0");
		assert_int_equal(owner_put(o, 0, 100, 5), 0);
		direct_start(o->d, recorder);
		owner_keep(o, recorder, PERSEAS_MIRROR_LIVE);
		replace_member(o, "sim://0", "sim://4");
		for (unsigned i = 0; i < 3; i++)
			assert_string_equal(header_at(o, i)->roster->members[0]->address,
			                    "sim://4");
	}
}

/* --- addresses that two members exchanged --- */

/* The daemons of members 1 and 2 start again, each at the other's address. */
static struct owner *begin_exchanged(struct before *before)
{
	struct owner *o = begin_test(3, 2);

	note_before(o, before);
	direct_crash(o->d, 1);
	direct_crash(o->d, 2);
	direct_keep(o->d, o->p);
	o->d->leads[1] = 2;
	o->d->leads[2] = 1;
	direct_start(o->d, 1);
	direct_start(o->d, 2);
	OWNER_KEEP_UNTIL(o, owner_stat(o).live == 3);
	return o;
}

static bool lists(struct owner *o, const uint8_t *image_id)
{
	return ps_roster_member(o->p->roster, image_id) != NULL;
}

static bool is_listed_at(struct owner *o, const uint8_t *image_id, const char *address)
{
	return !strcmp(ps_roster_member(o->p->roster, image_id)->address, address);
}

/* An order names the mirror that is at the address now, alive or dead, and not the member that the
 * roster lists there. */
TEST(the_mirror_that_is_at_the_address_leaves)
{
	for (unsigned dead = 0; dead <= 1; dead++) {
		struct before before;
		struct owner *o = begin_exchanged(&before);

		if (dead)
			direct_crash(o->d, 2);
		replace_member(o, "sim://1", "sim://3");
		assert_true(lists(o, before.images[0]) && lists(o, before.images[1]));
		assert_false(lists(o, before.images[2]));
		OWNER_KEEP_UNTIL(o, owner_stat(o).live == 3);
		assert_int_equal(owner_put(o, 0, 100, 5), 0);
	}
}

/* The next owner finds the mirrors at the addresses of its list, and names them the same way. */
TEST(the_next_owner_means_the_same_mirror)
{
	struct before before;
	struct owner *o = begin_exchanged(&before);

	owner_die(o);
	reopen_with(o, 0, 3, PERSEAS_TAKEOVER);
	replace_member(o, "sim://2", "sim://3");
	assert_true(lists(o, before.images[0]) && lists(o, before.images[2]));
}

/* The member that the roster still lists at an address is not removed if it was reached elsewhere:
 * here an order is repeated. */
TEST(a_repeated_order_removes_no_second_mirror)
{
	const struct perseas_roster_change leaves = { .kind = PERSEAS_ROSTER_REMOVE,
		                                      .address = "sim://1" };
	struct before before;
	struct owner *o = begin_exchanged(&before);

	assert_int_equal(change_roster(o, &leaves), 0);
	assert_false(lists(o, before.images[2]));
	assert_int_equal(owner_change(o, &leaves), PERSEAS_EINVAL);
	assert_non_null(strstr(o->p->upkeep.change.text, "elsewhere now"));
	assert_true(lists(o, before.images[1]));
}

/* The dead mirror is at an address that neither the list nor the roster of this owner leads to. */
TEST(a_live_mirror_does_not_leave_for_a_dead_one_that_the_owner_cannot_name)
{
	const struct perseas_roster_change leaves = { .kind = PERSEAS_ROSTER_REMOVE,
		                                      .address = "sim://2" };
	struct before before;
	struct owner *o = begin_exchanged(&before);

	direct_crash(o->d, 1);
	owner_die(o);
	reopen_with(o, 0, 2, PERSEAS_TAKEOVER);
	assert_int_equal(owner_change(o, &leaves), PERSEAS_EINVAL);
	replace_member(o, "sim://1", "sim://1");
	replace_member(o, "sim://2", "sim://3");
	assert_false(lists(o, before.images[1]));
	assert_true(lists(o, before.images[2]));
}

/* An address given twice is recorded for the mirror that is there. The member that the roster
 * listed there gets the other address. */
TEST(exchanged_addresses_are_recorded)
{
	const struct perseas_roster_change again = { PERSEAS_ROSTER_REPLACE, "sim://1", "sim://1",
		                                     0, 0 };
	struct before before;
	struct owner *o = begin_exchanged(&before);

	replace_member(o, "sim://1", "sim://1");
	assert_true(is_listed_at(o, before.images[2], "sim://1"));
	assert_true(is_listed_at(o, before.images[1], "sim://2"));
	assert_images_kept(o, &before);
	assert_int_equal(owner_change(o, &again), PERSEAS_EINVAL);
	assert_non_null(strstr(o->p->upkeep.change.text, "in the roster already"));
	owner_die(o);
	reopen_with(o, 1, 1, PERSEAS_TAKEOVER);
	assert_int_equal(owner_stat(o).live, 3);
}

/* The admission counts the roster as it stays: without the member, two mirrors could not give W. */
TEST(exchanged_addresses_are_recorded_with_all_of_two)
{
	struct owner *o = begin_test(2, 2);
	struct before before;

	note_before(o, &before);
	for (unsigned i = 0; i < 2; i++) {
		direct_crash(o->d, i);
		o->d->leads[i] = 1 - i;
	}
	direct_keep(o->d, o->p);
	for (unsigned i = 0; i < 2; i++)
		direct_start(o->d, i);
	OWNER_KEEP_UNTIL(o, owner_stat(o).live == 2);
	replace_member(o, "sim://0", "sim://0");
	assert_true(is_listed_at(o, before.images[1], "sim://0"));
	assert_images_kept(o, &before);
}

/* Only a session proves that the mirror is there. */
TEST(the_address_of_a_dead_mirror_is_not_recorded)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, "sim://1", "sim://1",
		                                      0, 0 };
	struct before before;
	struct owner *o = begin_exchanged(&before);

	direct_crash(o->d, 2);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_change(o, &wanted), PERSEAS_EINVAL);
	assert_true(is_listed_at(o, before.images[2], "sim://2"));
	assert_images_kept(o, &before);
}
