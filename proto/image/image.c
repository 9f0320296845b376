/*
 * image.c - reads, checks and rolls back images.
 *
 * Every value is copied out of the image before it is checked, and then used from the copy, because
 * an owner on the same host may still change the memory.
 */
#include "image.h"

#include "crc32c.h"
#include "undo.h"

#include <string.h>

static uint32_t slot_crc(const struct ps_slot *slot)
{
	return ps_crc32c(0, slot, offsetof(struct ps_slot, crc));
}

void ps_slot_encode(struct ps_slot *slot, uint64_t epoch, uint64_t seq, uint64_t next,
                    uint64_t last)
{
	slot->epoch = epoch;
	slot->seq = seq;
	slot->next = next;
	slot->last = last;
	ps_put_pair(&slot->crc, slot_crc(slot), 0);
}

bool ps_slot_valid(const struct ps_slot *slot)
{
	return slot->crc == slot_crc(slot) && slot->zero == 0 && slot->next % PS_ALIGN == 0 &&
	       slot->last % PS_ALIGN == 0 && slot->last < slot->next;
}

bool ps_slot_later(const struct ps_slot *a, const struct ps_slot *b)
{
	return a->epoch != b->epoch ? a->epoch > b->epoch : a->seq > b->seq;
}

int ps_slot_choose(const void *page, struct ps_slot *slot)
{
	int chosen = -1;

	for (int i = 0; i < 2; i++) {
		struct ps_slot copy;

		ps_read_once(&copy, (const uint8_t *)page + ps_slot_offset(i), sizeof copy);
		if (!ps_slot_valid(&copy) || (chosen >= 0 && !ps_slot_later(&copy, slot)))
			continue;
		*slot = copy;
		chosen = i;
	}
	return chosen;
}

void ps_image_init_slots(uint8_t *log)
{
	struct ps_slot slot;

	ps_slot_encode(&slot, 0, 0, PS_FIRST_POSITION, 0);
	memset(log, 0, PS_RING_OFFSET);
	memcpy(log, &slot, sizeof slot);
}

const char *ps_record_fault_text(enum ps_record_fault fault)
{
	switch (fault) {
	case PS_RECORD_OK:
		return "the record is whole";
	case PS_RECORD_BAD_MAGIC:
		return "no record begins here";
	case PS_RECORD_BAD_LENGTH:
		return "the record's lengths do not agree";
	case PS_RECORD_BAD_CRC:
		return "the record's checksum is wrong";
	case PS_RECORD_BAD_FIELD:
		return "a field of the record has a value it cannot have";
	}
	return "unknown fault";
}

static enum ps_record_fault check_head(const struct ps_record *head, uint64_t available)
{
	if (head->magic != PS_RECORD_MAGIC)
		return PS_RECORD_BAD_MAGIC;
	if (head->length < sizeof *head || head->length > available)
		return PS_RECORD_BAD_LENGTH;
	if (head->kind < PS_RECORD_TRANSACTION || head->kind > PS_RECORD_DESTROY)
		return PS_RECORD_BAD_FIELD;
	if (head->flags != 0)
		return PS_RECORD_BAD_FIELD;
	if (head->position == 0 || head->position % PS_ALIGN != 0)
		return PS_RECORD_BAD_FIELD;
	if (head->previous % PS_ALIGN != 0 || head->previous >= head->position)
		return PS_RECORD_BAD_FIELD;
	return PS_RECORD_OK;
}

static enum ps_record_fault check_entries(const struct ps_record *head, const uint8_t *bytes)
{
	const bool images = head->kind == PS_RECORD_TRANSACTION;
	uint64_t at = sizeof *head;
	uint64_t padding = 0;

	for (uint32_t i = 0; i < head->ranges; i++) {
		struct ps_range range;

		if (head->length - at < sizeof range)
			return PS_RECORD_BAD_LENGTH;
		ps_read_once(&range, bytes + at, sizeof range);
		if (ps_entry_size(&range, images) > head->length - at)
			return PS_RECORD_BAD_LENGTH;
		at += ps_entry_size(&range, images);
		for (uint64_t pad = images ? -(uint64_t)range.length % 8 : 0; pad > 0; pad--)
			padding |= bytes[at - pad];
	}
	if (at != head->length)
		return PS_RECORD_BAD_LENGTH;
	return padding ? PS_RECORD_BAD_FIELD : PS_RECORD_OK;
}

/* Computes the sum of entries, whose length is a multiple of 8 bytes (see ps_record_sum()). */
static uint32_t sum_entries(const uint8_t *bytes, uint32_t length)
{
	uint64_t first = 1, second = 0, word;

	for (uint32_t at = 0; at < length; at += sizeof word) {
		memcpy(&word, bytes + at, sizeof word);
		first += word;
		second += first;
	}
	/* Multiplying makes the upper half depend on all bits of the sum. */
	second = (second * 0x9e3779b97f4a7c15) >> 32;
	return second ? (uint32_t)second : 1;
}

uint32_t ps_record_sum(const struct ps_record *record)
{
	return sum_entries((const uint8_t *)(record + 1), record->length - sizeof *record);
}

/* Checks a record and copies its head, whose fields can be trusted if the result is
 * PS_RECORD_OK. */
static enum ps_record_fault check_record(const uint8_t *bytes, uint64_t available,
                                         struct ps_record *head)
{
	struct ps_record summed;
	enum ps_record_fault fault;
	uint32_t crc;

	if (available < sizeof *head)
		return PS_RECORD_BAD_LENGTH;
	ps_read_once(head, bytes, sizeof *head);
	fault = check_head(head, available);
	if (fault == PS_RECORD_OK)
		fault = check_entries(head, bytes);
	if (fault != PS_RECORD_OK)
		return fault;
	summed = *head;
	summed.crc = 0;
	crc = ps_crc32c(0, &summed, sizeof summed);
	crc = ps_crc32c(crc, bytes + sizeof summed, head->length - sizeof summed);
	if (crc != head->crc)
		return PS_RECORD_BAD_CRC;
	if (head->sum &&
	    head->sum != sum_entries(bytes + sizeof summed, head->length - sizeof summed))
		return PS_RECORD_BAD_CRC;
	return PS_RECORD_OK;
}

enum ps_record_fault ps_record_check(const void *bytes, uint64_t available)
{
	struct ps_record head;

	return check_record(bytes, available, &head);
}

/* Begins a walk over the entries of the record at `bytes`. `head` is a checked copy of its head. */
static void begin_walk(struct ps_cursor *cursor, const struct ps_record *head, const uint8_t *bytes)
{
	assert(head->length >= sizeof *head);
	cursor->at = bytes + sizeof *head;
	cursor->end = bytes + head->length;
	cursor->left = head->ranges;
	cursor->has_images = head->kind == PS_RECORD_TRANSACTION;
}

void ps_record_begin_walk(const struct ps_record *record, struct ps_cursor *cursor)
{
	struct ps_record head;

	ps_read_once(&head, record, sizeof head);
	begin_walk(cursor, &head, (const uint8_t *)record);
}

bool ps_record_next(struct ps_cursor *cursor, const struct ps_range **range, const void **image)
{
	struct ps_range copy;

	*range = (const struct ps_range *)cursor->at;
	return ps_record_next_copied(cursor, &copy, image);
}

bool ps_range_inside(const struct ps_range *range, uint64_t size)
{
	return range->offset <= size && range->length <= size - range->offset;
}

void ps_record_seal(struct ps_record *record, uint64_t epoch, uint64_t seq, uint64_t position,
                    uint64_t previous, uint64_t time)
{
	ps_put_pair(&record->magic, PS_RECORD_MAGIC, record->kind);
	ps_put_pair(&record->length, record->length, record->ranges);
	record->epoch = epoch;
	record->seq = seq;
	record->position = position;
	record->previous = previous;
	record->time = time;
	ps_put_pair(&record->crc, 0, record->sum);
	ps_put_pair(&record->crc, ps_crc32c(0, record, record->length), record->sum);
}

/* Returns the checked record that begins exactly at `position`, with a copy of its head, or
 * NULL. */
static const uint8_t *record_at(const struct ps_image *image, uint64_t position,
                                struct ps_record *head)
{
	uint64_t offset = position % image->ring_size;
	const uint8_t *bytes = image->log + PS_RING_OFFSET + offset;

	if (position == 0 || position % PS_ALIGN != 0)
		return NULL;
	if (check_record(bytes, image->ring_size - offset, head) != PS_RECORD_OK)
		return NULL;
	return head->position == position ? bytes : NULL;
}

const struct ps_record *ps_image_record_at(const struct ps_image *image, uint64_t position)
{
	struct ps_record head;

	return (const struct ps_record *)record_at(image, position, &head);
}

/* Finds a record like ps_image_find_record(), and copies its head to *head. */
static const uint8_t *find_record(const struct ps_image *image, uint64_t epoch, uint64_t seq,
                                  uint64_t next, struct ps_record *head)
{
	const uint64_t places[2] = { next,
		                     ps_record_position(next, image->ring_size, image->ring_size) };

	for (int i = 0; i < 2; i++) {
		const uint8_t *bytes = record_at(image, places[i], head);

		if (bytes && head->epoch == epoch && head->seq == seq &&
		    ps_record_position(next, head->length, image->ring_size) == head->position)
			return bytes;
	}
	return NULL;
}

const struct ps_record *ps_image_find_record(const struct ps_image *image, uint64_t epoch,
                                             uint64_t seq, uint64_t next)
{
	struct ps_record head;

	return (const struct ps_record *)find_record(image, epoch, seq, next, &head);
}

/* Returns the bytes of the image that a range names, or NULL if they lie outside. */
static uint8_t *range_bytes(const struct ps_image *image, const struct ps_range *range)
{
	uint8_t *base;

	if (range->segment >= PS_SEGMENTS_MAX)
		return NULL;
	base = image->segments[range->segment].base;
	if (!base || !ps_range_inside(range, image->segments[range->segment].size))
		return NULL;
	return base + range->offset;
}

static bool ranges_inside(const struct ps_image *image, struct ps_cursor cursor)
{
	struct ps_range range;
	const void *before;

	while (ps_record_next_copied(&cursor, &range, &before))
		if (!range_bytes(image, &range))
			return false;
	return true;
}

static void put_in_image(const void *image, const struct ps_range *range, const void *before)
{
	uint8_t *bytes = range_bytes(image, range);

	if (bytes)
		memcpy(bytes, before, range->length);
}

/* Rolls back the record at `bytes`. `head` is a checked copy of its head. */
static bool undo_record(const struct ps_image *image, const struct ps_record *head,
                        const uint8_t *bytes)
{
	struct ps_cursor cursor;

	if (head->kind != PS_RECORD_TRANSACTION)
		return true; /* publish and destroy records change no bytes */
	begin_walk(&cursor, head, bytes);
	if (!ranges_inside(image, cursor))
		return false;
	ps_undo_entries(cursor, put_in_image, image);
	return true;
}

bool ps_image_undo_record(const struct ps_image *image, const struct ps_record *record)
{
	struct ps_record head;

	ps_read_once(&head, record, sizeof head);
	return undo_record(image, &head, (const uint8_t *)record);
}

enum ps_recovery ps_image_recover(const struct ps_image *image, struct ps_slot *slot)
{
	struct ps_record head;
	const uint8_t *bytes;

	if (ps_slot_choose(image->log, slot) < 0)
		return PS_RECOVERY_NO_SLOT;
	bytes = find_record(image, slot->epoch, slot->seq + 1, slot->next, &head);
	if (!bytes)
		return PS_RECOVERY_CLEAN;
	return undo_record(image, &head, bytes) ? PS_RECOVERY_UNDONE : PS_RECOVERY_BAD_RANGE;
}
