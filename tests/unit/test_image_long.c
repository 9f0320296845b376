/*
 * test_image_long.c - records of very many entries are rolled back in order, and in linear time.
 */
#include "../../proto/image/image.h"
#include "../support/unit.h"

/* An image with an unfinished transaction of `count` before-images of the same 8 bytes. */
static struct ps_record *make_long_record(struct ps_image *image, uint8_t *segment, uint32_t count)
{
	const struct ps_range range = { .segment = 0, .length = 8 };
	const uint64_t length = sizeof(struct ps_record) + (uint64_t)count * (sizeof(range) + 8);
	struct ps_record *record;
	uint8_t *at;

	memset(image, 0, sizeof *image);
	image->ring_size = 64 + (length + 63) / 64 * 64;
	image->log = calloc(1, PS_RING_OFFSET + image->ring_size);
	assert_non_null(image->log);
	ps_image_init_slots(image->log);
	image->segments[0].base = segment;
	image->segments[0].size = 8;
	record = (struct ps_record *)(image->log + PS_RING_OFFSET + 64);
	record->kind = PS_RECORD_TRANSACTION;
	record->length = (uint32_t)length;
	record->ranges = count;
	at = (uint8_t *)(record + 1);
	for (uint64_t i = 0; i < count; i++, at += sizeof(range) + 8) {
		memcpy(at, &range, sizeof(range));
		memcpy(at + sizeof(range), &i, 8);
	}
	ps_record_seal(record, 0, 1, 64, 0, 0);
	return record;
}

/* Around the numbers at which the walk over the entries takes another shape. */
TEST(any_number_of_entries_goes_back_last_first)
{
	static const uint32_t counts[] = { 1,      2,      255,     256,    257,   511,
		                           512,    513,    1023,    1024,   1025,  65535,
		                           65536,  65537,  65792,   70000,  76800, 99999,
		                           131073, 300000, 1048575, 1048577 };
	struct ps_image image;
	struct ps_slot slot;
	uint64_t first;

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		uint64_t segment = 12345;

		make_long_record(&image, (uint8_t *)&segment, counts[i]);
		assert_int_equal(ps_image_recover(&image, &slot), PS_RECOVERY_UNDONE);
		memcpy(&first, &segment, sizeof(first));
		assert_int_equal(first, 0);
		free(image.log);
	}
}

static uint64_t processor_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A claim waits for the roll-back, so each entry may be walked over a few times only, and not once
 * for each halving of their number (twenty for a million). Compares processor time with that of a
 * check of the record. */
TEST(a_long_record_goes_back_in_linear_time)
{
	uint64_t segment = 0, began, check = UINT64_MAX, undo = UINT64_MAX;
	struct ps_image image;
	struct ps_record *record = make_long_record(&image, (uint8_t *)&segment, 1 << 20);

	for (int round = 0; round < 5; round++) {
		began = processor_ns();
		assert_int_equal(ps_record_check(record, image.ring_size - 64), PS_RECORD_OK);
		check = processor_ns() - began < check ? processor_ns() - began : check;
		began = processor_ns();
		assert_true(ps_image_undo_record(&image, record));
		undo = processor_ns() - began < undo ? processor_ns() - began : undo;
	}
	print_message("check %llu us, undo %llu us\n", (unsigned long long)check / 1000,
	              (unsigned long long)undo / 1000);
	assert_true(undo < 6 * check);
	free(image.log);
}
