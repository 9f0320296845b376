/*
 * test_log_reader.c - a log is followed over the ring's end, and back from record to record; a
 * reader that was overtaken knows it, and nothing that a log says leads it astray.
 */
#include "log_reader_rig.h"

struct unit_fixture unit_fixture = { setup_fixture, teardown_fixture };

/* --- forward --- */

/* From every place in the ring, one look after each record or one after all of them. */
TEST(a_log_is_followed_over_the_rings_end, struct fixture *f)
{
	for (unsigned first = 0; first < 100; first++) {
		begin_behind(f, RING, first);
		for (unsigned k = first; is_room(f, length_of(k), 1024); k++) {
			commit(f, length_of(k));
			if (first % 2)
				assert_int_equal(ps_log_read_new(&f->reader), PS_LOG_OK);
		}
		assert_true(f->slot.seq > first);
		assert_int_equal(tail(f), PS_LOG_OK);
		assert_int_equal(f->reader.seq, f->slot.seq);
		assert_int_equal(f->reader.next, f->slot.next);
		assert_int_equal(f->reader.position, f->slot.last);
		assert_followed(&f->reader, f->slot.seq, first);
	}
}

/* With one more record than fits into the ring, the first one read would be lost. */
TEST(a_reader_that_is_overtaken_knows_it, struct fixture *f)
{
	for (unsigned more = 1; more < 20; more++) {
		for (int looks = 0; looks < 2; looks++) {
			enum ps_log_step step = PS_LOG_OK;

			begin_behind(f, RING, 0);
			for (unsigned k = 0; is_room(f, length_of(k), 0); k++) {
				commit(f, length_of(k));
				if (looks)
					assert_int_equal(ps_log_read_new(&f->reader), PS_LOG_OK);
			}
			for (unsigned k = 0; k < more; k++)
				commit(f, length_of(k));
			if (looks)
				step = ps_log_read_new(&f->reader);
			if (!step)
				step = ps_log_read_tail(&f->reader);
			assert_int_equal(step, PS_LOG_OVERTAKEN);
		}
	}
}

/* Exactly as much as the ring takes. */
TEST(a_ring_that_is_just_full_is_no_loss, struct fixture *f)
{
	begin_behind(f, RING, 0);
	for (unsigned k = 0; k < RING / 128 - 1; k++)
		commit_and_look(f, 48);
	/* 64 bytes before the lap are too few, and lost; 64 after it are all that is left. */
	assert_int_equal(f->slot.next, RING - 64);
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OK);
	assert_int_equal(f->reader.seq, f->slot.seq);
	commit(f, 48);
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OVERTAKEN);
}

/* The ring is full, and a torn record overwrites the first one: the reader still has that. */
TEST(what_is_needed_is_not_read_over, struct fixture *f)
{
	const struct ps_record *record;

	start(f, RING);
	for (unsigned k = 0; k < RING / 128; k++)
		commit(f, 48);
	assert_int_equal(ps_log_read_state(&f->reader), PS_LOG_OK);
	for (unsigned k = 0; k < RING / 128 - 1; k++)
		commit_and_look(f, 48);
	assert_int_equal(f->slot.next, f->reader.from.next + RING - 128);
	record = make_record(f, 48);
	memcpy(place_of(f, record->position), record, 24);
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OK);
	assert_followed(&f->reader, 2 * (RING / 128) - 1, RING / 128);
	/* The record itself would fit; its terminator does not. */
	commit(f, 48);
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OVERTAKEN);
	assert_followed(&f->reader, 2 * (RING / 128) - 1, RING / 128);
}

/* A part of a record arrives over an earlier lap, at its own place or at the next lap's. */
TEST(a_torn_record_is_not_followed, struct fixture *f)
{
	for (unsigned before = 0; before < 40; before++) {
		const struct ps_record *record;

		begin_behind(f, RING, before);
		record = make_record(f, 300);
		for (uint32_t part = 0; part < record->length; part += 8) {
			memcpy(place_of(f, record->position), record, part);
			assert_int_equal(ps_log_read_new(&f->reader), PS_LOG_OK);
			assert_int_equal(f->reader.seq, before);
		}
		memcpy(place_of(f, record->position), record, record->length);
		assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OK);
		assert_int_equal(f->reader.seq, before + 1);
	}
}

/* Where there was little to see, a look brings little; a long record is then read by its head. */
TEST(a_record_may_be_longer_than_a_look, struct fixture *f)
{
	begin_behind(f, WIDE, 0);
	for (unsigned k = 0; k < 10; k++)
		assert_int_equal(ps_log_read_new(&f->reader), PS_LOG_OK);
	commit(f, 8000);
	commit(f, 20000);
	assert_true(f->reader.chunk < 8000);
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OK);
	assert_int_equal(f->reader.seq, 2);
}

TEST(another_owner_is_another_history, struct fixture *f)
{
	begin_behind(f, RING, 0);
	act_another_owner(f);
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OVERTAKEN);
}

/* --- back --- */

TEST(the_past_is_read_as_far_as_it_reaches, struct fixture *f)
{
	for (unsigned count = 0; count < 60; count++) {
		const struct ps_record *record;
		uint64_t seq = count;
		int rc;

		begin_behind(f, RING, count);
		while ((rc = ps_log_read_older(&f->reader, &record)) == 0) {
			assert_int_equal(record->seq, seq--);
			assert_memory_equal(record, place_of(f, record->position), record->length);
			assert_true(record->position >=
			            ps_lowest_intact_position(f->slot.next, RING));
		}
		assert_int_equal(rc, 1);
		assert_true(seq == 0 || f->reader.older.position <
		                                ps_lowest_intact_position(f->slot.next, RING));
	}
}

/* Records that are followed later do not overwrite those of the past that were read. */
TEST(the_past_is_kept_from_what_comes, struct fixture *f)
{
	const struct ps_record *record;

	start(f, RING);
	for (unsigned k = 0; k < 30; k++)
		commit(f, 112);
	assert_int_equal(ps_log_read_state(&f->reader), PS_LOG_OK);
	for (unsigned k = 0; k < 5; k++)
		assert_int_equal(ps_log_read_older(&f->reader, &record), 0);
	for (unsigned k = 0; k < 14; k++)
		commit_and_look(f, 112);
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OK);
	assert_followed(&f->reader, 44, 25);
	commit(f, 1500);
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OVERTAKEN);
}

/* The past is asked for after a lap: it is not read over a record that was followed. */
TEST(what_was_followed_is_kept_from_the_past, struct fixture *f)
{
	const struct ps_record *record;

	start(f, RING);
	for (unsigned k = 0; k < 20; k++)
		commit(f, 112);
	assert_int_equal(ps_log_read_state(&f->reader), PS_LOG_OK);
	for (unsigned k = 0; k < 18; k++)
		commit_and_look(f, 112);
	assert_int_equal(ps_log_read_tail(&f->reader), PS_LOG_OK);
	act_many(f);
	assert_int_equal(ps_log_read_older(&f->reader, &record), 1);
	assert_followed(&f->reader, 38, 20);
}

struct liar {
	const uint8_t *first, *then;
	unsigned calls;
	int fails_at; /* call that fails */
};

static int view(void *source, uint64_t position, uint64_t length, const void **bytes)
{
	struct liar *liar = source;

	(void)position, (void)length;
	*bytes = liar->calls++ == 0 ? liar->first : liar->then;
	return (int)liar->calls == liar->fails_at ? -1 : 0;
}

/* Records in the chain have only a head, with a right checksum, that is not the one expected. */
TEST(a_record_that_does_not_fit_ends_the_chain)
{
	static const struct {
		struct ps_log_back back;
		int rc;
	} cases[] = {
		{ { 640, 9, EPOCH, 640 + 128, 0 }, 0 },
		{ { 640, 9, EPOCH + 1, 640 + 1024, 0 }, 0 },
		{ { 640, 8, EPOCH, 640 + 128, 0 }, 1 },
		{ { 640, 10, EPOCH, 640 + 128, 0 }, 1 },
		{ { 640, 9, EPOCH - 1, 640 + 128, 0 }, 1 },
		{ { 640, 9, EPOCH, 640 + 64, 0 }, 1 }, /* it would lie over a younger one */
		{ { 640, 9, EPOCH, 640, 0 }, 1 },
		{ { 640, 9, EPOCH, 64, 0 }, 1 },
		{ { 640 + RING, 9, EPOCH, UINT64_MAX, 0 }, 1 },
		{ { 641, 9, EPOCH, UINT64_MAX, 0 }, 1 },
		{ { 0, 9, EPOCH, UINT64_MAX, 0 }, 1 },
		{ { 640, 0, EPOCH, UINT64_MAX, 0 }, 1 },
		{ { 640, 9, EPOCH, 640 + 128, 640 }, 0 },
		{ { 640, 9, EPOCH, 640 + 128, 641 }, 1 }, /* it may have been overwritten */
		{ { UINT64_MAX - 63, 9, EPOCH, UINT64_MAX, 0 }, 1 },
	};
	static const uint8_t before[50];
	_Alignas(64) uint8_t memory[256];
	struct ps_record *record = begin_record(memory, PS_RECORD_TRANSACTION);

	add_range(record, 0, 0, sizeof before - 8, before);
	ps_record_seal(record, EPOCH, 9, 640, 64, 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct liar liar = { memory, memory, 0, 0 };
		struct ps_log_back back = cases[i].back;
		const struct ps_record *found;

		assert_int_equal(ps_log_back(&back, RING, view, &liar, &found), cases[i].rc);
		if (cases[i].rc) {
			assert_memory_equal(&back, &cases[i].back, sizeof back);
			continue;
		}
		assert_ptr_equal(found, memory);
		assert_int_equal(back.position, 64);
		assert_int_equal(back.seq, 8);
		assert_int_equal(back.epoch, EPOCH);
		assert_int_equal(back.end, 640);
		assert_int_equal(back.lowest, cases[i].back.lowest);
	}
}

/* No length that the head may have makes more be asked for than there can be. */
TEST(a_length_that_cannot_be_is_not_asked_for)
{
	static const uint32_t lengths[] = { 0, 8, 63, 129, RING - 640 + 1, RING, UINT32_MAX };
	_Alignas(64) uint8_t memory[128] = { 0 };
	struct ps_record *record = begin_record(memory, PS_RECORD_TRANSACTION);

	ps_record_seal(record, EPOCH, 9, 640, 64, 1);
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct ps_log_back back = { 640, 9, EPOCH, lengths[i] == 129 ? 768 : UINT64_MAX,
			                    0 };
		struct liar liar = { memory, memory, 0, 0 };
		const struct ps_record *found;

		record->length = lengths[i];
		assert_int_equal(ps_log_back(&back, RING, view, &liar, &found), 1);
		assert_int_equal(liar.calls, 1);
	}
}

/* The record that is read whole is another one than its head was of. */
TEST(a_head_that_changes_is_not_believed)
{
	_Alignas(64) uint8_t first[64], then[64];
	struct ps_log_back back = { 640, 9, EPOCH, UINT64_MAX, 0 };
	struct liar liar = { first, then, 0, 0 };
	const struct ps_record *found;

	ps_record_seal(begin_record(first, PS_RECORD_TRANSACTION), EPOCH, 9, 640, 64, 1);
	ps_record_seal(begin_record(then, PS_RECORD_TRANSACTION), EPOCH, 9, 640, 128, 1);
	assert_int_equal(ps_log_back(&back, RING, view, &liar, &found), 1);
	for (int call = 1; call <= 2; call++) {
		liar = (struct liar){ first, first, 0, call };
		assert_int_equal(ps_log_back(&back, RING, view, &liar, &found), -1);
	}
	assert_int_equal(back.position, 640);
}

/* --- what a peer may send --- */

/* Slots whose numbers wrap, with records to match: no memory but the ring's is touched. */
TEST(numbers_near_their_end_lead_nowhere, struct fixture *f)
{
	static const uint64_t nexts[] = { 128, UINT64_MAX - 63, UINT64_MAX - 127,
		                          UINT64_MAX - RING + 1, (uint64_t)1 << 63 };

	for (size_t i = 0; i < sizeof nexts / sizeof *nexts; i++) {
		for (uint64_t back = 64; back <= 128; back += 64) {
			const uint64_t next = nexts[i], last = next - back;
			/* No power of two, so that laps do not end where the numbers do. */
			const uint64_t ring = 3 * (uint64_t)RING;
			const struct ps_record *record;

			start(f, ring);
			put_slot(f, EPOCH, UINT64_MAX - 1, next, last);
			make_record(f, 40);
			for (uint64_t at = 0; at + RECORD_MAX / 64 <= ring; at += RECORD_MAX / 64)
				memcpy(f->log + PS_RING_OFFSET + at, f->record, 128);
			assert_int_equal(ps_log_read_state(&f->reader), PS_LOG_OK);
			assert_int_not_equal(ps_log_read_tail(&f->reader), PS_LOG_FAILED);
			while (ps_log_read_older(&f->reader, &record) == 0)
				assert_true(record->position < next);
		}
	}
}

/* Neither slot is valid, or the source gives up at any request. */
TEST(a_source_that_fails_is_told, struct fixture *f)
{
	const struct ps_record *record;

	start(f, RING);
	memset(f->log, 0, PS_RING_OFFSET);
	assert_int_equal(ps_log_read_state(&f->reader), PS_LOG_FAILED);
	for (unsigned at = 1; at <= 5; at++) {
		bool failed;

		start(f, RING);
		commit(f, 100);
		f->fail_at = at;
		failed = ps_log_read_state(&f->reader) == PS_LOG_FAILED;
		failed = failed || ps_log_read_older(&f->reader, &record) == -1;
		failed = failed || ps_log_read_tail(&f->reader) == PS_LOG_FAILED;
		assert_true(failed);
		assert_int_equal(f->asked, at);
	}
}
