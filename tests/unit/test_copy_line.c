/*
 * test_copy_line.c - an owner whose mirror must be copied to asks the mirror's daemon for a turn,
 * and waits for it without holding up anything else. Another store's owner has the turn.
 */
#include "resync_rig.h"

#include "../../client/keeper/operator_orders.h"
#include "../../client/keeper/repair.h"
#include "../support/mirror.h"

struct unit_fixture unit_fixture = { setup, teardown };

enum { LONG = 50 /* rounds */ };

static struct peer other; /* the other store's owner */

/* Gives the turn at a mirror to another store. */
static void take_turn(struct fixture *f, unsigned mirror)
{
	Perseas__CopyTurnRequest request = PERSEAS__COPY_TURN_REQUEST__INIT;
	Perseas__CopyTurnReply reply = PERSEAS__COPY_TURN_REPLY__INIT;
	struct why why;

	peer_init(&other);
	request.store = (char *)"other";
	assert_int_equal(store_copy_turn(f->o->d->mirrors[mirror].stores, &other.session, &request,
	                                 &reply, &why),
	                 0);
	assert_int_equal(reply.place, 0);
}

static void give_turn_back(void)
{
	store_session_ended(&other.session);
}

/* Keeps for long; the mirror waits all the time, and is shown so. */
static void assert_waits(struct fixture *f, unsigned mirror, enum perseas_mirror_state state)
{
	for (unsigned i = 0; i < LONG; i++) {
		direct_keep(f->o->d, f->o->p);
		assert_int_equal(owner_state(f->o, mirror), state);
		assert_int_equal(put_big(f, 5000, 9, (uint8_t)i), 0);
	}
	assert_non_null(strstr(stat_of(f, mirror).trouble, "number 1 in its daemon's line"));
	assert_int_equal(stat_of(f, mirror).copy_place, 1);
	assert_int_equal(owner_stat(f->o).resync_bytes, 0);
}

TEST(a_copy_waits_for_its_turn, struct fixture *f)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	struct why why;

	miss_more_than_the_ring(f, 1);
	direct_start(f->o->d, 1);
	take_turn(f, 1);
	assert_waits(f, 1, PERSEAS_MIRROR_STALE);
	direct_keep_after(f->o->d, f->o->p, SLOW);
	assert_int_equal(store_status(f->o->d->mirrors[0].stores, STORE, &status, &why), 0);
	assert_non_null(strstr(status.mirrors[1]->trouble, "number 1 in its daemon's line"));
	assert_int_equal(status.mirrors[1]->copy_place, 1);
	assert_int_equal(status.mirrors[0]->copy_place, 0);
	give_turn_back();
	assert_catches_up(f, 1);
	assert_int_equal(stat_of(f, 1).copy_place, 0);
	assert_carries(f, 0);
}

TEST(a_mirror_that_died_does_not_wait, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	direct_start(f->o->d, 1);
	take_turn(f, 1);
	assert_waits(f, 1, PERSEAS_MIRROR_STALE);
	give_turn_back();
	direct_crash(f->o->d, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_DOWN);
	assert_int_equal(stat_of(f, 1).copy_place, 0);
}

/* An image that is made anew is not recorded by others before its turn. */
TEST(a_lost_image_waits_for_its_turn, struct fixture *f)
{
	uint8_t id[PS_ID_SIZE];

	memcpy(id, f->o->p->mirrors[1].image_id, PS_ID_SIZE);
	direct_crash(f->o->d, 1);
	memory_heap_lose(f->o->d->mirrors[1].memory, NULL);
	direct_start(f->o->d, 1);
	take_turn(f, 1);
	assert_waits(f, 1, PERSEAS_MIRROR_LOST);
	assert_memory_equal(f->o->p->mirrors[1].image_id, id, PS_ID_SIZE);
	assert_int_equal(memory_heap_pieces(f->o->d->mirrors[1].memory), 0);
	give_turn_back();
	assert_catches_up(f, 1);
}

/* A mirror that waits does not keep the owner from copying to another one. */
TEST_WITH(another_mirror_is_copied_to_meanwhile, setup_five, teardown, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	miss_more_than_the_ring(f, 2);
	direct_start(f->o->d, 1);
	take_turn(f, 1);
	assert_waits(f, 1, PERSEAS_MIRROR_STALE);
	direct_start(f->o->d, 2);
	assert_catches_up(f, 2);
	assert_int_equal(owner_state(f->o, 1), PERSEAS_MIRROR_STALE);
	give_turn_back();
	assert_catches_up(f, 1);
}

/* A mirror that missed only transactions which the ring still holds needs no turn. */
TEST(a_mirror_that_can_be_replayed_to_does_not_wait, struct fixture *f)
{
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 5000, 9, 7), 0);
	direct_start(f->o->d, 1);
	take_turn(f, 1);
	assert_catches_up(f, 1);
	give_turn_back();
}

/* Commits that wait for the mirror wait for no other store's copy. */
TEST(a_store_that_lacks_w_does_not_wait, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	direct_crash(f->o->d, 2);
	direct_start(f->o->d, 1);
	take_turn(f, 1);
	assert_catches_up(f, 1);
	give_turn_back();
}

/* A comparison by digests reads all of the image, and waits, too. */
TEST(a_comparison_waits_for_its_turn, struct fixture *f)
{
	direct_crash(f->o->d, 1);
	owner_die(f->o);
	owner_reopen(f->o);
	map_big(f);
	direct_start(f->o->d, 1);
	take_turn(f, 1);
	assert_waits(f, 1, PERSEAS_MIRROR_STALE);
	give_turn_back();
	assert_catches_up(f, 1);
}

/* Sets up two mirrors, and a store on one of them. */
static int setup_only_one(void **state)
{
	struct owner *o = owner_new(2);

	o->options.acks = 1;
	strcpy(o->d->list, "sim://0");
	return setup_owner(state, o);
}

/* A new member waits for its turn as long as it takes. */
TEST_WITH(a_new_member_waits_for_its_turn, setup_only_one, teardown, struct fixture *f)
{
	const struct perseas_roster_change add = { PERSEAS_ROSTER_ADD, NULL, "sim://1", 0, 0 };

	take_turn(f, 1);
	assert_int_equal(owner_change(f->o, &add), 0);
	for (unsigned i = 0; i < LONG; i++)
		direct_keep_after(f->o->d, f->o->p, SLOW);
	assert_waits(f, 1, PERSEAS_MIRROR_LOST);
	assert_non_null(strstr(f->o->p->upkeep.change.text, "number 1 in its daemon's line"));
	give_turn_back();
	assert_catches_up(f, 1);
}

/* Sets up a mirror 1 of the version before. */
static int setup_older(void **state)
{
	struct owner *o = owner_new(3);

	o->options.acks = 2;
	o->d->staged = true;
	o->d->mirrors[1].version = 8;
	return setup_owner(state, o);
}

/* A daemon of the version before is not asked. */
TEST_WITH(an_older_daemon_is_not_asked, setup_older, teardown, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	direct_start(f->o->d, 1);
	take_turn(f, 1);
	assert_catches_up(f, 1);
	give_turn_back();
}

/* The turn ends with the copy, so that the next store follows. */
TEST(a_turn_ends_with_the_copy, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	direct_start(f->o->d, 1);
	assert_catches_up(f, 1);
	take_turn(f, 1);
	give_turn_back();
}

/* The repair does not take a mirror that waits for its turn for one that went away. */
TEST(a_repair_waits_for_its_turn, struct fixture *f)
{
	static const uint8_t order_id[PS_ID_SIZE] = "an order's id";
	struct perseas *p = f->o->p;
	const struct ps_order_result *result;

	((uint8_t *)(uintptr_t)big_of(f, 1))[9] ^= 0x10;
	take_turn(f, 1);
	ps_admin_enter(p);
	ps_repair_begin(p, order_id);
	result = ps_orders_find_or_make_result(p, order_id);
	ps_admin_leave(p);
	owner_keep(f->o, 1, PERSEAS_MIRROR_STALE);
	assert_waits(f, 1, PERSEAS_MIRROR_STALE);
	assert_false(result->is_done);
	give_turn_back();
	OWNER_KEEP_UNTIL(f->o, result->is_done);
	assert_int_equal(result->code, 0);
	assert_image(f, 1);
}
