/*
 * fuzz_log.c - any bytes as a log that is read while its owner writes. A reader asks for nothing
 * outside of the log, what it gives out are whole records of its ring, older and older ones, and
 * there is an end.
 *
 * Input: a byte of flags, two slots, then records, each put where its position says. Flag 1: the
 * slots get right checksums; 2: the records too; 4: all are there from the beginning, and else one
 * more before each of the reader's requests.
 */
#include "../../proto/image/crc32c.h"
#include "../../proto/image/log_reader.h"
#include "../../proto/image/undo.h"
#include "target.h"

enum { RING = 3 * 4096, SEGMENT = 256 };

struct owner {
	uint8_t *log;
	const uint8_t *data; /* what was not yet written */
	size_t size;
	uint8_t flags;
};

static void put_slots(struct owner *owner)
{
	for (int i = 0; i < 2; i++) {
		struct ps_slot slot;

		memcpy(&slot, owner->data + (size_t)i * sizeof slot, sizeof slot);
		if (owner->flags & 1)
			ps_slot_encode(&slot, slot.epoch, slot.seq, slot.next & ~(uint64_t)63,
			               slot.last & ~(uint64_t)63);
		memcpy(owner->log + ps_slot_offset(i), &slot, sizeof slot);
	}
	owner->data += 2 * sizeof(struct ps_slot);
	owner->size -= 2 * sizeof(struct ps_slot);
}

/* Writes the next record, or what is left of it. */
static void write_one(struct owner *owner)
{
	struct ps_record *record;
	uint64_t at, length;

	if (owner->size < sizeof *record) {
		owner->size = 0;
		return;
	}
	record = malloc(owner->size);
	memcpy(record, owner->data, owner->size);
	at = record->position % RING & ~(uint64_t)63;
	length = record->length < sizeof *record ? sizeof *record : record->length;
	if (length > owner->size)
		length = owner->size;
	owner->data += length;
	owner->size -= length;
	if (owner->flags & 2 && record->length == length) {
		record->crc = 0;
		record->crc = ps_crc32c(0, record, length);
	}
	memcpy(owner->log + PS_RING_OFFSET + at, record, length < RING - at ? length : RING - at);
	free(record);
}

static uint64_t ask(void *source, uint64_t offset, uint64_t length, void *to)
{
	struct owner *owner = source;

	assert(length > 0 && offset <= PS_RING_OFFSET + RING &&
	       length <= PS_RING_OFFSET + RING - offset);
	if (!(owner->flags & 4))
		write_one(owner);
	return ps_log_memory.ask(owner->log, offset, length, to);
}

static bool is_there(void *source, uint64_t ticket)
{
	(void)source;
	return ticket != 0;
}

/* Undoes a record, which lies in the reader's ring as a whole. */
static void use(const struct ps_log_reader *reader, const struct ps_record *record)
{
	const uint8_t *ring = reader->image.log + PS_RING_OFFSET, *at = (const uint8_t *)record;
	uint8_t bytes[SEGMENT + 16];
	const struct ps_window window = { bytes, 8, SEGMENT, 0 };

	assert(at >= ring && at < ring + RING && record->length <= (uint64_t)(ring + RING - at));
	assert(ps_record_check(record, record->length) == PS_RECORD_OK);
	memset(bytes, 0xee, sizeof bytes);
	ps_undo_record(record, ps_window_restore, &window);
	for (unsigned i = SEGMENT; i < sizeof bytes; i++)
		assert(bytes[i] == 0xee);
}

static void read_past(struct ps_log_reader *reader, unsigned most)
{
	const struct ps_record *record;
	uint64_t before = reader->lowest;

	while (most-- > 0 && ps_log_read_older(reader, &record) == 0) {
		assert(record->position < before && record->position == reader->lowest);
		before = record->position;
		use(reader, record);
	}
}

static void read_all(struct ps_log_reader *reader)
{
	const struct ps_record *record;
	struct ps_log_back back;
	enum ps_log_step step;

	read_past(reader, 2);
	step = ps_log_read_new(reader);
	if (!step)
		step = ps_log_read_tail(reader);
	assert(step == PS_LOG_OK || step == PS_LOG_OVERTAKEN);
	assert(reader->next - reader->lowest <= RING);
	back = ps_log_newest_followed(reader);
	for (uint64_t seq = reader->seq; seq != reader->from.seq; seq--) {
		if (ps_log_older_followed(reader, &back, &record))
			break;
		assert(record->seq == seq);
		use(reader, record);
	}
	read_past(reader, RING);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ps_log_ops ops = { .ask = ask, .wait = is_there };
	struct ps_log_reader reader;
	struct owner owner;
	uint8_t *ring;

	if (size < 1 + 2 * sizeof(struct ps_slot))
		return 0;
	owner = (struct owner){ calloc(1, PS_RING_OFFSET + RING), data + 1, size - 1, data[0] };
	ring = calloc(1, PS_RING_OFFSET + RING);
	put_slots(&owner);
	while (owner.flags & 4 && owner.size > 0)
		write_one(&owner);
	ps_log_init(&reader, &ops, &owner, ring, RING);
	if (!ps_log_read_state(&reader))
		read_all(&reader);
	free(owner.log);
	free(ring);
	return 0;
}
