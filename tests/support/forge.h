/*
 * forge.h - records that a user of an application could make: bytes that are stored as data, and
 * that lie in the log as a before-image when a claim or a reader looks for a record at that place.
 *
 * Everything that a record needs is predictable for somebody who knows how long the records of an
 * application are: positions and seqs follow from the number of transactions.
 */
#ifndef PERSEAS_TESTS_FORGE_H
#define PERSEAS_TESTS_FORGE_H

#include "../../proto/image/image.h"

#include <string.h>

/* The end of a log. */
struct forge_log {
	uint64_t next, seq, last, ring;
};

/* Moves on by a transaction with one range of `length` bytes. Returns where its record begins. */
static inline uint64_t forge_commit(struct forge_log *log, uint64_t length)
{
	const uint64_t record = sizeof(struct ps_record) + sizeof(struct ps_range) +
	                        ps_align8(length);

	log->last = ps_record_position(log->next, record, log->ring);
	log->next = log->last + ps_align64(record);
	log->seq++;
	return log->last;
}

enum { FORGED_LENGTH = 8, FORGED_RECORD = 64 + 16 + FORGED_LENGTH };

/* Forges the record of a transaction seq + 1 behind the log, of FORGED_RECORD bytes. Rolling it
 * back would put 8 bytes 'F' at `offset` of the segment. */
static inline void forge_record(void *to, const struct forge_log *log, uint64_t epoch,
                                uint32_t segment, uint64_t offset)
{
	_Alignas(64) uint8_t bytes[FORGED_RECORD] = { 0 };
	struct ps_record *record = (struct ps_record *)bytes;
	const struct ps_range range = { segment, FORGED_LENGTH, offset };

	record->kind = PS_RECORD_TRANSACTION;
	record->length = FORGED_RECORD;
	record->ranges = 1;
	memcpy(bytes + sizeof(*record), &range, sizeof(range));
	memset(bytes + sizeof(*record) + sizeof(range), 'F', FORGED_LENGTH);
	ps_record_seal(record, epoch, log->seq + 1, log->next, log->last, 1);
	memcpy(to, bytes, FORGED_RECORD);
}

/* Bytes of a record before the first before-image. */
enum { FORGE_HEAD = sizeof(struct ps_record) + sizeof(struct ps_range) };

/*
 * The log as it will stand, in its next lap, where a before-image lies now: one of `length` bytes
 * of a record at `position`. Moves *log on by transactions of `small` bytes until `next` is within
 * it, with FORGED_RECORD bytes behind. Returns the offset within the before-image.
 */
static inline uint64_t forge_find(struct forge_log *log, uint64_t position, uint64_t length,
                                  uint64_t small)
{
	const uint64_t from = position + log->ring + FORGE_HEAD;

	while (log->next < from)
		forge_commit(log, small);
	return log->next + FORGED_RECORD <= from + length ? log->next - from : UINT64_MAX;
}

#endif
