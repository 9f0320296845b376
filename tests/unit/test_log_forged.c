/*
 * test_log_forged.c - bytes that users stored lie in the log as before-images, and may look like a
 * record. A reader that is overtaken, or reads too early, never takes them for one.
 */
#include "log_reader_rig.h"
#include "../support/forge.h"

struct unit_fixture unit_fixture = { setup_fixture, teardown_fixture };

static struct forge_log log_of(const struct fixture *f)
{
	return (struct forge_log){ f->slot.next, f->slot.seq, f->slot.last, f->ring };
}

/* A stored record lies where the next one of this log would begin. */
static void put_forged(const struct fixture *f, const struct forge_log *log)
{
	forge_record(place_of(f, log->next), log, EPOCH, 0, 0);
}

/* A record arrives before the zeros behind it, in whose place are bytes of an earlier lap. */
TEST(no_record_is_followed_before_the_terminator_of_the_one_before_it, struct fixture *f)
{
	for (unsigned first = 0; first < 40; first++) {
		struct forge_log log;

		begin_behind(f, RING, first);
		send_record(f, 100);
		log = log_of(f);
		forge_commit(&log, 100);
		if (log.next % RING)
			put_forged(f, &log);
		assert_int_equal(ps_log_read_new(&f->reader), PS_LOG_OK);
		assert_int_equal(f->reader.seq, first + 1);
	}
}

/* In the reader's own ring the last lap has a stored record where the look of this lap ended. */
TEST(no_record_is_followed_that_the_look_did_not_read, struct fixture *f)
{
	struct forge_log log;

	begin_behind(f, WIDE, 0);
	while (f->reader.chunk > 4096)
		assert_int_equal(ps_log_read_new(&f->reader), PS_LOG_OK);
	commit(f, 4096 - FORGE_HEAD);
	log = log_of(f);
	forge_record(f->copy + PS_RING_OFFSET + log.next, &log, EPOCH, 0, 0);
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OK);
	assert_int_equal(f->reader.seq, 1);
}

/* The owner laps the reader, and what lies at the reader's place then is a stored record. */
static void act_lap_and_forge(struct fixture *f)
{
	const struct forge_log log = log_of(f);

	while (f->slot.next < log.next + f->ring)
		commit(f, 200);
	put_forged(f, &log);
}

TEST(a_reader_that_is_overtaken_follows_no_stored_record, struct fixture *f)
{
	for (unsigned at = 1; at < 8; at++) {
		for (unsigned first = 0; first < 30; first++) {
			enum ps_log_step step;

			begin_behind(f, RING, first);
			act_before(f, act_lap_and_forge, at);
			step = ps_log_read_tail(&f->reader);
			assert_true(step == PS_LOG_OVERTAKEN || f->reader.seq == first);
		}
	}
}

/* Three transactions, behind which a long record does not fit the lap. */
enum { FIRST = 600, SECOND = 1200, THIRD = 200, LONG = 1904, SECOND_AT = 768 };

/*
 * The owner is sending the record of its next transaction to the start of the next lap; the head
 * has not arrived. That record lies over the first two. Stored bytes are in the place of the second
 * one: a record that names other bytes.
 */
static void act_write_over(struct fixture *f)
{
	_Alignas(64) uint8_t forged[RECORD_MAX];
	struct ps_record *second = (struct ps_record *)forged;
	const struct ps_record *record = make_record(f, LONG);
	uint8_t *at = place_of(f, SECOND_AT);

	memcpy(forged, at, SECOND + FORGE_HEAD);
	assert_int_equal(second->seq, 2);
	((struct ps_range *)(second + 1))->offset = 4711;
	ps_record_seal(second, EPOCH, 2, SECOND_AT, second->previous, 1);
	assert_int_equal(record->position, f->ring);
	memcpy(place_of(f, 64), (const uint8_t *)record + 64, record->length - 64);
	memcpy(at, forged, second->length);
}

/* Whether what was read is right is only known once that record is followed. */
TEST(what_the_record_under_way_has_overwritten_is_not_followed, struct fixture *f)
{
	begin_behind(f, RING, 0);
	commit(f, FIRST);
	assert_int_equal(ps_log_read_new(&f->reader), PS_LOG_OK);
	commit(f, SECOND);
	commit(f, THIRD);
	act_before(f, act_write_over, 2); /* the slot was read, the log was not */
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OVERTAKEN);
	assert_int_equal(f->reader.seq, 3);
	assert_int_equal(f->reader.unproven_from, SECOND_AT);
	memcpy(place_of(f, RING), f->record, 64);
	assert_int_equal(ps_log_prove_records(&f->reader), PS_LOG_OVERTAKEN);
	assert_int_equal(f->reader.unproven_from, 0);
}

/* The owner laps the reader before it reads the next record: other bytes are there then. */
static void act_lap_and_change(struct fixture *f)
{
	_Alignas(64) uint8_t changed[RECORD_MAX];
	struct ps_record *record = (struct ps_record *)changed;
	uint8_t *at = place_of(f, f->slot.last);
	const uint64_t lap = f->slot.last + f->ring;

	memcpy(changed, at, 1024);
	((struct ps_range *)(record + 1))->offset = 4711;
	ps_record_seal(record, EPOCH, record->seq, record->position, record->previous, 1);
	while (f->slot.next < lap + 1024)
		commit(f, 200);
	memcpy(at, changed, record->length);
}

TEST(a_record_that_is_read_late_is_not_one_of_the_next_lap, struct fixture *f)
{
	for (unsigned at = 1; at < 8; at++) {
		uint8_t before[FORGE_HEAD];
		const uint8_t *place;

		start(f, RING);
		while (f->slot.next < RING - 512)
			commit(f, 100);
		assert_int_equal(ps_log_read_state(&f->reader), PS_LOG_OK);
		commit(f, 600);
		assert_int_equal(f->slot.last, RING);
		memcpy(before, place_of(f, RING), sizeof(before));
		place = f->copy + PS_RING_OFFSET;
		act_before(f, act_lap_and_change, at);
		assert_int_not_equal(ps_log_read_new(&f->reader), PS_LOG_FAILED);
		if (f->reader.unproven_from)
			assert_int_equal(ps_log_prove_records(&f->reader), PS_LOG_OVERTAKEN);
		else
			assert_memory_equal(place, before, sizeof(before));
	}
}

/* The records that were followed lead elsewhere than the slot says: so one of them was none. */
TEST(a_log_that_leads_elsewhere_than_its_slot_is_not_followed, struct fixture *f)
{
	const struct ps_record *record;

	begin_behind(f, RING, 0);
	record = send_record(f, 100);
	put_slot(f, EPOCH, 1, record->position + 512, record->position);
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OVERTAKEN);
}

/* The same when the reader goes back into the past. */
TEST(what_the_record_under_way_has_overwritten_is_not_the_past, struct fixture *f)
{
	const struct ps_record *record;

	start(f, RING);
	commit(f, FIRST);
	commit(f, SECOND);
	commit(f, THIRD);
	assert_int_equal(ps_log_read_state(&f->reader), PS_LOG_OK);
	act_write_over(f);
	while (ps_log_read_older(&f->reader, &record) == 0)
		assert_int_equal(record->seq, 3);
}

static void act_go_on(struct fixture *f)
{
	commit(f, THIRD);
	act_write_over(f);
}

/* The same while the owner goes on. */
TEST(what_is_overwritten_meanwhile_is_not_the_past, struct fixture *f)
{
	const struct ps_record *record;

	start(f, RING);
	commit(f, FIRST);
	commit(f, SECOND);
	assert_int_equal(ps_log_read_state(&f->reader), PS_LOG_OK);
	act_before(f, act_go_on, 1);
	assert_int_equal(ps_log_read_older(&f->reader, &record), 1);
}
