/*
 * log_reader_rig.h - an owner's log, and a reader of it, for the tests of log_reader.c. The owner
 * may act between any two requests of the reader's.
 */
#ifndef PERSEAS_TESTS_LOG_READER_RIG_H
#define PERSEAS_TESTS_LOG_READER_RIG_H

#include "../../proto/image/log_reader.h"
#include "record_rig.h"
#include "../support/unit.h"

enum { RING = 4096, WIDE = 64 << 10, EPOCH = 5, RECORD_MAX = 32 << 10 };

/* An owner, its log, and a reader with a ring of its own. */
struct fixture {
	struct ps_log_reader reader;
	struct ps_slot slot; /* the current slot */
	int index;
	uint64_t ring;
	uint8_t *log, *copy;
	_Alignas(64) uint8_t record[RECORD_MAX];
	/* Before the reader's request number act_at, the owner calls act(); request number fail_at
	 * fails. */
	unsigned asked, act_at, fail_at;
	void (*act)(struct fixture *f);
};

static inline uint64_t ask(void *source, uint64_t offset, uint64_t length, void *to)
{
	struct fixture *f = source;

	assert_true(length > 0 && offset <= PS_RING_OFFSET + f->ring &&
	            length <= PS_RING_OFFSET + f->ring - offset);
	f->asked++;
	if (f->act && f->asked == f->act_at)
		f->act(f);
	if (f->asked == f->fail_at)
		return 0;
	return ps_log_memory.ask(f->log, offset, length, to);
}

static inline bool is_there(void *source, uint64_t ticket)
{
	(void)source;
	return ticket != 0;
}

static const struct ps_log_ops ops = { .ask = ask, .wait = is_there };

/* The owner acts before that request of the reader's, counted from now on. */
static inline void act_before(struct fixture *f, void (*act)(struct fixture *f), unsigned request)
{
	f->act = act;
	f->act_at = f->asked + request;
}

static inline void put_slot(struct fixture *f, uint64_t epoch, uint64_t seq, uint64_t next,
                            uint64_t last)
{
	f->index = 1 - f->index;
	ps_slot_encode(&f->slot, epoch, seq, next, last);
	memcpy(f->log + ps_slot_offset(f->index), &f->slot, sizeof(f->slot));
}

static inline void stop(struct fixture *f)
{
	free(f->log);
	free(f->copy);
	memset(f, 0, sizeof(*f));
}

/* Begins with an empty log, whatever was there before. Its memory has just the log's size, so that
 * a sanitizer sees what leaves it. */
static inline void start(struct fixture *f, uint64_t ring)
{
	stop(f);
	f->ring = ring;
	f->log = calloc(1, PS_RING_OFFSET + ring);
	f->copy = calloc(1, PS_RING_OFFSET + ring);
	assert_true(f->log && f->copy);
	put_slot(f, EPOCH, 0, PS_FIRST_POSITION, 0);
	ps_log_init(&f->reader, &ops, f, f->copy, ring);
}

static inline int setup_fixture(void **state)
{
	static struct fixture fixture;

	*state = &fixture;
	return 0;
}

static inline int teardown_fixture(void **state)
{
	stop(*state);
	return 0;
}

/* The record that comes next, of one range. */
static inline const struct ps_record *make_record(struct fixture *f, uint32_t length)
{
	static uint8_t before[RECORD_MAX];
	struct ps_record *record = begin_record(f->record, PS_RECORD_TRANSACTION);

	/* The bytes differ from record to record, so that each byte shows whose it is. */
	memset(before, 1 + (int)(f->slot.seq % 255), length);
	add_range(record, 0, 0, length, before);
	ps_record_seal(record, f->slot.epoch, f->slot.seq + 1,
	               ps_record_position(f->slot.next, record->length, f->ring), f->slot.last, 1);
	return record;
}

static inline uint8_t *place_of(const struct fixture *f, uint64_t position)
{
	return f->log + PS_RING_OFFSET + position % f->ring;
}

static inline void commit(struct fixture *f, uint32_t length)
{
	const struct ps_record *record = make_record(f, length);
	const uint64_t next = record->position + ps_align64(record->length);

	memcpy(place_of(f, record->position), record, record->length);
	memset(place_of(f, record->position) + record->length, 0,
	       next - record->position - record->length + ps_terminator_size(next, f->ring));
	put_slot(f, record->epoch, record->seq, next, record->position);
}

/* Writes the record that comes next, and no slot of it. */
static inline const struct ps_record *send_record(struct fixture *f, uint32_t length)
{
	const struct ps_record *record = make_record(f, length);

	memcpy(place_of(f, record->position), record, record->length);
	return record;
}

static inline uint32_t length_of(uint64_t k)
{
	return 1 + (uint32_t)(k * 7919 % 700);
}

/* Begins with a log of so many transactions, and with the reader behind them. */
static inline void begin_behind(struct fixture *f, uint64_t ring, unsigned count)
{
	start(f, ring);
	for (unsigned k = 0; k < count; k++)
		commit(f, length_of(k));
	assert_int_equal(ps_log_read_state(&f->reader), PS_LOG_OK);
}

/* Returns true if the next record, the rest of the ring, and `spare` bytes fit behind the record
 * that was read first. */
static inline bool is_room(struct fixture *f, uint32_t length, uint32_t spare)
{
	const struct ps_record *record = make_record(f, length);

	return record->position + ps_align64(record->length) + spare - f->reader.from.next <=
	       f->ring;
}

/* Checks that the records from `newest` back to the one after `oldest` were followed. */
static inline void assert_followed(const struct ps_log_reader *reader, uint64_t newest,
                                   uint64_t oldest)
{
	struct ps_log_back back = ps_log_newest_followed(reader);
	const struct ps_record *record;

	assert_int_equal(reader->seq, newest);
	while (back.seq > oldest) {
		assert_int_equal(ps_log_older_followed(reader, &back, &record), 0);
		assert_int_equal(record->seq, newest--);
	}
	assert_int_equal(newest, oldest);
}

/* Follows the log to its tail. Commits the next transaction where that must show that what was
 * followed is right. */
static inline enum ps_log_step tail(struct fixture *f)
{
	enum ps_log_step step = ps_log_read_tail(&f->reader);

	/* That transaction's own record may need the one after it. */
	for (unsigned more = 0; step == PS_LOG_OVERTAKEN && f->reader.unproven_from && more < 2;
	     more++) {
		assert_true(f->reader.unproven_from <
		            ps_lowest_intact_position(f->slot.next, f->ring));
		commit(f, 1);
		step = ps_log_prove_records(&f->reader);
	}
	return step;
}

/* Commits, and the reader follows at once. */
static inline void commit_and_look(struct fixture *f, uint32_t length)
{
	commit(f, length);
	assert_int_equal(ps_log_read_new(&f->reader), PS_LOG_OK);
}

static inline void act_many(struct fixture *f)
{
	for (unsigned k = 0; k < 40; k++)
		commit(f, 200);
}

static inline void act_another_owner(struct fixture *f)
{
	put_slot(f, EPOCH + 1, f->slot.seq, f->slot.next, f->slot.last);
}

#endif
