/*
 * test_newest_record.c - a mirror that is copied whole while nothing is committed gets the undo
 * record of the newest transaction, in front of the slot that counts it.
 */
#include "resync_rig.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* The record of a mirror's newest transaction, or NULL. */
static const struct ps_record *newest_of(struct fixture *f, unsigned mirror)
{
	struct ps_image image = { .log = (uint8_t *)(uintptr_t)image_of(f, mirror, "log"),
		                  .ring_size = f->o->p->log_size };
	const struct ps_record *record;
	struct ps_slot slot;

	assert_true(ps_slot_choose(image.log, &slot) >= 0);
	assert_int_equal(slot.seq, f->o->p->commit.seq);
	record = ps_image_record_at(&image, slot.last);
	return record && record->seq == slot.seq ? record : NULL;
}

/* The mirror loses its memory, and is made anew and copied to. */
static void lose_and_copy(struct fixture *f, unsigned mirror)
{
	owner_lose(f->o, mirror);
	direct_keep(f->o->d, f->o->p);
	owner_keep(f->o, mirror, PERSEAS_MIRROR_LIVE);
}

static void assert_same_record(struct fixture *f, unsigned mirror, unsigned as)
{
	const struct ps_record *record = newest_of(f, mirror), *whole = newest_of(f, as);
	const uint64_t end = f->o->p->commit.next_position % f->o->p->log_size;
	const uint8_t *ring = image_of(f, mirror, "log") + PS_RING_OFFSET;

	assert_non_null(whole);
	assert_non_null(record);
	assert_memory_equal(record, whole, whole->length);
	/* The terminator. */
	for (unsigned i = 0; i < PS_TERMINATOR && end + i < f->o->p->log_size; i++)
		assert_int_equal(ring[end + i], 0);
}

TEST(it_comes_with_a_whole_copy, struct fixture *f)
{
	lose_and_copy(f, 1);
	assert_same_record(f, 1, 0);
	assert_image(f, 1);
}

/* The image has room for the copy: its ring was zeroed, and its slot is old. */
TEST(it_comes_with_a_copy_in_place, struct fixture *f)
{
	make_stale(f, 1);
	reach_live(f->o, 1);
	assert_same_record(f, 1, 0);
	assert_image(f, 1);
}

/* This process never sent that transaction: an earlier owner did. */
TEST(it_comes_when_the_owner_has_committed_nothing, struct fixture *f)
{
	owner_die(f->o);
	owner_reopen(f->o);
	map_big(f);
	lose_and_copy(f, 1);
	assert_same_record(f, 1, 0);
}

/* The first mirror that is asked was copied to before and does not answer: another one has it. */
TEST(it_is_asked_of_another_mirror, struct fixture *f)
{
	f->o->d->mirrors[0].break_at = PERSEAS__REQUEST__BODY_READ;
	lose_and_copy(f, 1);
	f->o->d->mirrors[0].break_at = 0;
	owner_keep(f->o, 0, PERSEAS_MIRROR_LIVE);
	assert_same_record(f, 1, 2);
}

/* A transaction is sent while the record is read. It brings its own record, and the one read is
 * dropped, since the ring may have lapped. */
TEST(a_transaction_that_is_sent_meanwhile_brings_its_own, struct fixture *f)
{
	answer_slowly(f->o, 0, PERSEAS__REQUEST__BODY_READ);
	answer_slowly(f->o, 2, PERSEAS__REQUEST__BODY_READ);
	owner_lose(f->o, 1);
	reach(f->o, PS_RESYNC_READING);
	assert_int_equal(put_big(f, 300, 200, 7), 0);
	reach_live(f->o, 1);
	assert_int_equal(perseas_flush(f->o->p), 0);
	assert_same_record(f, 1, 0);
	assert_image(f, 1);
	assert_carries(f, 0);
}

static int setup_long(void **state)
{
	struct owner *o = owner_new(3);

	o->options.acks = 2;
	o->d->staged = true;
	o->options.log_size = 1 << 20;
	o->options.ring_size = 4 << 20;
	return setup_owner(state, o);
}

/* The copy does not depend on it: a longer one is left out. */
TEST_WITH(a_long_one_is_left_out, setup_long, teardown, struct fixture *f)
{
	assert_int_equal(put_big(f, 0, 300 * 1000, 7), 0);
	lose_and_copy(f, 1);
	assert_null(newest_of(f, 1));
	assert_image(f, 1);
	assert_carries(f, 0);
}

/* No whole mirror is left to read from: the copy goes on without the record. */
TEST_WITH(it_is_left_out_when_no_mirror_has_it, setup_two, teardown, struct fixture *f)
{
	memset((uint8_t *)(uintptr_t)image_of(f, 0, "log") + PS_RING_OFFSET +
	               f->o->p->commit.last_position % f->o->p->log_size,
	       0xff, sizeof(struct ps_record));
	lose_and_copy(f, 1);
	assert_null(newest_of(f, 1));
	assert_image(f, 1);
}
