/*
 * test_savepoint.c - savepoints: what a roll-back puts back, what is sent in the end, and that who
 * looks into the transaction meanwhile sees what is committed.
 */
#include "owner.h"
#include "../../client/core/tx.h"

struct unit_fixture unit_fixture = { owner_setup_one, owner_teardown };

enum { SAVEPOINTS = 6, STEPS = 60 };

static uint64_t random_state;

static unsigned draw(unsigned below)
{
	return (unsigned)(unit_draw(&random_state) % below);
}

static void put(struct owner *o, perseas_tx_t *tx, unsigned at, unsigned length, uint8_t value)
{
	assert_int_equal(perseas_set_range(tx, o->bytes + at, length), 0);
	memset(o->bytes + at, value, length);
}

static uint64_t mark(perseas_tx_t *tx)
{
	uint64_t savepoint;

	assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
	assert_true(savepoint > 0);
	return savepoint;
}

static const uint8_t *mirrored(struct owner *o)
{
	uint64_t size;

	return memory_heap_piece(o->d->mirrors[0].memory, STORE, "segment-0.1", &size);
}

/* The byte is declared before the savepoint, changed, and declared again behind it: a roll-back
 * gives it the value that it had at the savepoint, and an abort the first. */
TEST(test_what_was_changed_before_the_savepoint_stays, struct owner *o)
{
	const uint8_t before = o->bytes[100];
	perseas_tx_t *tx = owner_tx(o);
	uint64_t savepoint;

	put(o, tx, 100, 1, 1);
	savepoint = mark(tx);
	put(o, tx, 100, 1, 2);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	assert_int_equal(o->bytes[100], 1);
	/* And again, since the savepoint is still there. */
	put(o, tx, 100, 1, 3);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	assert_int_equal(o->bytes[100], 1);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(o->bytes[100], before);
}

/* A range that goes on where one before the savepoint ended: only the new part is taken back. */
TEST(test_no_entry_goes_on_across_a_savepoint, struct owner *o)
{
	perseas_tx_t *tx = owner_tx(o);
	uint64_t savepoint;

	put(o, tx, 0, 8, 1);
	savepoint = mark(tx);
	put(o, tx, 8, 8, 2);
	assert_int_equal(tx->range_count, 2);
	assert_int_equal(tx->cover.span_count, 1);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	assert_int_equal(tx->range_count, 1);
	assert_int_equal(tx->cover.covered_bytes, 8);
	assert_int_equal(o->bytes[0], 1);
	assert_int_equal(o->bytes[8], (uint8_t)(8 * 7));
	/* The next range is an entry of its own again. */
	put(o, tx, 8, 8, 3);
	assert_int_equal(tx->range_count, 2);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_memory_equal(mirrored(o), o->bytes, SIZE);
}

/* Each declared byte is in the record once, as it was before the transaction. */
static void check_record(struct owner *o, perseas_tx_t *tx, const uint8_t *before)
{
	struct ps_cursor cursor = { tx->record + sizeof(struct ps_record),
		                    tx->record + tx->record_length, tx->range_count, true };
	static uint8_t times[SIZE];
	const struct ps_range *range;
	uint64_t bytes = 0;
	const void *image;

	memset(times, 0, SIZE);
	while (ps_record_next(&cursor, &range, &image)) {
		assert_memory_equal(image, before + range->offset, range->length);
		for (unsigned i = 0; i < range->length; i++)
			assert_int_equal(times[range->offset + i]++, 0);
		bytes += range->length;
	}
	assert_ptr_equal(cursor.at, cursor.end);
	assert_int_equal(tx->cover.covered_bytes, bytes);
	for (unsigned i = 0; i < SIZE; i++)
		assert_int_equal(ps_cover_overlaps(&tx->cover, (uintptr_t)o->bytes + i,
		                                   (uintptr_t)o->bytes + i + 1),
		                 times[i]);
}

/* A resync that copies the segment now takes what is committed. */
static void check_committed(struct owner *o, const uint8_t *before)
{
	static uint8_t bytes[SIZE];

	ps_tx_observe_begin(o->p);
	pthread_mutex_lock(&o->p->lock);
	ps_tx_copy_committed(o->p, &o->p->segments[0], 0, bytes, SIZE);
	pthread_mutex_unlock(&o->p->lock);
	ps_tx_observe_end(o->p);
	assert_memory_equal(bytes, before, SIZE);
}

struct point {
	uint64_t savepoint;
	uint8_t bytes[SIZE];
};

/* Runs one transaction with random nested savepoints and roll-backs; a model keeps copies. */
static void run_one(struct owner *o, uint8_t *before)
{
	static struct point points[SAVEPOINTS];
	perseas_tx_t *tx = owner_tx(o);
	unsigned count = 0;

	for (unsigned step = 0; step < STEPS; step++) {
		unsigned what = draw(10), length = 1 + draw(draw(2) ? 9 : 400);

		if (what == 0 && count < SAVEPOINTS) {
			points[count].savepoint = mark(tx);
			memcpy(points[count++].bytes, o->bytes, SIZE);
		} else if (what == 1 && count > 0) {
			count -= draw(count);
			assert_int_equal(perseas_rollback_to(tx, points[count - 1].savepoint), 0);
			assert_memory_equal(o->bytes, points[count - 1].bytes, SIZE);
		} else {
			put(o, tx, draw(draw(2) ? 300 : SIZE - length), length, (uint8_t)draw(256));
		}
		check_record(o, tx, before);
		check_committed(o, before);
	}
	if (draw(2)) {
		assert_int_equal(perseas_abort(tx), 0);
		assert_memory_equal(o->bytes, before, SIZE);
	} else {
		assert_int_equal(perseas_commit(tx, 0), 0);
		memcpy(before, o->bytes, SIZE);
	}
	assert_memory_equal(mirrored(o), before, SIZE);
}

/* Ranges that overlap in every way, with savepoints between them: a roll-back gives every byte what
 * it held, the record stays that of the transaction, and mirrors see neither. */
TEST(test_roll_backs_by_chance, struct owner *o)
{
	static uint8_t before[SIZE];

	random_state = 0x1998;
	memcpy(before, o->bytes, SIZE);
	for (unsigned i = 0; i < 150; i++)
		run_one(o, before);
	assert_true(owner_stat(o).commits > 20 && owner_stat(o).aborts > 20);
}

/* The checked modes take the lock in set_range, and look at what is declared. */
TEST(test_roll_backs_in_the_checked_modes, struct owner *o)
{
	assert_int_equal(owner_open(o, PERSEAS_CHECK_OVERLAP | PERSEAS_CHECK_WRITES), 0);
	owner_map(o);
	test_roll_backs_by_chance(o);
}

/* All is taken back: nothing is declared, so that others may have the bytes, the segment may be
 * unmapped, and commit sends nothing. */
TEST(test_what_is_taken_back_is_not_declared, struct owner *o)
{
	uint64_t seq, savepoint;
	perseas_tx_t *tx, *other;

	assert_int_equal(owner_open(o, PERSEAS_CHECK_OVERLAP), 0);
	owner_map(o);
	seq = o->p->commit.seq;
	tx = owner_tx(o);
	savepoint = mark(tx);
	put(o, tx, 10, 10, 9);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	other = owner_tx(o);
	assert_int_equal(perseas_set_range(other, o->bytes + 10, 10), 0);
	assert_int_equal(perseas_abort(other), 0);
	assert_int_equal(perseas_unmap(o->p, o->bytes), 0);
	owner_map(o);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(o->p->commit.seq, seq);
}

/* Savepoints are numbers: those of others, of those that ended, and later ones than one that was
 * rolled back to are refused with a sentence, and change nothing. */
TEST(test_savepoints_that_are_gone, struct owner *o)
{
	perseas_tx_t *tx = owner_tx(o), *other = owner_tx(o);
	uint64_t first, second, others = mark(other), none = 7;

	assert_int_equal(perseas_rollback_to(tx, others), PERSEAS_EINVAL);
	first = mark(tx);
	put(o, tx, 0, 10, 1);
	second = mark(tx);
	put(o, tx, 0, 10, 2);
	assert_int_equal(perseas_rollback_to(tx, others), PERSEAS_EINVAL);
	assert_says(o, "has no savepoint");
	assert_int_equal(o->bytes[0], 2);
	assert_int_equal(perseas_rollback_to(tx, first), 0);
	assert_int_equal(perseas_rollback_to(tx, second), PERSEAS_EINVAL);
	assert_int_equal(perseas_savepoint(tx, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_savepoint(NULL, &none), PERSEAS_EINVAL);
	assert_int_equal(none, 0);
	assert_int_equal(perseas_rollback_to(NULL, first), PERSEAS_EINVAL);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(perseas_rollback_to(tx, first), PERSEAS_EENDED);
	assert_int_equal(perseas_savepoint(tx, &none), PERSEAS_EENDED);
	/* The next one may have the same memory, and not the savepoints. */
	tx = owner_tx(o);
	assert_int_equal(perseas_rollback_to(tx, first), PERSEAS_EINVAL);
	mark(tx);
	assert_int_equal(perseas_rollback_to(tx, first), PERSEAS_EINVAL);
	perseas_abort(tx);
	perseas_abort(other);
}

/* A byte is stored to behind a savepoint, and was only declared before it: a roll-back would not
 * put it back, and says so where writes are checked. */
TEST(test_a_store_that_was_not_declared_again_is_found, struct owner *o)
{
	perseas_tx_t *tx;
	uint64_t first, second;

	assert_int_equal(owner_open(o, PERSEAS_CHECK_WRITES), 0);
	owner_map(o);
	tx = owner_tx(o);
	put(o, tx, 100, 50, 1);
	first = mark(tx);
	put(o, tx, 200, 50, 1);
	second = mark(tx);
	o->bytes[210] = 2;
	assert_int_equal(perseas_rollback_to(tx, second), PERSEAS_EUNDECLARED);
	assert_says(o, "not declared since");
	assert_int_equal(perseas_rollback_to(tx, first), PERSEAS_EUNDECLARED);
	assert_int_equal(o->bytes[210], 2);
	o->bytes[210] = 1;
	assert_int_equal(perseas_rollback_to(tx, first), 0);
	o->bytes[149] = 3;
	assert_int_equal(perseas_rollback_to(tx, first), PERSEAS_EUNDECLARED);
	put(o, tx, 149, 1, 1);
	assert_int_equal(perseas_rollback_to(tx, first), 0);
	assert_int_equal(o->bytes[149], 3);
	assert_int_equal(perseas_abort(tx), 0);
}

/* A range that is too large is refused behind a savepoint, too, and leaves the transaction as it
 * was. */
TEST(test_too_big_behind_a_savepoint, struct owner *o)
{
	uint64_t savepoint, length;
	uint8_t *large;
	perseas_tx_t *tx;
	void *addr;

	assert_int_equal(perseas_map(o->p, "large", 100000, &addr), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	large = addr;
	tx = owner_tx(o);
	assert_int_equal(perseas_set_range(tx, large, 100), 0);
	memset(large, 1, 100);
	savepoint = mark(tx);
	length = tx->record_length;
	assert_int_equal(perseas_set_range(tx, large + 50, 10), 0);
	memset(large + 50, 2, 10);
	assert_int_equal(perseas_set_range(tx, large, 100000), PERSEAS_ETOOBIG);
	assert_int_equal(tx->record_length, length);
	/* The refused range was not kept. */
	assert_int_equal(perseas_set_range(tx, large + 40, 30), 0);
	memset(large + 40, 3, 30);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(large[i], 1);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(large[0] | large[99], 0);
}

enum { APART = 2, FAR_RANGES = SIZE / APART };

/* Declares every second byte, those behind before those in front, and stores. */
static void put_downwards(struct owner *o, perseas_tx_t *tx, uint8_t value)
{
	for (unsigned i = FAR_RANGES; i-- > 0;)
		put(o, tx, i * APART, 1, value);
	assert_int_equal(tx->cover.span_count, FAR_RANGES);
	assert_true(tx->cover.block_count > 0);
}

/* So many ranges are kept in blocks: an abort and a roll-back restore them, a savepoint between
 * them works, and a commit sends each. */
static void many_ranges(struct owner *o)
{
	static uint8_t before[SIZE];
	uint64_t savepoint;
	perseas_tx_t *tx;

	memcpy(before, o->bytes, SIZE);
	tx = owner_tx(o);
	put_downwards(o, tx, 1);
	assert_int_equal(perseas_abort(tx), 0);
	assert_memory_equal(o->bytes, before, SIZE);
	tx = owner_tx(o);
	put_downwards(o, tx, 2);
	memcpy(before, o->bytes, SIZE);
	savepoint = mark(tx);
	put_downwards(o, tx, 3);
	put(o, tx, 1, SIZE - 2, 4);
	assert_int_equal(tx->cover.span_count, 1);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	assert_memory_equal(o->bytes, before, SIZE);
	assert_int_equal(tx->cover.span_count, FAR_RANGES);
	put(o, tx, 5, 1, 6);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_memory_equal(mirrored(o), o->bytes, SIZE);
	assert_int_equal(o->bytes[4], 2);
	assert_int_equal(o->bytes[5], 6);
}

static void run_many_ranges(uint32_t flags)
{
	struct owner *o = owner_new(1);

	o->options.flags = flags;
	o->options.log_size = 1 << 20;
	o->options.ring_size = 2 << 20;
	owner_begin(o);
	many_ranges(o);
	owner_free(o);
}

TEST_WITH(test_ranges_in_blocks, NULL, NULL)
{
	run_many_ranges(0);
}

/* The same with checks of each set_range and each store. */
TEST_WITH(test_ranges_in_blocks_in_the_checked_modes, NULL, NULL)
{
	run_many_ranges(PERSEAS_CHECK_OVERLAP | PERSEAS_CHECK_WRITES);
}
