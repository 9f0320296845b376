/*
 * fuzz_record.c - any bytes as an undo record. What passes the check is walked: no entry
 * may lie outside the record, and together they fill it.
 *
 * The first byte says whether the checksum is made right, so that what lies behind it is
 * reached too; the record follows.
 */
#include "../../proto/image/crc32c.h"
#include "../../proto/image/image.h"
#include "target.h"

static void walk(const struct ps_record *record, size_t size)
{
	const uint8_t *end = (const uint8_t *)record + record->length;
	const uint8_t *expected = (const uint8_t *)(record + 1);
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *image;
	uint32_t count = 0;

	assert(record->length <= size);
	ps_record_begin_walk(record, &cursor);
	while (ps_record_next(&cursor, &range, &image)) {
		assert((const uint8_t *)range == expected);
		expected += sizeof *range;
		assert((image != NULL) == (record->kind == PS_RECORD_TRANSACTION));
		if (image) {
			ps_crc32c(0, image, range->length);
			expected += ps_align8(range->length);
		}
		count++;
	}
	assert(count == record->ranges && expected == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ps_record *record;
	enum ps_record_fault fault;

	if (size < 1)
		return 0;
	record = malloc(size); /* one byte more than the record, aligned */
	memcpy(record, data + 1, --size);
	if (data[0] & 1 && size >= sizeof *record && record->length <= size &&
	    record->length >= sizeof *record) {
		record->crc = 0;
		record->crc = ps_crc32c(0, record, record->length);
	}
	fault = ps_record_check(record, size);
	assert(*ps_record_fault_text(fault));
	if (fault == PS_RECORD_OK)
		walk(record, size);
	free(record);
	return 0;
}
