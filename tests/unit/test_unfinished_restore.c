/*
 * test_unfinished_restore.c - what status says of an unfinished restore of which some images are
 * deleted already.
 */
#include "../support/unit.h"

#include "../../client/command/ask/ask.h"

enum { MIRRORS = 3 };

struct store {
	struct ps_images images;
	struct ps_peers peers;
	Perseas__Roster roster;
	Perseas__Member members[MIRRORS], *list[MIRRORS];
	Perseas__StoreStatus last;
	Perseas__Slot slot;
};

/* The first two mirrors have deleted their images, and the last one has an empty one. */
static void fill_store(struct store *s)
{
	static char addresses[MIRRORS][16] = { "10.0.0.1:7170", "10.0.0.2:7170", "10.0.0.3:7170" };
	static uint8_t ids[MIRRORS][PS_ID_SIZE] = { { 1 }, { 2 }, { 3 } };

	*s = (struct store){ .roster = PERSEAS__ROSTER__INIT };
	s->peers.count = MIRRORS;
	for (unsigned i = 0; i < MIRRORS; i++) {
		perseas__member__init(&s->members[i]);
		s->members[i].address = addresses[i];
		s->members[i].image_id = (ProtobufCBinaryData){ PS_ID_SIZE, ids[i] };
		s->list[i] = &s->members[i];
		snprintf(s->peers.addresses[i].text, sizeof(s->peers.addresses[i].text), "%s",
		         addresses[i]);
		s->images.errors[i].code = i < MIRRORS - 1 ? PERSEAS_ENOSTORE : 0;
	}
	s->roster.members = s->list;
	s->roster.n_members = MIRRORS;
	s->roster.acks = 2;
	s->roster.filling = true;
	perseas__store_status__init(&s->last);
	perseas__slot__init(&s->slot);
	s->last.slot = &s->slot;
	s->images.peers = &s->peers;
	s->images.told[MIRRORS - 1] = s->images.newest = &s->last;
	s->images.judged.outlook = PS_OUTLOOK_BELOW_R;
	s->images.judged.settled = &s->roster;
	s->images.judged.member_set = 1u << (MIRRORS - 1);
	s->images.judged.member_ids[MIRRORS - 1] = ids[MIRRORS - 1];
}

TEST(what_is_left_of_an_unfinished_restore_is_one)
{
	struct store s;

	fill_store(&s);
	assert_true(ps_images_is_unfinished(&s.images));
	s.roster.filling = false;
	assert_false(ps_images_is_unfinished(&s.images));
}

TEST(a_mirror_that_did_not_answer_may_have_what_was_restored)
{
	struct store s;

	fill_store(&s);
	s.images.errors[1].code = PERSEAS_EUNREACHABLE;
	assert_true(ps_images_is_removal_remainder(&s.images));
	assert_false(ps_images_is_unfinished(&s.images));
	fill_store(&s);
	s.peers.count--;
	assert_false(ps_images_is_unfinished(&s.images));
}

/* A roster may list a mirror at another address than the one at which it was asked. */
TEST(the_image_that_is_left_is_known_wherever_it_was_seen)
{
	static char elsewhere[] = "10.0.0.4:7170";
	struct store s;

	fill_store(&s);
	s.members[MIRRORS - 1].address = elsewhere;
	assert_true(ps_images_is_unfinished(&s.images));
	s.members[0].address = elsewhere;
	assert_false(ps_images_is_unfinished(&s.images));
}

TEST(an_image_that_has_a_transaction_is_no_unfinished_restore)
{
	struct store s;

	fill_store(&s);
	s.slot.seq = 1;
	assert_false(ps_images_is_removal_remainder(&s.images));
	assert_false(ps_images_is_unfinished(&s.images));
}
