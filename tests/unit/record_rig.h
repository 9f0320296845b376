/*
 * record_rig.h - undo records for unit tests, entry by entry. They are what ps_record_seal makes of
 * them; nothing is checked here, so that a test can make wrong ones too.
 */
#ifndef PERSEAS_TESTS_RECORD_RIG_H
#define PERSEAS_TESTS_RECORD_RIG_H

#include "../../proto/image/image.h"

#include <string.h>

static inline struct ps_record *begin_record(void *memory, enum ps_record_kind kind)
{
	struct ps_record *record = memory;

	memset(record, 0, sizeof *record);
	record->kind = (uint16_t)kind;
	record->length = sizeof *record;
	return record;
}

static inline void add_range(struct ps_record *record, uint32_t segment, uint64_t offset,
                             uint32_t length, const void *image)
{
	uint8_t *at = (uint8_t *)record + record->length;
	struct ps_range range = { .segment = segment, .length = length, .offset = offset };

	memcpy(at, &range, sizeof range);
	record->length += sizeof range;
	record->ranges++;
	if (record->kind == PS_RECORD_TRANSACTION) {
		memset(at + sizeof range, 0, ps_align8(length));
		if (image)
			memcpy(at + sizeof range, image, length);
		record->length += (uint32_t)ps_align8(length);
	}
}

#endif
