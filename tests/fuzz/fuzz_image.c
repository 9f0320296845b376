/*
 * fuzz_image.c - any bytes as an image. Rolling back never leaves the image, never changes
 * its log, changes no data unless it says so, and done twice is as done once.
 *
 * Input: a byte of flags, two slots, and then bytes of the ring, put where the slot that
 * counts says that the next record begins. Flag 1: the slots get right checksums; 2: the
 * record too; 4: it is at the next lap's start.
 */
#include "../../proto/image/crc32c.h"
#include "../../proto/image/image.h"
#include "target.h"

enum { RING = 4096, SEGMENT = 256 };

struct memory {
	_Alignas(64) uint8_t log[PS_RING_OFFSET + RING];
	uint8_t segments[2][SEGMENT];
};

static void put_slots(struct memory *memory, const uint8_t *data, bool mend)
{
	for (int i = 0; i < 2; i++) {
		struct ps_slot slot;

		memcpy(&slot, data + (size_t)i * sizeof slot, sizeof slot);
		if (mend)
			ps_slot_encode(&slot, slot.epoch, slot.seq, slot.next & ~(uint64_t)63,
			               slot.last & ~(uint64_t)63);
		memcpy(memory->log + ps_slot_offset(i), &slot, sizeof slot);
	}
}

static void put_record(struct memory *memory, const uint8_t *data, size_t size, uint8_t flags)
{
	struct ps_record *record;
	struct ps_slot slot;
	uint64_t offset;

	if (ps_slot_choose(memory->log, &slot) < 0)
		slot.next = 0;
	offset = flags & 4 ? 0 : slot.next % RING;
	if (size > RING - offset)
		size = RING - offset;
	memcpy(memory->log + PS_RING_OFFSET + offset, data, size);
	record = (struct ps_record *)(memory->log + PS_RING_OFFSET + offset);
	if (!(flags & 2) || record->length < sizeof *record || record->length > RING - offset)
		return;
	record->crc = 0;
	record->crc = ps_crc32c(0, record, record->length);
}

static void recover(struct memory *memory)
{
	struct memory *before = malloc(sizeof *before), *once = malloc(sizeof *once);
	struct ps_image image = { .log = memory->log, .ring_size = RING };
	struct ps_slot slot = { 0 }, again = { 0 };
	enum ps_recovery result;

	for (int i = 0; i < 2; i++) {
		image.segments[i * 5].base = memory->segments[i];
		image.segments[i * 5].size = SEGMENT;
	}
	memcpy(before, memory, sizeof *before);
	result = ps_image_recover(&image, &slot);
	assert(memcmp(memory->log, before->log, sizeof before->log) == 0);
	if (result != PS_RECOVERY_UNDONE)
		assert(memcmp(memory, before, sizeof *before) == 0);
	memcpy(once, memory, sizeof *once);
	assert(ps_image_recover(&image, &again) == result);
	assert(memcmp(memory, once, sizeof *once) == 0);
	assert(memcmp(&slot, &again, sizeof slot) == 0);
	free(before);
	free(once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t head = 1 + 2 * sizeof(struct ps_slot);
	struct memory *memory;

	if (size < head)
		return 0;
	memory = aligned_alloc(64, sizeof *memory);
	memset(memory, 0, sizeof *memory);
	put_slots(memory, data + 1, data[0] & 1);
	put_record(memory, data + head, size - head, data[0]);
	recover(memory);
	free(memory);
	return 0;
}
