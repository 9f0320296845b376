/*
 * test_judge_key.c - which images belong to a store of level 1, by the key that its rosters name.
 */
#include "judge_rig.h"

struct unit_fixture unit_fixture = { setup_scene, NULL };

/* Roster r of the store is of level 1; hash 0: the store id is made of the key. */
static void raise_roster(struct scene *s, unsigned store, unsigned r, uint8_t hash)
{
	static uint8_t hashes[256][32];
	Perseas__Roster *roster = &s->of[store].roster[r];

	hashes[hash][0] = hash;
	roster->level = 1;
	if (hash)
		roster->key_hash = (ProtobufCBinaryData){ sizeof(hashes[hash]), hashes[hash] };
}

/* Three images of level 0, which bear the id and list a real image, against two of the three real
 * ones: whatever epoch and numbers they tell. Without a real one nothing speaks against them. */
TEST(images_without_the_key_are_none_of_the_stores)
{
	for (uint8_t hash = 0; hash < 2; hash++) {
		struct scene s = { .count = 0 };

		list(&s, 0, 0, 2, 0x7);
		list(&s, 0, 3, 2, 0x74);
		raise_roster(&s, 0, 0, hash);
		for (unsigned k = 4; k < 7; k++)
			tell(&s, 0, k, 3, 0);
		assert_int_equal(judge(&s), PS_OUTLOOK_OPENS);
		assert_ptr_equal(s.j.settled, &s.of[0].roster[3]);
		tell(&s, 0, 0, 0, 5);
		assert_int_equal(judge(&s), PS_OUTLOOK_BELOW_R);
		tell(&s, 0, 1, 0, 6);
		assert_int_equal(judge(&s), PS_OUTLOOK_OPENS);
		assert_ptr_equal(s.j.settled, &s.of[0].roster[0]);
		assert_int_equal(s.j.newest, 4);
		assert_int_equal(s.j.image_set, 0x18);
	}
}

/* A store that is raised has its hash in the roster that is to come, where that is not settled. */
TEST(an_image_that_is_being_raised_is_of_the_store, struct scene *s)
{
	list(s, 0, 0, 2, 0x3);
	list(s, 0, 1, 2, 0x3);
	raise_roster(s, 0, 1, 7);
	tell(s, 0, 0, 0, 5)->next_roster = &s->of[0].roster[1];
	tell(s, 0, 1, 0, 5);
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
	assert_null(s->j.naming_roster);
	assert_int_equal(s->j.member_set, 0x3);
	s->headers[0].roster = &s->of[0].roster[1];
	s->headers[0].next_roster = NULL;
	s->headers[1].next_roster = &s->of[0].roster[1];
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
	assert_ptr_equal(s->j.naming_roster, &s->of[0].roster[1]);
	assert_int_equal(s->j.member_set, 0x3);
}

/* The image never heard of the key: it counts for nothing, and may be made anew like a lost one. */
TEST(an_image_from_before_the_raise_may_be_replaced, struct scene *s)
{
	list(s, 0, 0, 3, 0x7);
	list(s, 0, 1, 3, 0x7);
	raise_roster(s, 0, 1, 7);
	tell_all(s, 0, 0x3, 1, 5);
	tell(s, 0, 2, 0, 9);
	assert_judged(s, PS_OUTLOOK_OPENS, 0x3);
	assert_int_equal(s->j.newest, 0);
	assert_ptr_equal(s->j.member_ids[2], image_of(0, 2).data);
}

/* A client without the key made an image on mirror 2, by a roster that lists nothing else. If the
 * store was raised, it may be of a fork from before that, and nobody copies over it. */
TEST(only_a_raised_store_may_have_a_fork_without_the_key, struct scene *s)
{
	list(s, 0, 0, 1, 0x40);
	list(s, 0, 1, 3, 0x7);
	s->of[0].roster[1].level = 1;
	tell_all(s, 0, 0x3, 1, 5);
	tell(s, 0, 2, 0, 9)->image_id = image_of(0, 6);
	assert_judged(s, PS_OUTLOOK_OPENS, 0x3);
	raise_roster(s, 0, 1, 7);
	assert_int_equal(judge(s), PS_OUTLOOK_BELOW_W);
}

/* A key from which the id is derived outweighs any other; of two others neither wins. */
TEST(two_keys_of_one_id_are_ambiguous)
{
	for (unsigned turn = 0; turn < 2; turn++) {
		struct scene s = { .count = 0 };

		list(&s, 0, 0, 1, 0x3);
		list(&s, 0, 3, 1, 0x30);
		raise_roster(&s, 0, 0, 7);
		raise_roster(&s, 0, 3, 8);
		tell(&s, 0, turn ? 0 : 4, turn ? 0 : 3, 5);
		tell(&s, 0, turn ? 4 : 0, turn ? 3 : 0, 5);
		tell(&s, 0, turn ? 5 : 1, turn ? 3 : 0, 5);
		assert_int_equal(judge(&s), PS_OUTLOOK_AMBIGUOUS);
		assert_ptr_equal(s.j.rival_id, s.j.store_id);
		assert_string_equal(ps_judge_rival_note(&s.j), " (with another key)");
		s.of[0].roster[0].key_hash.len = 0;
		assert_int_equal(judge(&s), turn ? PS_OUTLOOK_BELOW_R : PS_OUTLOOK_OPENS);
		assert_ptr_equal(s.j.naming_roster, &s.of[0].roster[0]);
	}
}

/* Either key's images show too little, but more mirrors may answer. */
TEST(a_store_of_two_keys_does_not_give_way_to_another_store, struct scene *s)
{
	list(s, 0, 0, 1, 0x7);
	list(s, 0, 3, 1, 0x70);
	raise_roster(s, 0, 0, 7);
	raise_roster(s, 0, 3, 8);
	list(s, 1, 0, 2, 0x3);
	tell(s, 0, 0, 0, 9);
	tell(s, 0, 4, 3, 9);
	tell_all(s, 1, 0x3, 0, 5);
	assert_judged_store(s, PS_OUTLOOK_AMBIGUOUS, 1);
	assert_memory_equal(s->j.rival_id, store_of(0).data, PS_ID_SIZE);
	assert_string_equal(ps_judge_rival_note(&s->j), "");
}
