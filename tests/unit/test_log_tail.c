/*
 * test_log_tail.c - the end of a log is read while its owner goes on: whatever it does before any
 * request of the reader's, the reader has all that it needs, or knows that it has not.
 */
#include "log_reader_rig.h"

struct unit_fixture unit_fixture = { setup_fixture, teardown_fixture };

static void act_some(struct fixture *f)
{
	for (unsigned k = 0; k < 3; k++)
		commit(f, 200);
}

static void act_lap(struct fixture *f)
{
	commit(f, 300);
	for (unsigned k = 0; k < 40; k++)
		commit(f, 200);
}

/* At any request of the tail: what was begun before it is known, or it begins again. */
TEST(what_an_owner_does_during_the_tail_is_no_loss, struct fixture *f)
{
	static void (*const acts[])(struct fixture *) = { act_some, act_many };

	for (unsigned which = 0; which < 2; which++) {
		for (unsigned at = 1; at < 12; at++) {
			enum ps_log_step step;

			begin_behind(f, RING, 0);
			act_some(f);
			act_before(f, acts[which], at);
			step = ps_log_read_tail(&f->reader);
			assert_true(step == PS_LOG_OK || (which == 1 && step == PS_LOG_OVERTAKEN));
			assert_true(step || f->reader.seq >= 3);
			/* The first request asks for the slot, the second for the log. */
			if (which == 1 && at <= 2)
				assert_int_equal(step, PS_LOG_OVERTAKEN);
		}
	}
}

/* The next record lies at the start of the ring, its data may be there, and its slot is not yet: it
 * has to be undone. The owner laps it before any of the tail's requests. */
TEST(a_record_that_is_lapped_while_it_is_read_is_missed, struct fixture *f)
{
	for (unsigned at = 1; at < 9; at++) {
		enum ps_log_step step;
		uint64_t under_way;

		start(f, RING);
		while (RING - f->slot.next % RING > 320)
			commit(f, 100);
		assert_int_equal(ps_log_read_state(&f->reader), PS_LOG_OK);
		under_way = f->slot.seq + 1;
		send_record(f, 300);
		act_before(f, act_lap, at);
		step = ps_log_read_tail(&f->reader);
		assert_true(step == PS_LOG_OVERTAKEN || f->reader.seq >= under_way);
	}
}

/* More than a look brings. */
static void act_much(struct fixture *f)
{
	for (unsigned k = 0; k < 24; k++)
		commit(f, 900);
}

/* The owner goes on before any request, and the next round goes on from the slot that was read
 * last: that slot's own record is there, and what comes next is not taken for a lap. */
TEST(a_reader_that_goes_on_has_all_that_the_last_slot_counts, struct fixture *f)
{
	unsigned ahead = 0;

	for (unsigned at = 1; at < 12; at++) {
		begin_behind(f, WIDE, 0);
		for (unsigned round = 0; round < 12; round++) {
			const uint64_t before = f->reader.from.seq;

			act_before(f, act_much, at);
			assert_int_equal(tail(f), PS_LOG_OK);
			ahead += f->reader.now.seq > f->reader.seq;
			assert_int_equal(ps_log_reach_slot(&f->reader), PS_LOG_OK);
			assert_true(f->reader.seq >= f->reader.now.seq);
			assert_followed(&f->reader, f->reader.seq, before);
			ps_log_begin_round(&f->reader);
		}
	}
	assert_true(ahead > 0);
}

/* Records up to the last slot were overwritten before they were followed. */
TEST(a_slot_that_is_not_reached_is_a_loss, struct fixture *f)
{
	unsigned reached = 0, lost = 0;

	for (unsigned at = 1; at < 12; at++) {
		begin_behind(f, WIDE, 0);
		commit(f, 200);
		act_before(f, act_much, at);
		assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OK);
		if (f->reader.seq < f->reader.now.seq) {
			for (unsigned k = 0; k < WIDE / 900 + 1; k++)
				commit(f, 900);
			assert_int_equal(ps_log_reach_slot(&f->reader), PS_LOG_OVERTAKEN);
			lost++;
		} else {
			assert_int_equal(ps_log_reach_slot(&f->reader), PS_LOG_OK);
			reached++;
		}
	}
	assert_true(reached > 0 && lost > 0);
}
