/*
 * test_handover.c - what perseas move says of a handover, from what each mirror noted of it: how
 * long it took, whether it went as planned, and what was lost.
 */
#include "../../client/command/change/handover.h"
#include "../../client/command/ask/standbys.h"
#include "../../proto/control/envelope.h"
#include "../support/unit.h"

enum { MIRRORS = 3, EPOCH = 5 };

/* Three mirrors that knew of a handover to the standby of mark 1, W = 2; the next owner lives. */
struct desk {
	struct ps_peers peers;
	struct ps_images images;
	Perseas__Roster roster;
	Perseas__StoreStatus status[MIRRORS];
	Perseas__Header header[MIRRORS];
	Perseas__Handover noted[MIRRORS];
	Perseas__Slot last[MIRRORS], first[MIRRORS];
	struct ps_handover handover;
	struct ps_handover_outcome outcome;
};

static uint8_t owner_id[PS_ID_SIZE] = { 1, 1, 1, 1, 9 };
static uint8_t move_id[PS_ID_SIZE] = { 7 }, other_id[PS_ID_SIZE] = { 8 };

static int setup(void **state)
{
	static struct desk desk;

	memset(&desk, 0, sizeof(desk));
	perseas__roster__init(&desk.roster);
	desk.roster.acks = 2;
	desk.peers.count = MIRRORS;
	desk.images.peers = &desk.peers;
	desk.images.judged.settled = &desk.roster;
	desk.images.judged.image_set = 7;
	memcpy(desk.handover.id, move_id, PS_ID_SIZE);
	memcpy(desk.handover.to, owner_id, PS_OWNER_MARK);
	desk.handover.epoch = EPOCH;
	for (unsigned i = 0; i < MIRRORS; i++) {
		perseas__store_status__init(&desk.status[i]);
		perseas__header__init(&desk.header[i]);
		perseas__handover__init(&desk.noted[i]);
		perseas__slot__init(&desk.last[i]);
		perseas__slot__init(&desk.first[i]);
		desk.images.told[i] = &desk.status[i];
		desk.status[i].header = &desk.header[i];
		desk.status[i].live = true;
		desk.status[i].owner_address = (char *)(uintptr_t) "192.0.2.1:9";
		desk.status[i].handover = &desk.noted[i];
		desk.header[i].promised_epoch = EPOCH + 1;
		desk.header[i].promised_owner = (ProtobufCBinaryData){ PS_ID_SIZE, owner_id };
		desk.noted[i].id = (ProtobufCBinaryData){ PS_ID_SIZE, move_id };
		desk.noted[i].released = true;
		desk.noted[i].closing_ns = 100 + i;
		desk.noted[i].pause_ns = 20 - i;
		desk.noted[i].last = &desk.last[i];
		desk.noted[i].first = &desk.first[i];
		desk.last[i].seq = desk.first[i].seq = 40;
	}
	*state = &desk;
	return 0;
}

struct unit_fixture unit_fixture = { setup, NULL };

static bool is_over(struct desk *desk)
{
	ps_handover_outcome_collect(&desk->outcome, &desk->handover, &desk->images);
	return ps_handover_outcome_is_final(&desk->outcome, &desk->images);
}

TEST(the_longest_times_are_told, struct desk *desk)
{
	const struct ps_handover_outcome *outcome = &desk->outcome;

	assert_true(is_over(desk));
	assert_int_equal(outcome->closing_ns, 102);
	assert_int_equal(outcome->pause_ns, 20);
	assert_int_equal(outcome->opened_count, 3);
	assert_int_equal(outcome->seq, 40);
	assert_int_equal(outcome->lost + outcome->in_doubt, 0);
	assert_int_equal(outcome->epoch, EPOCH + 1);
	assert_true(outcome->standby_owns && outcome->released);
	assert_string_equal(outcome->address, "192.0.2.1:9");
}

/* A transaction that two of three mirrors had must be there; one that a single mirror had may
 * be. */
TEST(what_w_mirrors_had_must_be_there, struct desk *desk)
{
	desk->last[2].seq = 42;
	assert_true(is_over(desk));
	assert_int_equal(desk->outcome.lost, 0);
	assert_int_equal(desk->outcome.in_doubt, 2);
	desk->last[0].seq = 41;
	assert_true(is_over(desk));
	assert_int_equal(desk->outcome.lost, 1);
	assert_int_equal(desk->outcome.in_doubt, 1);
	desk->first[1].seq = 42;
	assert_true(is_over(desk));
	assert_int_equal(desk->outcome.lost, 0);
}

/* The next owner has it open when W mirrors saw that, or all that were there the whole time. */
TEST(it_is_over_when_the_store_is_open, struct desk *desk)
{
	desk->noted[0].pause_ns = 0;
	assert_true(is_over(desk));
	desk->noted[1].pause_ns = 0;
	assert_false(is_over(desk));
	desk->noted[0].id.data = other_id;
	assert_false(is_over(desk));
	desk->status[1].handover = NULL;
	assert_true(is_over(desk));
	assert_int_equal(desk->outcome.opened_count, 1);
	desk->status[0].live = desk->status[1].live = desk->status[2].live = false;
	assert_false(is_over(desk));
}

/* Two mirrors had lost the owner's connection before it closed the store, and were told nothing. */
TEST(one_mirror_knows_that_the_store_was_closed, struct desk *desk)
{
	desk->noted[1].released = desk->noted[2].released = false;
	assert_true(is_over(desk));
	assert_true(desk->outcome.released);
}

TEST(what_was_not_planned_is_told, struct desk *desk)
{
	for (unsigned i = 0; i < MIRRORS; i++)
		desk->noted[i].released = false;
	assert_true(is_over(desk));
	assert_true(desk->outcome.standby_owns);
	assert_false(desk->outcome.released);
	desk->handover.to[0] = 2;
	assert_true(is_over(desk));
	assert_false(desk->outcome.standby_owns);
}

/* Nothing has happened yet. */
TEST(an_owner_that_has_not_let_go_is_no_end, struct desk *desk)
{
	for (unsigned i = 0; i < MIRRORS; i++) {
		desk->header[i].promised_epoch = EPOCH;
		desk->noted[i].closing_ns = desk->noted[i].pause_ns = 0;
	}
	assert_false(is_over(desk));
	assert_int_equal(desk->outcome.known_count, 3);
	assert_int_equal(desk->outcome.ended_count, 0);
	assert_int_equal(desk->outcome.epoch, EPOCH);
	assert_null(desk->outcome.address);
}

/* Two mirrors tell of the same one, and of another one of its name. */
TEST(standbys_are_listed_once_and_in_their_order, struct desk *desk)
{
	static uint8_t marks[3][PS_OWNER_MARK] = { { 1, 1, 1, 1 }, { 2 }, { 3 } };
	static const char *const names[3] = { "beta", "alpha", "beta" };
	Perseas__Standby standbys[3], *list[3];
	struct ps_standbys found;

	for (unsigned i = 0; i < 3; i++) {
		perseas__standby__init(&standbys[i]);
		standbys[i].name = (char *)(uintptr_t)names[i];
		standbys[i].order = 3 - i;
		standbys[i].mark = (ProtobufCBinaryData){ PS_OWNER_MARK, marks[i] };
		list[i] = &standbys[i];
	}
	desk->status[0].standbys = list;
	desk->status[0].n_standbys = 2;
	desk->status[2].standbys = list;
	desk->status[2].n_standbys = 3;
	ps_standbys_find(&found, &desk->images);
	assert_int_equal(found.count, 3);
	assert_ptr_equal(found.list[0], &standbys[2]);
	assert_ptr_equal(found.list[1], &standbys[1]);
	assert_ptr_equal(ps_standbys_find_named(&found, "beta", NULL), &standbys[2]);
	assert_null(ps_standbys_find_named(&found, "bet", NULL));
	/* Not to the owner, where another one has its name. */
	assert_ptr_equal(ps_standbys_find_named(&found, "beta", &standbys[2]), &standbys[0]);
	assert_ptr_equal(ps_standbys_find_named(&found, "beta", &standbys[0]), &standbys[2]);
	assert_ptr_equal(ps_standbys_find_named(&found, "alpha", &standbys[1]), &standbys[1]);
	assert_ptr_equal(ps_standbys_find_owner(&found, &desk->status[1]), &standbys[0]);
	desk->header[1].promised_owner.len = 0;
	assert_null(ps_standbys_find_owner(&found, &desk->status[1]));
}

/* A mirror of an older version tells of the same one without its copy. */
TEST(a_standby_has_the_copy_that_any_mirror_tells_of, struct desk *desk)
{
	static uint8_t mark[PS_OWNER_MARK] = { 1 };
	Perseas__Standby told[3], *lists[3];
	struct ps_standbys found;

	for (unsigned i = 0; i < 3; i++) {
		perseas__standby__init(&told[i]);
		told[i].name = (char *)(uintptr_t) "beta";
		told[i].mark = (ProtobufCBinaryData){ PS_OWNER_MARK, mark };
		told[i].memory = 100 * i;
		lists[i] = &told[i];
		desk->status[i].standbys = &lists[i];
		desk->status[i].n_standbys = 1;
	}
	ps_standbys_find(&found, &desk->images);
	assert_int_equal(found.count, 1);
	assert_ptr_equal(found.list[0], &told[1]);
}

/* R members of the roster: two of three. A mirror that the roster does not list tells nothing. */
TEST(who_is_to_be_next_must_reach_as_many_as_an_open_needs, struct desk *desk)
{
	static uint8_t ids[MIRRORS][PS_ID_SIZE] = { { 1 }, { 2 }, { 3 } };
	static uint8_t mark[PS_OWNER_MARK] = { 4 }, other[PS_OWNER_MARK] = { 5 };
	Perseas__Standby standby = PERSEAS__STANDBY__INIT, *list[] = { &standby };
	Perseas__Member members[MIRRORS], *listed[MIRRORS];

	standby.mark = (ProtobufCBinaryData){ PS_OWNER_MARK, mark };
	for (unsigned i = 0; i < MIRRORS; i++) {
		perseas__member__init(&members[i]);
		members[i].image_id = (ProtobufCBinaryData){ PS_ID_SIZE, ids[i] };
		listed[i] = &members[i];
		desk->images.judged.member_ids[i] = ids[i];
	}
	desk->roster.members = listed;
	desk->roster.n_members = MIRRORS;
	desk->images.judged.member_set = 7;
	desk->status[0].standbys = desk->status[2].standbys = list;
	desk->status[0].n_standbys = 1;
	assert_int_equal(ps_standby_count_members(&desk->images, mark), 1);
	assert_false(ps_standby_can_open(&desk->images, mark));
	desk->status[2].n_standbys = 1;
	assert_int_equal(ps_standby_count_members(&desk->images, mark), 2);
	assert_true(ps_standby_can_open(&desk->images, mark));
	assert_false(ps_standby_can_open(&desk->images, other));
	desk->images.judged.member_set = 3;
	assert_false(ps_standby_can_open(&desk->images, mark));
	desk->roster.acks = 3;
	assert_true(ps_standby_can_open(&desk->images, mark));
	desk->images.judged.settled = NULL;
	assert_false(ps_standby_can_open(&desk->images, mark));
}
