/*
 * test_image.c - slots and undo records are refused when anything in them is wrong, and
 * an image is rolled back to its slot from whatever a dying owner left.
 */
#include "../../proto/image/crc32c.h"
#include "../../proto/image/image.h"
#include "record_rig.h"
#include "../support/unit.h"

enum { RING = 4096, SEGMENT = 1024 };

/* An image with two segments, 3 and 7. */
struct fixture {
	_Alignas(64) uint8_t log[PS_RING_OFFSET + RING];
	uint8_t first[SEGMENT];
	uint8_t second[SEGMENT];
	struct ps_image image;
};

static void make_image(struct fixture *f)
{
	memset(f, 0, sizeof *f);
	ps_image_init_slots(f->log);
	for (int i = 0; i < SEGMENT; i++) {
		f->first[i] = (uint8_t)i;
		f->second[i] = (uint8_t)(255 - i);
	}
	f->image.log = f->log;
	f->image.ring_size = RING;
	f->image.segments[3].base = f->first;
	f->image.segments[3].size = SEGMENT;
	f->image.segments[7].base = f->second;
	f->image.segments[7].size = SEGMENT;
}

static int setup(void **state)
{
	static struct fixture fixture;

	make_image(&fixture);
	*state = &fixture;
	return 0;
}

struct unit_fixture unit_fixture = { setup, NULL };

static void write_slot(struct fixture *f, int index, uint64_t epoch, uint64_t seq, uint64_t next,
                       uint64_t last)
{
	struct ps_slot slot;

	ps_slot_encode(&slot, epoch, seq, next, last);
	memcpy(f->log + ps_slot_offset(index), &slot, sizeof slot);
}

static uint8_t *ring_at(struct fixture *f, uint64_t position)
{
	return f->log + PS_RING_OFFSET + position % RING;
}

/* The record of a transaction with three ranges, of lengths that need padding. */
static struct ps_record *make_record(struct fixture *f, void *memory, uint64_t epoch, uint64_t seq,
                                     uint64_t position)
{
	struct ps_record *record = begin_record(memory, PS_RECORD_TRANSACTION);

	add_range(record, 3, 10, 13, f->first + 10);
	add_range(record, 7, SEGMENT - 8, 8, f->second + SEGMENT - 8);
	add_range(record, 3, 500, 1, f->first + 500);
	ps_record_seal(record, epoch, seq, position, 0, 1234567890);
	return record;
}

/* Stores what the transaction of make_record stores. */
static void change_data(struct fixture *f)
{
	memset(f->first + 10, 0xaa, 13);
	memset(f->second + SEGMENT - 8, 0xbb, 8);
	f->first[500] = 0xcc;
}

/* The bytes that PROTOCOL.md lays down, with checksums worked out elsewhere. */
TEST(slot_and_record_lie_as_laid_down)
{
	const uint64_t slot_words[5] = {
		0x0102030405060708, 77, 0x140, 0x40, 0x00000000e3852844,
	};
	const uint64_t record_words[11] = {
		0x0000000152535031,
		6,
		78,
		0x140,
		0x40,
		0x0000000100000058,
		1700000000000000000,
		0x00000000ff7788f6,
		0x0000000500000003,
		0x1122,
		0x0000006f6c6c6568,
	};
	uint64_t memory[11];
	struct ps_record *record;
	struct ps_slot slot;

	ps_slot_encode(&slot, 0x0102030405060708, 77, 0x140, 0x40);
	assert_memory_equal(&slot, slot_words, sizeof slot_words);
	record = begin_record(memory, PS_RECORD_TRANSACTION);
	add_range(record, 3, 0x1122, 5, "hello");
	ps_record_seal(record, 6, 78, 0x140, 0x40, 1700000000000000000);
	assert_int_equal(record->length, sizeof record_words);
	assert_memory_equal(record, record_words, sizeof record_words);
	assert_int_equal(ps_record_check(record_words, sizeof record_words), PS_RECORD_OK);
}

TEST(a_slot_with_any_bit_flipped_is_refused)
{
	struct ps_slot slot;

	ps_slot_encode(&slot, 5, 77, 4096, 64);
	assert_true(ps_slot_valid(&slot));
	for (size_t bit = 0; bit < 8 * sizeof slot; bit++) {
		((uint8_t *)&slot)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(ps_slot_valid(&slot));
		((uint8_t *)&slot)[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/* Positions that no owner writes, under a right checksum; and a slot of zeros. */
TEST(a_slot_with_impossible_positions_is_refused)
{
	struct ps_slot slot;

	ps_slot_encode(&slot, 5, 77, 4097, 64);
	assert_false(ps_slot_valid(&slot));
	ps_slot_encode(&slot, 5, 77, 4096, 65);
	assert_false(ps_slot_valid(&slot));
	ps_slot_encode(&slot, 5, 77, 4096, 4096);
	assert_false(ps_slot_valid(&slot));
	ps_slot_encode(&slot, 0, 0, 0, 0);
	assert_false(ps_slot_valid(&slot));
	memset(&slot, 0, sizeof slot);
	assert_false(ps_slot_valid(&slot));
}

/* Two valid slots: the epoch decides before the seq, wherever the slots lie. */
TEST(the_highest_epoch_then_seq_counts, struct fixture *f)
{
	struct ps_slot slot;

	write_slot(f, 0, 3, 10, 128, 64);
	write_slot(f, 1, 2, 99, 256, 64);
	assert_int_equal(ps_slot_choose(f->log, &slot), 0);
	assert_int_equal(slot.seq, 10);
	write_slot(f, 1, 3, 11, 256, 64);
	assert_int_equal(ps_slot_choose(f->log, &slot), 1);
	assert_int_equal(slot.next, 256);
	f->log[PS_SLOT_STRIDE] ^= 1;
	assert_int_equal(ps_slot_choose(f->log, &slot), 0);
	f->log[0] ^= 1;
	assert_int_equal(ps_slot_choose(f->log, &slot), -1);
}

TEST(a_new_image_has_one_slot_at_the_first_position, struct fixture *f)
{
	struct ps_slot slot;

	assert_int_equal(ps_image_recover(&f->image, &slot), PS_RECOVERY_CLEAN);
	assert_int_equal(slot.epoch, 0);
	assert_int_equal(slot.seq, 0);
	assert_int_equal(slot.next, PS_FIRST_POSITION);
	assert_int_equal(slot.last, 0);
}

/* Any bit of a valid record flips: head, ranges, before-images and padding. */
TEST(a_record_with_any_bit_flipped_is_refused, struct fixture *f)
{
	struct ps_record *record;

	record = make_record(f, ring_at(f, 64), 5, 78, 64);
	assert_int_equal(ps_record_check(record, RING), PS_RECORD_OK);
	for (size_t bit = 0, bits = 8 * (size_t)record->length; bit < bits; bit++) {
		((uint8_t *)record)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_not_equal(ps_record_check(record, RING), PS_RECORD_OK);
		((uint8_t *)record)[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void reseal(struct ps_record *record)
{
	record->crc = 0;
	record->crc = ps_crc32c(0, record, record->length);
}

/* Fields that are wrong under a right checksum; each is named. */
TEST(impossible_fields_are_refused_by_name, struct fixture *f)
{
	const struct {
		size_t offset;
		uint8_t flip;
		enum ps_record_fault fault;
	} cases[] = {
		{ offsetof(struct ps_record, magic), 1, PS_RECORD_BAD_MAGIC },
		{ offsetof(struct ps_record, kind), 1, PS_RECORD_BAD_FIELD },
		{ offsetof(struct ps_record, kind), 4, PS_RECORD_BAD_FIELD },
		{ offsetof(struct ps_record, flags), 1, PS_RECORD_BAD_FIELD },
		{ offsetof(struct ps_record, sum), 1, PS_RECORD_BAD_CRC },
		{ offsetof(struct ps_record, position), 1, PS_RECORD_BAD_FIELD },
		{ offsetof(struct ps_record, previous), 1, PS_RECORD_BAD_FIELD },
		{ offsetof(struct ps_record, previous), 128, PS_RECORD_BAD_FIELD },
		{ offsetof(struct ps_record, length), 8, PS_RECORD_BAD_LENGTH },
		{ offsetof(struct ps_record, ranges), 1, PS_RECORD_BAD_LENGTH },
		{ sizeof(struct ps_record) + 4, 32, PS_RECORD_BAD_LENGTH }, /* a range's length */
		{ sizeof(struct ps_record) + 16 + 13, 1, PS_RECORD_BAD_FIELD }, /* padding */
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ps_record *record = make_record(f, ring_at(f, 128), 5, 78, 128);

		((uint8_t *)record)[cases[i].offset] ^= cases[i].flip;
		reseal(record);
		assert_int_equal(ps_record_check(record, RING), cases[i].fault);
		assert_string_not_equal(ps_record_fault_text(cases[i].fault), "");
	}
}

/* Fewer bytes than the record has may be read; one record lies about its length. */
TEST(a_record_longer_than_what_may_be_read_is_refused, struct fixture *f)
{
	struct ps_record *record, *exact;
	uint32_t length;

	record = make_record(f, ring_at(f, 64), 5, 78, 64);
	length = record->length;
	for (uint32_t available = 0; available < length; available++) {
		exact = malloc(available ? available : 1);
		memcpy(exact, record, available);
		assert_int_equal(ps_record_check(exact, available), PS_RECORD_BAD_LENGTH);
		free(exact);
	}
	assert_int_equal(ps_record_check(record, length), PS_RECORD_OK);
	record->length = 8;
	assert_int_equal(ps_record_check(record, RING), PS_RECORD_BAD_LENGTH);
	record->length = UINT32_MAX;
	assert_int_equal(ps_record_check(record, RING), PS_RECORD_BAD_LENGTH);
}

/* The entries of both kinds of record, in order. */
TEST(a_walk_gives_every_entry_once, struct fixture *f)
{
	const struct ps_range *range;
	const void *image;
	struct ps_cursor cursor;
	struct ps_record *record;

	ps_record_begin_walk(make_record(f, ring_at(f, 64), 5, 78, 64), &cursor);
	assert_true(ps_record_next(&cursor, &range, &image));
	assert_int_equal(range->length, 13);
	assert_memory_equal(image, f->first + 10, 13);
	assert_true(ps_record_next(&cursor, &range, &image));
	assert_int_equal(range->offset, SEGMENT - 8);
	assert_true(ps_record_next(&cursor, &range, &image));
	assert_memory_equal(image, f->first + 500, 1);
	assert_false(ps_record_next(&cursor, &range, &image));

	record = begin_record(ring_at(f, 64), PS_RECORD_PUBLISH);
	add_range(record, 90, 0, SEGMENT, NULL);
	add_range(record, 91, 0, 5, NULL);
	ps_record_seal(record, 5, 78, 64, 0, 0);
	assert_int_equal(ps_record_check(record, RING), PS_RECORD_OK);
	ps_record_begin_walk(record, &cursor);
	assert_true(ps_record_next(&cursor, &range, &image));
	assert_null(image);
	assert_true(ps_record_next(&cursor, &range, &image));
	assert_int_equal(range->segment, 91);
	assert_false(ps_record_next(&cursor, &range, &image));
}

/*
 * An owner dies after any prefix of the copy of its record, over bytes of an older one, and
 * then, only when the record is whole, after any prefix of its changes.
 */
TEST(any_torn_transaction_is_rolled_back)
{
	struct fixture *f = calloc(1, sizeof *f), *before = calloc(1, sizeof *f);
	static uint64_t memory[RING / 8];
	struct ps_record *record;
	struct ps_slot slot;

	make_image(before);
	write_slot(before, 1, 5, 77, 64, 0);
	make_record(before, ring_at(before, 64), 4, 78, 64);
	record = make_record(before, memory, 5, 78, 64);
	for (uint32_t prefix = 0; prefix <= record->length; prefix++) {
		bool whole;

		make_image(f);
		memcpy(f->log, before->log, sizeof f->log);
		memcpy(ring_at(f, 64), record, prefix);
		if (prefix == record->length)
			change_data(f);
		whole = memcmp(ring_at(f, 64), record, record->length) == 0;
		assert_int_equal(ps_image_recover(&f->image, &slot),
		                 whole ? PS_RECOVERY_UNDONE : PS_RECOVERY_CLEAN);
		assert_int_equal(slot.seq, 77);
		assert_memory_equal(f->first, before->first, SEGMENT);
		assert_memory_equal(f->second, before->second, SEGMENT);
	}
	free(f);
	free(before);
}

/* Bytes with their own crc32c behind them change no crc32c around them. Where an earlier lap of the
 * ring has a before-image of that kind, the record's head alone must not make it whole. Nor must a
 * head that is cut off within its sum: over zeros, it seems to be of level 0. */
TEST(a_torn_record_with_checksums_in_it_is_not_whole, struct fixture *f)
{
	uint64_t older[32], newer[32];
	struct ps_record *record;
	struct ps_slot slot;

	write_slot(f, 0, 5, 20, 64, 0);
	ps_slot_encode((struct ps_slot *)older, 4, 10, 128, 64);
	ps_slot_encode((struct ps_slot *)newer, 5, 11, 192, 128);
	memcpy(f->first, newer, sizeof(struct ps_slot));
	record = begin_record(ring_at(f, 64), PS_RECORD_TRANSACTION);
	add_range(record, 3, 0, sizeof(struct ps_slot), f->first);
	record->sum = ps_record_sum(record);
	ps_record_seal(record, 5, 21, 64, 0, 1234567890);
	assert_int_equal(ps_record_check(record, record->length), PS_RECORD_OK);
	memcpy(ring_at(f, 64) + sizeof(struct ps_record) + sizeof(struct ps_range), older,
	       sizeof(struct ps_slot));
	for (unsigned cut = 0; cut <= sizeof(record->sum); cut++) {
		memset((uint8_t *)(record + 1) - cut, 0, cut);
		assert_int_equal(ps_image_recover(&f->image, &slot), PS_RECOVERY_CLEAN);
		assert_memory_equal(f->first, newer, sizeof(struct ps_slot));
	}
	assert_int_equal(record->sum, 0);
}

/* A roll-back that is itself cut short, or simply done again. */
TEST(rolling_back_twice_changes_nothing)
{
	struct fixture *f = calloc(1, sizeof *f), *once = calloc(1, sizeof *f);
	struct ps_slot slot, again;

	make_image(f);
	write_slot(f, 1, 5, 77, 64, 0);
	make_record(f, ring_at(f, 64), 5, 78, 64);
	change_data(f);
	assert_int_equal(ps_image_recover(&f->image, &slot), PS_RECOVERY_UNDONE);
	memcpy(once, f, sizeof *f);
	memset(f->first + 10, 0x55, 6); /* as if only part of it had been put back */
	assert_int_equal(ps_image_recover(&f->image, &again), PS_RECOVERY_UNDONE);
	assert_memory_equal(f->log, once->log, sizeof f->log);
	assert_memory_equal(f->first, once->first, SEGMENT);
	assert_memory_equal(f->second, once->second, SEGMENT);
	assert_memory_equal(&slot, &again, sizeof slot);
	free(f);
	free(once);
}

/* A whole record lies at the slot's next position, but is not the slot's successor. */
TEST(only_the_successor_of_the_slot_is_rolled_back, struct fixture *f)
{
	const struct {
		uint64_t epoch, seq, position;
	} records[] = {
		{ 4, 78, 64 },                       /* of an owner that was fenced */
		{ 6, 78, 64 }, { 5, 77, 64 },        /* finished */
		{ 5, 79, 64 }, { 5, 78, 64 + RING }, /* of another lap */
	};
	struct ps_slot slot;

	for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
		make_image(f);
		write_slot(f, 1, 5, 77, 64, 0);
		make_record(f, ring_at(f, 64), records[i].epoch, records[i].seq,
		            records[i].position);
		change_data(f);
		assert_int_equal(ps_image_recover(&f->image, &slot), PS_RECOVERY_CLEAN);
		assert_int_equal(f->first[500], 0xcc);
	}
}

/* The rest of the ring is too small, so the record lies at the next lap's start. */
TEST(a_record_is_found_on_the_next_lap, struct fixture *f)
{
	const uint64_t next = 10 * RING - 128, lap = 10 * (uint64_t)RING;
	struct ps_slot slot;

	write_slot(f, 1, 5, 77, next, 0);
	make_record(f, ring_at(f, lap), 5, 78, lap);
	change_data(f);
	assert_int_equal(ps_image_recover(&f->image, &slot), PS_RECOVERY_UNDONE);
	assert_int_equal(f->first[500], (uint8_t)500);
	assert_non_null(ps_image_record_at(&f->image, lap));
	assert_null(ps_image_record_at(&f->image, lap + RING));
	assert_null(ps_image_record_at(&f->image, 0));
	assert_null(ps_image_record_at(&f->image, lap + 1));
}

/* A record at the next lap's start that would have fitted before it was never placed there. */
TEST(a_record_that_fits_is_not_looked_for_on_the_next_lap, struct fixture *f)
{
	const uint64_t next = 10 * RING - 1024, lap = 10 * (uint64_t)RING;
	struct ps_slot slot;

	write_slot(f, 1, 5, 77, next, 0);
	make_record(f, ring_at(f, lap), 5, 78, lap);
	assert_int_equal(ps_image_recover(&f->image, &slot), PS_RECOVERY_CLEAN);
}

/* A whole record names bytes outside the image, behind a range that is inside. */
TEST(a_range_outside_changes_nothing, struct fixture *f)
{
	const struct {
		uint32_t segment;
		uint64_t offset;
		uint32_t length;
	} ranges[] = {
		{ 3, SEGMENT - 7, 8 }, { 3, UINT64_MAX, 8 },      { 3, UINT64_MAX - 7, 8 },
		{ 4, 0, 8 },           { PS_SEGMENTS_MAX, 0, 8 }, { UINT32_MAX, 0, 8 },
	};
	const uint8_t image[8] = { 0 };
	struct ps_slot slot;

	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		struct ps_record *record;

		make_image(f);
		write_slot(f, 1, 5, 77, 64, 0);
		record = begin_record(ring_at(f, 64), PS_RECORD_TRANSACTION);
		add_range(record, 3, 100, 8, image);
		add_range(record, ranges[i].segment, ranges[i].offset, ranges[i].length, image);
		ps_record_seal(record, 5, 78, 64, 0, 0);
		assert_int_equal(ps_image_recover(&f->image, &slot), PS_RECOVERY_BAD_RANGE);
		assert_int_equal(f->first[100], 100);
		assert_false(ps_image_undo_record(&f->image, record));
	}
}

/* Ranges of one record that overlap, more of them than one step puts back. */
TEST(before_images_go_back_last_first, struct fixture *f)
{
	struct ps_record *record;

	record = begin_record(ring_at(f, 64), PS_RECORD_TRANSACTION);
	for (uint8_t i = 0; i < 101; i++) {
		const uint8_t image[3] = { i, i, i };

		add_range(record, 7, 5u + i, 3, image);
	}
	ps_record_seal(record, 5, 78, 64, 0, 0);
	assert_int_equal(ps_record_check(record, RING - 64), PS_RECORD_OK);
	assert_true(ps_image_undo_record(&f->image, record));
	for (int i = 0; i < 101; i++)
		assert_int_equal(f->second[5 + i], i < 2 ? 0 : i - 2);
	assert_int_equal(f->second[5 + 102], 100);
	assert_int_equal(f->second[4], 255 - 4);
}

/* A publish that did not end: what it names need not even be there. */
TEST(an_unfinished_publish_changes_nothing, struct fixture *f)
{
	struct ps_record *record;
	struct ps_slot slot;

	write_slot(f, 1, 5, 77, 64, 0);
	for (int kind = PS_RECORD_PUBLISH; kind <= PS_RECORD_DESTROY; kind++) {
		record = begin_record(ring_at(f, 64), kind);
		add_range(record, 90, 0, SEGMENT, NULL);
		ps_record_seal(record, 5, 78, 64, 0, 0);
		assert_int_equal(ps_image_recover(&f->image, &slot), PS_RECOVERY_UNDONE);
		assert_int_equal(slot.seq, 77);
	}
}

TEST(an_image_without_a_slot_is_damaged, struct fixture *f)
{
	struct ps_slot slot;

	f->log[8] ^= 1;
	assert_int_equal(ps_image_recover(&f->image, &slot), PS_RECOVERY_NO_SLOT);
}

/* A hostile slot near the end of 64 bits: positions wrap around, memory is not left. */
TEST(positions_that_wrap_are_harmless, struct fixture *f)
{
	struct ps_slot slot;

	for (uint64_t back = 64; back <= 2 * RING; back += 64) {
		write_slot(f, 1, UINT64_MAX, UINT64_MAX, -back, 0);
		assert_int_equal(ps_image_recover(&f->image, &slot), PS_RECOVERY_CLEAN);
	}
}
