/*
 * test_judge.c - what a set of headers means: the order of rosters, and cases that the library and
 * the command once judged otherwise. test_judge_random.c has random sets.
 */
#include "judge_rig.h"

struct unit_fixture unit_fixture = { setup_scene, NULL };

/* --- the order of rosters --- */

static Perseas__Roster roster_of(uint64_t epoch, uint64_t version)
{
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;

	roster.epoch = epoch;
	roster.version = version;
	return roster;
}

/* Rosters of an owner that was fenced may have counted on. */
TEST(of_two_rosters_the_later_owners_is_newer)
{
	const Perseas__Roster many = roster_of(5, 9), later = roster_of(6, 2);

	assert_true(ps_roster_newer(&later, &many));
	assert_false(ps_roster_newer(&many, &later));
}

/* Compares every two and every three of several rosters, and NULL, by (epoch, version). */
TEST(the_order_of_rosters_is_total)
{
	enum { EPOCHS = 3, VERSIONS = 3, COUNT = EPOCHS * VERSIONS + 1 };
	Perseas__Roster rosters[COUNT - 1];
	const Perseas__Roster *all[COUNT] = { NULL };

	for (int i = 0; i + 1 < COUNT; i++) {
		rosters[i] = roster_of(UINT64_MAX - (unsigned)(i / VERSIONS),
		                       UINT64_MAX - (unsigned)(i % VERSIONS));
		all[i + 1] = &rosters[i];
	}
	for (int a = 0; a < COUNT; a++)
		for (int b = 0; b < COUNT; b++) {
			const int order = ps_roster_order(all[a], all[b]);

			assert_int_equal(order == 0, a == b);
			assert_true((order < 0) == ps_roster_newer(all[b], all[a]));
			assert_int_equal(order > 0, ps_roster_newer(all[a], all[b]));
			for (int c = 0; order > 0 && c < COUNT; c++)
				if (ps_roster_newer(all[b], all[c]))
					assert_true(ps_roster_newer(all[a], all[c]));
		}
}

/* A mirror that was away may have a next roster that the settled one has overtaken. */
TEST(a_next_roster_may_be_overtaken)
{
	Perseas__Header header = PERSEAS__HEADER__INIT;
	Perseas__Roster settled = roster_of(5, 3), next = roster_of(5, 4);

	header.roster = &settled;
	assert_ptr_equal(ps_roster_newest(&header), &settled);
	header.next_roster = &next;
	assert_ptr_equal(ps_roster_newest(&header), &next);
	settled.epoch = 6;
	assert_ptr_equal(ps_roster_newest(&header), &settled);
}

/* --- which store --- */

/* perseas status once took the store that was never made, for it has more images. */
TEST(a_making_gives_way_to_a_store, struct scene *s)
{
	list(s, 0, 0, 1, 3);
	list(s, 1, 0, 1, 4);
	tell(s, 0, 0, 0, 0)->state = PERSEAS__STATE__STATE_CREATING;
	tell(s, 0, 1, 0, 0)->state = PERSEAS__STATE__STATE_CREATING;
	assert_judged_store(s, PS_OUTLOOK_UNFINISHED, 0);
	assert_int_equal(s->j.member_set, 3);
	tell(s, 1, 2, 0, 5);
	assert_judged_store(s, PS_OUTLOOK_OPENS, 1);
	assert_int_equal(s->j.image_set, 4);
}

/* One settled image decides the creation: an open settles the others first. */
TEST(a_making_that_is_decided_opens, struct scene *s)
{
	list(s, 0, 0, 2, 7);
	tell(s, 0, 0, 0, 0);
	tell(s, 0, 1, 0, 0)->state = PERSEAS__STATE__STATE_CREATING;
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
	assert_int_equal(s->j.candidate_set, 1);
	s->told[0].is_excluded = true;
	assert_int_equal(judge(s), PS_OUTLOOK_UNFINISHED);
}

/* perseas status once took the first one that it was told of, and the library refused, also where a
 * third store, that it was told of later, had more images than either. */
TEST(two_stores_that_show_as_much_are_ambiguous, struct scene *s)
{
	for (unsigned store = 0; store < 3; store++)
		list(s, store, 0, 1, 6);
	tell(s, 0, 1, 0, 9);
	tell(s, 1, 1, 0, 5);
	assert_int_equal(judge(s), PS_OUTLOOK_AMBIGUOUS);
	tell(s, 2, 1, 0, 7);
	tell(s, 2, 2, 0, 8);
	assert_judged_store(s, PS_OUTLOOK_OPENS, 2);
	assert_int_equal(s->j.newest, 3);
}

/* A client that may create stores made one of this name on three spare daemons. It shows more
 * images than the store with the data, which has one of its three mirrors down. */
TEST(a_store_does_not_win_by_its_number_of_images, struct scene *s)
{
	list(s, 0, 0, 2, 0x7);
	list(s, 1, 0, 2, 0x7);
	tell_all(s, 0, 0x7, 0, 0);
	tell(s, 1, 0, 0, 450000);
	assert_judged_store(s, PS_OUTLOOK_OPENS, 0);
	assert_null(s->j.rival_id);
	tell(s, 1, 1, 0, 450000);
	assert_judged_store(s, PS_OUTLOOK_AMBIGUOUS, 1);
	assert_memory_equal(s->j.rival_id, store_of(0).data, PS_ID_SIZE);
}

/* R of the one are there, and R and T of the other. W cannot be had of either. */
TEST(the_store_that_shows_more_of_its_roster_is_meant, struct scene *s)
{
	list(s, 0, 0, 3, 0x7);
	list(s, 1, 0, 3, 0x7);
	tell(s, 0, 0, 0, 4);
	tell(s, 1, 0, 0, 4);
	assert_int_equal(judge(s), PS_OUTLOOK_AMBIGUOUS);
	tell(s, 0, 1, 0, 4);
	assert_judged_store(s, PS_OUTLOOK_BELOW_W, 0);
	tell_all(s, 1, 0x6, 0, 4);
	assert_int_equal(judge(s), PS_OUTLOOK_AMBIGUOUS);
}

/* The roster of the right store has an address at which another store is now. */
TEST(a_store_that_nobody_named_is_not_meant, struct scene *s)
{
	list(s, 0, 0, 1, 0x1);
	list(s, 1, 0, 1, 0x1);
	tell(s, 0, 0, 0, 4);
	tell(s, 1, 0, 0, 4);
	assert_int_equal(judge(s), PS_OUTLOOK_AMBIGUOUS);
	for (unsigned store = 0; store < 2; store++) {
		s->told[0].from_roster = store == 1;
		s->told[1].from_roster = store == 0;
		assert_judged_store(s, PS_OUTLOOK_OPENS, store);
	}
	s->told[0].from_roster = s->told[1].from_roster = true;
	assert_int_equal(judge(s), PS_OUTLOOK_AMBIGUOUS);
}

/* A client that may create stores made an image under the id of a member on a named mirror. */
TEST(an_image_under_anothers_id_gives_way)
{
	for (unsigned added = 0; added < 2; added++) {
		struct scene s = { .count = 0 };

		list(&s, 0, 0, 2, 0x7);
		tell(&s, 0, 0, 0, 4)->promised_epoch = 1;
		tell(&s, 0, 1, 0, 0);
		s.told[1].epoch = 0;
		s.told[1].address = address_of(0, 6);
		tell(&s, 0, 1, 0, 9)->promised_epoch = 1;
		s.told[2].from_roster = added;
		assert_int_equal(judge(&s), PS_OUTLOOK_OPENS);
		assert_int_equal(s.j.member_set, 5);
		assert_int_equal(s.j.duplicate_set, 0);
		assert_int_equal(s.told[s.j.newest].seq, 9);
		/* Before the first claim of all nothing tells them apart, and nothing was lost. */
		s.headers[2].promised_epoch = 0;
		assert_int_equal(judge(&s), PS_OUTLOOK_OPENS);
	}
}

/* A client that may create stores made images with the id of this store, and a roster of the same
 * number with one of its mirrors, or none, as the third. Either set may be told first. */
TEST(a_roster_that_was_made_up_gives_way)
{
	for (unsigned first = 0; first < 2; first++)
		for (unsigned mask = 0x34; mask <= 0x70; mask += 0x3c) {
			struct scene s = { .count = 0 };

			list(&s, 0, 0, 2, 0x7);
			list(&s, 0, 1, 2, mask);
			s.of[0].roster[1].version = s.of[0].roster[0].version;
			for (unsigned k = 0; k < 2 && !first; k++)
				tell(&s, 0, k, 0, 9);
			for (unsigned k = 4; k < 6 + (mask == 0x70); k++) {
				tell(&s, 0, k, 1, 0);
				s.told[s.count - 1].epoch = 0;
			}
			for (unsigned k = 0; k < 2 && first; k++)
				tell(&s, 0, k, 0, 9);
			assert_int_equal(judge(&s), PS_OUTLOOK_OPENS);
			assert_ptr_equal(s.j.settled, &s.of[0].roster[0]);
			assert_int_equal(__builtin_popcount(s.j.member_set), 2);
			assert_int_equal(s.told[s.j.newest].seq, 9);
		}
}

/* Many images that left the roster, of a store that went on elsewhere. */
TEST(one_listed_image_outweighs_those_that_are_not, struct scene *s)
{
	list(s, 0, 0, 1, 0x80);
	list(s, 1, 0, 1, 3);
	for (unsigned k = 0; k < 4; k++)
		tell(s, 0, k, 0, 9);
	tell(s, 1, 0, 0, 5);
	assert_judged_store(s, PS_OUTLOOK_BELOW_R, 1);
	tell(s, 1, 1, 0, 5);
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
}

/* --- which rosters, and who is a member --- */

/* Mirror 0 makes way for mirror 3. perseas status once said that its image counts for nothing, and
 * what it holds beyond the others was not the newest state that it named. */
TEST(a_member_that_leaves_counts_until_the_change_is_settled, struct scene *s)
{
	list(s, 0, 0, 2, 0x7);
	list(s, 0, 1, 2, 0xe);
	tell(s, 0, 0, 0, 9);
	tell(s, 0, 1, 0, 7)->next_roster = &s->of[0].roster[1];
	tell(s, 0, 3, 0, 7)->next_roster = &s->of[0].roster[1];
	s->headers[2].marked = true;
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
	assert_ptr_equal(s->j.settled, &s->of[0].roster[0]);
	assert_ptr_equal(s->j.next, &s->of[0].roster[1]);
	assert_true(s->j.is_decided);
	assert_int_equal(s->j.member_set, 7);
	assert_int_equal(s->j.newest, 0);
	/* Two of the old roster must be there, too. */
	s->told[0].is_excluded = true;
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_R);
	/* Somebody has it settled: mirror 0 has left. */
	s->told[0].is_excluded = false;
	s->headers[1].roster = &s->of[0].roster[1];
	s->headers[1].next_roster = NULL;
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
	assert_null(s->j.next);
	assert_false(s->j.is_decided);
	assert_int_equal(s->j.member_set, 6);
	assert_int_equal(s->told[s->j.newest].seq, 7);
}

/* Mirror 0 left by an earlier change, and has the mark of that one. */
TEST(a_mark_counts_for_its_own_change_alone, struct scene *s)
{
	list(s, 0, 0, 2, 0x7);
	list(s, 0, 1, 2, 0x6);
	list(s, 0, 2, 2, 0xe);
	tell(s, 0, 0, 0, 9)->next_roster = &s->of[0].roster[1];
	s->headers[0].marked = true;
	tell(s, 0, 1, 1, 7)->next_roster = &s->of[0].roster[2];
	tell(s, 0, 2, 1, 7)->next_roster = &s->of[0].roster[2];
	judge(s);
	assert_ptr_equal(s->j.next, &s->of[0].roster[2]);
	assert_false(s->j.is_decided);
}

/* A spill that was put back is a second image with the same parent. One of the two is the member,
 * and the same one in any order of answers. If the parent is there as well, neither is. */
TEST(of_two_loaded_from_the_same_one_counts, struct scene *s)
{
	list(s, 0, 0, 2, 0x7);
	tell(s, 0, 5, 0, 1)->parent_id = image_of(0, 0);
	tell(s, 0, 6, 0, 2)->parent_id = image_of(0, 0);
	assert_judged(s, PS_OUTLOOK_BELOW_R, 2); /* the lower id */
	assert_int_equal(s->j.loaded_set, 2);
	assert_ptr_equal(s->j.member_ids[1], image_of(0, 0).data);
	s->headers[0].image_id = image_of(0, 6);
	s->headers[1].image_id = image_of(0, 5);
	assert_judged(s, PS_OUTLOOK_BELOW_R, 1);
	tell(s, 0, 0, 0, 1);
	assert_judged(s, PS_OUTLOOK_BELOW_R, 4);
	assert_int_equal(s->j.loaded_set, 0);
}

/* The image of the first `count` mirrors is number 5, which was loaded from that of number 1. */
static void load_first(struct scene *s, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		s->headers[i].image_id = image_of(0, 5);
		s->headers[i].parent_id = image_of(0, 1);
	}
}

/* One image answers at two addresses, but has one vote. */
TEST(one_image_has_one_voice, struct scene *s)
{
	list(s, 0, 0, 2, 0x7);
	tell(s, 0, 1, 0, 4);
	tell(s, 0, 1, 0, 4);
	assert_judged(s, PS_OUTLOOK_BELOW_R, 1);
	assert_int_equal(s->j.duplicate_set, 2);
	assert_int_equal(s->j.duplicate_of[1], 0);
	load_first(s, 2);
	assert_judged(s, PS_OUTLOOK_BELOW_R, 1);
	assert_int_equal(s->j.duplicate_set, 2);
}

/* Two members have lost their images, and both addresses lead to one daemon: it gets one image. */
TEST(one_empty_daemon_is_one_member)
{
	static const uint8_t here[PS_ID_SIZE] = { 1 }, there[PS_ID_SIZE] = { 2 };
	struct scene s = { .count = 0 };

	list(&s, 0, 0, 3, 0x1f);
	for (unsigned i = 0; i < 3; i++)
		tell(&s, 0, i, 0, 4);
	s.count = 5;
	for (unsigned i = 3; i < 5; i++)
		s.told[i] = (struct ps_told){ .has_no_image = true, .address = address_of(0, i) };
	assert_int_equal(judge(&s), PS_OUTLOOK_OPENS);
	assert_int_equal(s.j.duplicate_set, 0); /* they tell no identity */
	s.told[3].daemon = here;
	s.told[4].daemon = there;
	judge(&s);
	assert_int_equal(s.j.duplicate_set, 0);
	s.told[4].daemon = here;
	judge(&s);
	assert_int_equal(s.j.duplicate_set, 16);
	assert_int_equal(s.j.duplicate_of[4], 3);
}

/* The same if nobody named one of the two, for instance where a roster's address leads to this
 * host's own daemon. It has no vote, is no member that lost its memory, and does not keep the store
 * from opening. */
TEST(an_address_that_leads_elsewhere_counts_for_nothing, struct scene *s)
{
	list(s, 0, 0, 2, 0x7);
	tell(s, 0, 1, 0, 4);
	tell(s, 0, 1, 0, 4);
	s->told[1].from_roster = true;
	s->told[1].address = address_of(0, 2);
	assert_judged(s, PS_OUTLOOK_BELOW_R, 1);
	assert_int_equal(s->j.counted_set, 1);
	assert_int_equal(s->j.duplicate_set, 2);
	assert_memory_equal(s->j.member_ids[1], image_of(0, 2).data, PS_ID_SIZE);
	tell(s, 0, 0, 0, 4);
	assert_judged(s, PS_OUTLOOK_OPENS, 5);
	assert_int_equal(s->j.duplicate_set, 2);
	/* Where W needs all, it cannot be made anew. */
	s->of[0].roster[0].acks = 3;
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_W);
	s->of[0].roster[0].acks = 2;
	/* The same if both were loaded from a spill. */
	load_first(s, 2);
	assert_judged(s, PS_OUTLOOK_OPENS, 5);
	assert_int_equal(s->j.duplicate_set, 2);
}

/* The first address leads to the third member. The mirror at the third address may be the first
 * member, whether it answers later, or is empty now. A mirror that does not answer goes first. */
TEST(an_address_whose_member_is_seen_elsewhere_stands_for_the_rest, struct scene *s)
{
	list(s, 0, 0, 2, 0x7);
	tell(s, 0, 2, 0, 4);
	s->told[0].address = address_of(0, 0);
	s->told[s->count++] = (struct ps_told){ .address = address_of(0, 2) };
	s->told[s->count++] = (struct ps_told){ .address = address_of(0, 1) };
	assert_judged(s, PS_OUTLOOK_BELOW_R, 1);
	assert_memory_equal(s->j.member_ids[0], image_of(0, 2).data, PS_ID_SIZE);
	assert_memory_equal(s->j.member_ids[1], image_of(0, 0).data, PS_ID_SIZE);
	assert_memory_equal(s->j.member_ids[2], image_of(0, 1).data, PS_ID_SIZE);
	s->told[1].has_no_image = true;
	judge(s);
	assert_memory_equal(s->j.member_ids[1], image_of(0, 0).data, PS_ID_SIZE);
	list(s, 0, 0, 2, 0xf);
	tell(s, 0, 3, 0, 4);
	s->told[3].address = address_of(0, 1);
	s->told[2].address = address_of(0, 3);
	judge(s);
	assert_memory_equal(s->j.member_ids[2], image_of(0, 0).data, PS_ID_SIZE);
	assert_memory_equal(s->j.member_ids[1], image_of(0, 1).data, PS_ID_SIZE);
}

/* A named mirror has it, in any order; of two others, the one where the roster lists it. */
TEST(an_image_is_where_the_roster_lists_it, struct scene *s)
{
	list(s, 0, 0, 2, 0x7);
	tell(s, 0, 1, 0, 4);
	tell(s, 0, 1, 0, 4);
	tell(s, 0, 1, 0, 4);
	s->told[0].from_roster = s->told[1].from_roster = s->told[2].from_roster = true;
	s->told[0].address = address_of(0, 2);
	s->told[2].address = NULL;
	judge(s);
	assert_int_equal(s->j.member_set, 2);
	assert_int_equal(s->j.duplicate_set, 5);
	s->told[2].from_roster = false;
	judge(s);
	assert_int_equal(s->j.member_set, 4);
	assert_int_equal(s->j.duplicate_set, 3);
	load_first(s, 3);
	judge(s);
	assert_int_equal(s->j.member_set, 4);
	assert_int_equal(s->j.duplicate_set, 3);
}

TEST(an_image_weighs_once, struct scene *s)
{
	list(s, 0, 0, 1, 0x3);
	list(s, 1, 0, 1, 0x3);
	tell(s, 0, 0, 0, 4);
	tell(s, 1, 0, 0, 4);
	tell(s, 0, 0, 0, 4);
	s->told[2].from_roster = true;
	assert_int_equal(judge(s), PS_OUTLOOK_AMBIGUOUS);
}

/* --- what an open would come to --- */

/* Three mirrors, W = 2: two voices make the state known. */
TEST(r_must_have_a_voice, struct scene *s)
{
	Perseas__Header *other;

	list(s, 0, 0, 2, 0x7);
	assert_int_equal(judge(s), PS_OUTLOOK_NOTHING);
	tell(s, 0, 0, 0, 4);
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_R);
	assert_int_equal(s->j.newest, 0);
	other = tell(s, 0, 1, 0, 9);
	other->state = PERSEAS__STATE__STATE_JOINING;
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_R);
	other->harmless = true;
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
	assert_int_equal(s->j.newest, 0);
	other->state = PERSEAS__STATE__STATE_CONSISTENT;
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
	assert_int_equal(s->j.newest, 1);
	s->told[1].has_slot = false;
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_R);
	s->told[1] = (struct ps_told){ .has_no_image = true, .address = address_of(0, 1) };
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_R);
}

/* Three mirrors, W = 3: R is 1, T is 2, and the third may be made anew if it lost its memory. */
TEST(t_must_be_touched_and_w_be_had, struct scene *s)
{
	list(s, 0, 0, 3, 0x7);
	tell(s, 0, 0, 0, 4);
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_T);
	tell_empty(s, 0, 2);
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_T);
	tell(s, 0, 1, 0, 3);
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
	assert_ptr_equal(s->j.member_ids[1], image_of(0, 2).data);
	s->told[1].has_no_image = false;
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_W);
	s->told[1].has_no_image = true;
	s->told[1].address = NULL;
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_W);
}

/* --- forks --- */

/* Its own roster lists it, and these have none of what that has; whatever is newer. */
TEST(an_image_of_a_fork_is_not_replaced, struct scene *s)
{
	Perseas__Header *header;

	list(s, 0, 0, 2, 0x3);
	list(s, 0, 1, 2, 0x30);
	list(s, 0, 2, 2, 0x21);
	tell(s, 0, 0, 0, 4);
	header = tell(s, 0, 4, 1, 9);
	assert_true(ps_image_is_forked(header, &s->of[0].roster[0], NULL));
	assert_false(ps_image_is_forked(header, &s->of[0].roster[0], &s->of[0].roster[2]));
	assert_false(ps_image_is_forked(header, &s->of[0].roster[2], NULL));
	header->roster = &s->of[0].roster[0];
	assert_false(ps_image_is_forked(header, &s->of[0].roster[0], NULL));
	header->roster = &s->of[0].roster[2];
	assert_false(ps_image_is_forked(header, &s->of[0].roster[1], NULL));
	header->roster = &s->of[0].roster[1];
	/* The image also counts by the next roster; an image that is being copied does not. */
	header->roster = &s->of[0].roster[2];
	header->next_roster = &s->of[0].roster[1];
	list(s, 0, 3, 1, 0x4);
	assert_true(ps_image_is_forked(header, &s->of[0].roster[3], NULL));
	header->next_roster = NULL;
	assert_false(ps_image_is_forked(header, &s->of[0].roster[3], NULL));
	/* The image counts by its parent's id, and not with an id that no roster has. */
	header->roster = &s->of[0].roster[1];
	header->image_id = image_of(0, 6);
	assert_false(ps_image_is_forked(header, &s->of[0].roster[0], NULL));
	header->parent_id = image_of(0, 4);
	assert_true(ps_image_is_forked(header, &s->of[0].roster[0], NULL));
	list(s, 0, 3, 1, 0x40);
	assert_false(ps_image_is_forked(header, &s->of[0].roster[3], NULL));
}

/* One image of three does not know the newest state, and hinders nobody. */
TEST(what_is_left_of_a_roster_stops_no_open, struct scene *s)
{
	list(s, 0, 0, 2, 0x7);
	list(s, 0, 1, 1, 0x10);
	tell(s, 0, 0, 0, 4);
	tell(s, 0, 4, 1, 9);
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
	list(s, 0, 0, 2, 0x3);
	assert_int_equal(judge(s), PS_OUTLOOK_FORKED);
	s->told[0].from_roster = true;
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
}

/* Once a change is decided, the roster before it does not say whose image this is. */
TEST(a_decided_change_says_who_has_a_fork, struct scene *s)
{
	Perseas__Header *joins, *leaves;

	list(s, 0, 0, 2, 0x3);
	list(s, 0, 1, 2, 0x6);
	list(s, 0, 2, 2, 0x9);
	joins = tell(s, 0, 2, 0, 4);
	leaves = tell(s, 0, 0, 0, 4);
	joins->next_roster = leaves->next_roster = &s->of[0].roster[1];
	assert_false(ps_image_is_forked(joins, &s->of[0].roster[2], NULL));
	joins->marked = leaves->marked = true;
	assert_true(ps_image_is_forked(joins, &s->of[0].roster[2], NULL));
	list(s, 0, 3, 1, 0x40);
	assert_false(ps_image_is_forked(leaves, &s->of[0].roster[3], NULL));
	leaves->marked = false;
	assert_true(ps_image_is_forked(leaves, &s->of[0].roster[3], NULL));
}

/* The roster has the address of one that shows a fork's image: an open has no W. */
TEST(a_member_with_an_image_of_a_fork_is_not_made_anew, struct scene *s)
{
	list(s, 0, 0, 1, 0x10);
	list(s, 0, 1, 2, 0x3);
	tell(s, 0, 0, 1, 4);
	tell(s, 0, 4, 0, 9);
	s->told[1].address = address_of(0, 1);
	assert_int_equal(judge(s), PS_OUTLOOK_FORKED);
	/* The address comes from the roster, so the client means the other history. */
	s->told[1].from_roster = true;
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_W);
	assert_ptr_equal(s->j.member_ids[1], image_of(0, 1).data);
	list(s, 0, 0, 1, 0x11);
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
}
