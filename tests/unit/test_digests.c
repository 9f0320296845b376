/*
 * test_digests.c - a mirror whose image another owner wrote is compared by digests before it is
 * overwritten, and sent what differs. Every test compares the image with the ledger, byte for byte.
 */
#include "resync_rig.h"

struct unit_fixture unit_fixture = { setup, teardown };

#define DIFFERENT "being sent what differs by digests: it was not adopted by this owner"

/* Another owner takes over while mirror 1 is away. */
static void change_owner(struct fixture *f)
{
	owner_die(f->o);
	owner_reopen(f->o);
	map_big(f);
}

/* Stores to the image of a mirror that is away, as an owner would have whose transaction was not
 * chosen. */
static void diverge(struct fixture *f, unsigned offset, uint8_t value)
{
	uint8_t *bytes = (uint8_t *)(uintptr_t)big_of(f, 1);

	assert_int_not_equal(bytes[offset], value);
	bytes[offset] = value;
}

/* Runs rounds until the digests of "big" are asked for. The piece is "big" as a whole. */
static void compare_big(struct fixture *f)
{
	const struct ps_resync *r = &f->o->p->upkeep.resync;

	for (unsigned i = 0;
	     r->state != PS_RESYNC_COMPARING || !r->next_segment_id || !r->requested_bytes; i++) {
		assert_true(i < ROUNDS);
		direct_keep(f->o->d, f->o->p);
	}
	assert_int_equal(r->next_segment_id, 1);
	assert_int_equal(r->requested_bytes, BIG);
	assert_non_null(strstr(stat_of(f, 1).trouble, "being compared by digests: "));
}

TEST(only_what_differs_is_sent, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	change_owner(f);
	diverge(f, BIG - 1, 99);
	diverge(f, 4 * GRANULE - 1, 98);
	diverge(f, 7 * GRANULE, 97);
	direct_start(f->o->d, 1);
	assert_being_sent(f, 1, DIFFERENT, 3 * GRANULE + BIG % GRANULE);
	assert_catches_up(f, 1);
	assert_carries(f, 0);
}
TEST_ALSO(only_what_differs_is_sent, setup_direct, teardown);

/* The owner sends a granule that changed after the key was drawn, whatever its digest said. */
TEST(what_changes_meanwhile_is_sent, struct fixture *f)
{
	direct_crash(f->o->d, 1);
	change_owner(f);
	direct_start(f->o->d, 1);
	compare_big(f);
	assert_int_equal(put_big(f, 3 * GRANULE, 5, 77), 0);
	assert_being_sent(f, 1, DIFFERENT, GRANULE);
	assert_catches_up(f, 1);
}
TEST_ALSO(what_changes_meanwhile_is_sent, setup_direct, teardown);

/* The application repeats a transaction that only the mirror has, and then takes it back. */
TEST(open_transactions_are_not_compared, struct fixture *f)
{
	perseas_tx_t *tx;

	direct_crash(f->o->d, 1);
	change_owner(f);
	diverge(f, 5 * GRANULE + 9, 101);
	assert_int_equal(perseas_begin(f->o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, f->big + 5 * GRANULE + 9, 1), 0);
	f->big[5 * GRANULE + 9] = 101;
	direct_start(f->o->d, 1);
	assert_being_sent(f, 1, DIFFERENT, GRANULE);
	perseas_abort(tx);
	assert_catches_up(f, 1);
}

/* The segments do not differ. All the same the copy leaves a log without a past, and a slot of the
 * present owner. */
TEST(equal_bytes_are_no_history, struct fixture *f)
{
	uint64_t size;
	uint8_t *log;

	direct_crash(f->o->d, 1);
	change_owner(f);
	log = (uint8_t *)(uintptr_t)memory_heap_piece(f->o->d->mirrors[1].memory, STORE, "log.1",
	                                              &size);
	assert_non_null(log);
	memset(log + size - 100, 0xaa, 100);
	direct_start(f->o->d, 1);
	assert_catches_up(f, 1);
	assert_int_equal(owner_stat(f->o).resyncs, 1);
	for (unsigned i = 1; i <= 100; i++)
		assert_int_equal(log[size - i], 0);
	assert_carries(f, 0);
}

/* A segment that is not mapped here is sent as a whole. */
TEST(what_is_not_mapped_is_not_compared, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	owner_die(f->o);
	owner_reopen(f->o);
	direct_start(f->o->d, 1);
	assert_being_sent(f, 1, DIFFERENT, BIG);
	assert_catches_up(f, 1);
}

/* The application unmaps the segment between the request and its answer. */
TEST(a_segment_is_unmapped_while_it_is_compared, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	change_owner(f);
	direct_start(f->o->d, 1);
	compare_big(f);
	assert_int_equal(perseas_unmap(f->o->p, f->big), 0);
	assert_being_sent(f, 1, DIFFERENT, GRANULE);
	assert_catches_up(f, 1);
}

/* A copy of the owner before broke. */
TEST(a_half_made_copy_is_compared, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	for (unsigned i = 0; i < 10; i += 2)
		assert_int_equal(put_big(f, i * GRANULE, 9, 11), 0);
	direct_start(f->o->d, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_RESYNCING);
	while (stat_of(f, 1).resync_done < 2 * GRANULE)
		direct_keep(f->o->d, f->o->p);
	direct_crash(f->o->d, 1);
	change_owner(f);
	direct_start(f->o->d, 1);
	assert_being_sent(f, 1, "being sent what differs by digests: a copy to it did not end",
	                  3 * GRANULE);
	assert_catches_up(f, 1);
}

/* The session breaks while the image is compared, and the next one compares it again: what was
 * equal then counts no more. */
TEST(digests_count_within_a_session, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	change_owner(f);
	direct_start(f->o->d, 1);
	compare_big(f);
	direct_keep(f->o->d, f->o->p);
	direct_crash(f->o->d, 1);
	diverge(f, 8 * GRANULE, 88);
	direct_start(f->o->d, 1);
	assert_being_sent(f, 1, DIFFERENT, 2 * GRANULE);
	assert_catches_up(f, 1);
}

/* Another mirror dies meanwhile, so that the image may not be overwritten any more (I8). The owner,
 * which lacks W now, claims its mirrors again, and copies beside. */
TEST(the_last_copies_are_not_overwritten, struct fixture *f)
{
	Perseas__Header *header;

	miss_more_than_the_ring(f, 1);
	change_owner(f);
	direct_start(f->o->d, 1);
	compare_big(f);
	direct_crash(f->o->d, 0);
	assert_catches_up(f, 1);
	header = header_of(f, 1);
	assert_int_equal(header->generation, 2);
	perseas__header__free_unpacked(header, NULL);
}

/* A segment is published meanwhile, which the image has not. */
TEST(segments_change_while_it_is_compared, struct fixture *f)
{
	void *more;

	miss_more_than_the_ring(f, 1);
	change_owner(f);
	direct_start(f->o->d, 1);
	compare_big(f);
	assert_int_equal(perseas_map(f->o->p, "more", 2 * (uint64_t)BIG, &more), 0);
	memset(more, 3, 2 * (size_t)BIG);
	assert_int_equal(perseas_publish(f->o->p), 0);
	assert_catches_up(f, 1);
	assert_memory_equal(image_of(f, 1, "segment-2"), more, 2 * (size_t)BIG);
}

/* The owner destroys the segment that it compares. */
TEST(a_segment_ends_while_it_is_compared, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	change_owner(f);
	direct_start(f->o->d, 1);
	compare_big(f);
	assert_int_equal(perseas_unmap(f->o->p, f->big), 0);
	assert_int_equal(perseas_segment_destroy(f->o->p, "big"), 0);
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
	assert_memory_equal(image_of(f, 1, "segment-0"), f->ledger->accounts, SIZE);
}

static int setup_before(void **state)
{
	struct owner *o = owner_new(3);

	o->options.acks = 2;
	o->d->mirrors[1].version = 8;
	return setup_owner(state, o);
}

/* A daemon of the version before is copied whole. */
TEST_WITH(an_older_daemon_is_copied_whole, setup_before, teardown, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	change_owner(f);
	direct_start(f->o->d, 1);
	assert_being_sent(
		f, 1,
		"being copied whole: it was not adopted by this owner, and its daemon's version "
		"gives no digests",
		SIZE + BIG);
	assert_catches_up(f, 1);
}

/* Digests are not asked for faster than resync_rate allows. */
TEST(digests_keep_to_the_rate, struct fixture *f)
{
	const struct ps_resync *r;
	uint64_t begun;

	miss_more_than_the_ring(f, 1);
	f->o->options.resync_rate = SIZE / 100;
	change_owner(f);
	direct_start(f->o->d, 1);
	r = &f->o->p->upkeep.resync;
	while (r->state != PS_RESYNC_COMPARING || !r->requested_bytes)
		direct_keep(f->o->d, f->o->p);
	assert_int_equal(r->requested_bytes, SIZE);
	begun = f->o->d->now;
	compare_big(f);
	assert_true(f->o->d->now - begun >= ps_ms(100000));
}

static const struct perseas_roster_change leaves = { PERSEAS_ROSTER_REMOVE, "sim://1", NULL, 0, 0 },
					  joins = { PERSEAS_ROSTER_ADD, NULL, "sim://1", 0, 0 };

/* Mirror 1 leaves the roster. Its image stays. */
static void leave(struct fixture *f)
{
	assert_int_equal(owner_change(f->o, &leaves), 0);
	owner_complete(f->o);
	assert_int_equal(owner_state(f->o, 1), PERSEAS_MIRROR_REMOVED);
}

#define JOINS "being sent what differs by digests: it joins the roster"

/* Mirror 1 joins again. Its image becomes another one, which the roster lists. */
static void assert_joins(struct fixture *f)
{
	Perseas__Header *after;

	owner_complete(f->o);
	assert_catches_up(f, 1);
	after = header_of(f, 1);
	assert_true(ps_id_equal(after->image_id, f->o->p->mirrors[1].image_id));
	assert_non_null(ps_roster_member(f->o->p->roster, after->image_id.data));
	assert_int_equal(after->parent_id.len, 0);
	perseas__header__free_unpacked(after, NULL);
	assert_carries(f, 0);
}

static void assert_joins_after_digests(struct fixture *f, uint64_t bytes)
{
	assert_int_equal(owner_change(f->o, &joins), 0);
	assert_being_sent(f, 1, JOINS, bytes);
	assert_joins(f);
}

TEST(a_former_member_is_sent_what_differs, struct fixture *f)
{
	uint8_t id[PS_ID_SIZE];

	memcpy(id, f->o->p->mirrors[1].image_id, PS_ID_SIZE);
	leave(f);
	assert_int_equal(put_big(f, 3 * GRANULE, 9, 5), 0);
	diverge(f, 7 * GRANULE, 97);
	assert_joins_after_digests(f, 2 * GRANULE);
	assert_memory_not_equal(id, f->o->p->mirrors[1].image_id, PS_ID_SIZE);
}
TEST_ALSO(a_former_member_is_sent_what_differs, setup_direct, teardown);

/* The image was loaded from a spill since. */
TEST(a_child_of_a_former_member_is_sent_what_differs, struct fixture *f)
{
	leave(f);
	assert_int_equal(put_big(f, 3 * GRANULE, 9, 5), 0);
	direct_crash(f->o->d, 1);
	load_spilled(f, 1);
	assert_joins_after_digests(f, GRANULE);
}

/* The owner was another one when the member left. */
TEST(a_former_member_of_another_owner_is_sent_what_differs, struct fixture *f)
{
	leave(f);
	assert_int_equal(put_big(f, 3 * GRANULE, 9, 5), 0);
	change_owner(f);
	assert_joins_after_digests(f, GRANULE);
}

static void keep_until(struct fixture *f, enum ps_resync_state state)
{
	for (unsigned i = 0; f->o->p->upkeep.resync.state != state; i++) {
		assert_true(i < ROUNDS);
		assert_int_equal(f->o->p->upkeep.change.stage, PS_CHANGE_COPYING);
		direct_keep_after(f->o->d, f->o->p, ROUND);
	}
}

/* A comparison takes long, and the session breaks. The image is still the one that it was, and the
 * change goes on. */
TEST(a_session_with_a_former_member_breaks_while_it_is_compared, struct fixture *f)
{
	uint8_t id[PS_ID_SIZE];
	Perseas__Header *header;

	memcpy(id, f->o->p->mirrors[1].image_id, PS_ID_SIZE);
	leave(f);
	assert_int_equal(put_big(f, 3 * GRANULE, 9, 5), 0);
	assert_int_equal(owner_change(f->o, &joins), 0);
	f->o->p->options.resync_rate = 1;
	keep_until(f, PS_RESYNC_COMPARING);
	direct_keep_after(f->o->d, f->o->p, 20000 * MS);
	assert_int_equal(f->o->p->upkeep.resync.state, PS_RESYNC_COMPARING);
	assert_string_equal(f->o->p->upkeep.change.text,
	                    "comparing the image that the new mirror has");
	direct_crash(f->o->d, 1);
	header = header_of(f, 1);
	assert_true(ps_id_equal(header->image_id, id));
	assert_int_equal(header->state, PERSEAS__STATE__STATE_CONSISTENT);
	perseas__header__free_unpacked(header, NULL);
	keep_until(f, PS_RESYNC_NONE);
	f->o->p->options.resync_rate = 0;
	direct_start(f->o->d, 1);
	keep_until(f, PS_RESYNC_COPYING);
	assert_being_sent(f, 1, JOINS, GRANULE);
	assert_joins(f);
}

/* After Joining the image has its new id, and the next copy goes on where this one broke. */
TEST(a_copy_to_a_former_member_breaks, struct fixture *f)
{
	leave(f);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(put_big(f, i * GRANULE, 9, 11), 0);
	assert_int_equal(owner_change(f->o, &joins), 0);
	owner_keep(f->o, 1, PERSEAS_MIRROR_RESYNCING);
	for (unsigned i = 0; stat_of(f, 1).resync_done < 2 * GRANULE; i++) {
		assert_true(i < ROUNDS);
		direct_keep(f->o->d, f->o->p);
	}
	direct_crash(f->o->d, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_DOWN);
	direct_start(f->o->d, 1);
	assert_being_sent(f, 1, "being sent what is left of a copy that broke: it joins the roster",
	                  8 * GRANULE);
	assert_joins(f);
}

/* The mirror's image has other segments than the store, which is therefore copied whole beside that
 * image. */
TEST(a_former_member_with_other_segments_is_copied_whole, struct fixture *f)
{
	void *addr;

	leave(f);
	assert_int_equal(perseas_map(f->o->p, "more", 100, &addr), 0);
	assert_int_equal(perseas_publish(f->o->p), 0);
	assert_int_equal(owner_change(f->o, &joins), 0);
	owner_keep(f->o, 1, PERSEAS_MIRROR_RESYNCING);
	assert_string_equal(stat_of(f, 1).resync_whole, "joins");
	owner_complete(f->o);
	assert_catches_up(f, 1);
}
