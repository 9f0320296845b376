/*
 * test_tx.c - transactions before they are sent: what the undo record holds, what abort puts
 * back, and what is too large.
 */
#include "../support/env_direct.h"
#include "../../client/core/handle.h"
#include "../../client/core/tx.h"
#include "../support/unit.h"

enum { SIZE = 20000 };

struct fixture {
	struct direct *d;
	perseas_t *p;
	uint8_t *bytes; /* the segment */
	uint8_t before[SIZE];
};

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	return unit_draw(&random_state) % below;
}

/* A store with one published segment, whose bytes are none of them alike. */
static int open_with(void **out, uint64_t log_size, uint64_t ring_size)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct ps_error error;
	void *addr;

	random_state = 0x1998;
	f->d = direct_new(1, 1);
	options.flags = PERSEAS_CREATE;
	options.log_size = log_size;
	options.ring_size = ring_size;
	options.spin_us = UINT32_MAX;
	if (direct_open(f->d, "bank", &options, &f->p, &error)) {
		print_error("%s\n", error.text);
		return -1;
	}
	if (perseas_map(f->p, "accounts", SIZE, &addr))
		return -1;
	f->bytes = addr;
	for (unsigned i = 0; i < SIZE; i++)
		f->bytes[i] = f->before[i] = (uint8_t)draw(256);
	*out = f;
	return perseas_publish(f->p);
}

static int setup(void **out)
{
	return open_with(out, 64 * 1024, 1024 * 1024);
}

static int setup_small_log(void **out)
{
	return open_with(out, 4096, 1024 * 1024);
}

static int setup_small_ring(void **out)
{
	return open_with(out, 1024 * 1024, 64 * 1024);
}

static int teardown(void **out)
{
	struct fixture *f = *out;

	perseas_close(f->p);
	direct_free(f->d);
	free(f);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static perseas_tx_t *begin(struct fixture *f)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(f->p, 0, &tx), 0);
	return tx;
}

static void set(struct fixture *f, perseas_tx_t *tx, unsigned offset, unsigned length)
{
	assert_int_equal(perseas_set_range(tx, f->bytes + offset, length), 0);
}

/* Counts how often each byte is in the record, and checks that its before-image is the byte at
 * begin. */
static void count_images(struct fixture *f, perseas_tx_t *tx, unsigned *times)
{
	struct ps_cursor cursor = { tx->record + sizeof(struct ps_record),
		                    tx->record + tx->record_length, tx->range_count, true };
	const struct ps_range *range;
	const void *image;
	unsigned ranges = 0;

	memset(times, 0, SIZE * sizeof(*times));
	while (ps_record_next(&cursor, &range, &image)) {
		ranges++;
		assert_true(range->offset + range->length <= SIZE);
		assert_memory_equal(image, f->before + range->offset, range->length);
		for (unsigned i = 0; i < range->length; i++)
			times[range->offset + i]++;
		for (unsigned i = range->length; i % 8; i++)
			assert_int_equal(((const uint8_t *)image)[i], 0);
	}
	assert_int_equal(ranges, tx->range_count);
	assert_ptr_equal(cursor.at, cursor.end);
}

/* Ranges that overlap in every way, with stores between them: each declared byte is in the
 * record once, as it was before the first store, and abort puts all of them back. */
TEST(test_each_byte_is_kept_once_and_put_back, struct fixture *f)
{
	static unsigned times[SIZE];
	static bool declared[SIZE];

	for (int round = 0; round < 200; round++) {
		perseas_tx_t *tx = begin(f);

		memset(declared, 0, sizeof(declared));
		for (int i = 0; i < 40; i++) {
			unsigned length = 1 + (unsigned)draw(round % 2 ? 8 : 300);
			unsigned offset = (unsigned)draw(round % 3 ? 600 : SIZE - length);

			set(f, tx, offset, length);
			memset(declared + offset, true, length);
			memset(f->bytes + offset, (int)draw(256), length);
		}
		count_images(f, tx, times);
		for (unsigned i = 0; i < SIZE; i++)
			assert_int_equal(times[i], declared[i]);
		assert_int_equal(perseas_abort(tx), 0);
		assert_memory_equal(f->bytes, f->before, SIZE);
	}
}

/* A record that grows forwards, field after field, is one entry and goes out as one write. */
TEST(test_adjacent_ranges_become_one_entry, struct fixture *f)
{
	perseas_tx_t *tx = begin(f);
	static unsigned times[SIZE];

	for (unsigned offset = 3; offset < 303; offset += 5)
		set(f, tx, offset, 5);
	assert_int_equal(tx->range_count, 1);
	assert_int_equal(tx->cover.span_count, 1);
	assert_int_equal(tx->record_length,
	                 sizeof(struct ps_record) + sizeof(struct ps_range) + 304);
	count_images(f, tx, times);
	/* A byte that is declared again adds nothing. */
	set(f, tx, 100, 1);
	assert_int_equal(tx->record_length,
	                 sizeof(struct ps_record) + sizeof(struct ps_range) + 304);
	perseas_abort(tx);
}

/* Many transactions are open at the same time, apart from each other, and end in any order:
 * those that abort take nothing from those that commit. */
TEST(test_open_transactions_do_not_disturb_each_other, struct fixture *f)
{
	perseas_tx_t *txs[16];

	for (int round = 0; round < 50; round++) {
		for (unsigned i = 0; i < 16; i++) {
			txs[i] = begin(f);
			set(f, txs[i], i * 1000, 1000);
			memset(f->bytes + i * 1000, (int)draw(256), 1000);
		}
		for (unsigned left = 16; left > 0; left--) {
			unsigned at = (unsigned)draw(left);
			uint64_t start = txs[at]->cover.spans[0].start;
			unsigned offset = (unsigned)(start - (uintptr_t)f->bytes);

			if (draw(2)) {
				memcpy(f->before + offset, f->bytes + offset, 1000);
				assert_int_equal(perseas_commit(txs[at], 0), 0);
			} else {
				assert_int_equal(perseas_abort(txs[at]), 0);
			}
			txs[at] = txs[left - 1];
		}
		assert_memory_equal(f->bytes, f->before, SIZE);
	}
}

/* Nothing was declared, or nothing but empty ranges: commit sends nothing and takes no seq. */
TEST(test_empty_transaction_sends_nothing, struct fixture *f)
{
	uint64_t chains = f->d->chain_count, seq = f->p->commit.seq;
	perseas_tx_t *tx = begin(f);

	set(f, tx, 5, 0);
	assert_int_equal(perseas_set_range(tx, NULL, 0), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_true(f->d->chain_count == chains && f->p->commit.seq == seq);
}

/* The largest record that a log of 4096 bytes takes has 2048; one byte more is refused, leaves
 * the transaction as it was, and what it has can still be committed or aborted. */
TEST_WITH(test_too_big_for_the_log, setup_small_log, teardown, struct fixture *f)
{
	const unsigned most = 2048 - sizeof(struct ps_record) - sizeof(struct ps_range);
	perseas_tx_t *tx = begin(f);
	static unsigned times[SIZE];

	assert_int_equal(perseas_set_range(tx, f->bytes, most + 1), PERSEAS_ETOOBIG);
	assert_non_null(strstr(perseas_message(f->p), "larger log"));
	assert_int_equal(tx->range_count, 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	tx = begin(f);
	set(f, tx, 100, most);
	memset(f->bytes + 100, 7, most);
	assert_int_equal(perseas_set_range(tx, f->bytes + SIZE - 1, 1), PERSEAS_ETOOBIG);
	count_images(f, tx, times);
	assert_int_equal(times[SIZE - 1], 0);
	/* Bytes that are declared already need no room. */
	set(f, tx, 100, most);
	assert_int_equal(perseas_commit(tx, 0), 0);
	memset(f->before + 100, 7, most);
	tx = begin(f);
	set(f, tx, 0, most);
	memset(f->bytes, 9, most);
	assert_int_equal(perseas_abort(tx), 0);
	assert_memory_equal(f->bytes, f->before, SIZE);
}

/* A quarter of the ring is 16 KiB, for record and after-images together. */
TEST_WITH(test_too_big_for_the_ring, setup_small_ring, teardown, struct fixture *f)
{
	perseas_tx_t *tx = begin(f);

	assert_int_equal(perseas_set_range(tx, f->bytes, 8200), PERSEAS_ETOOBIG);
	assert_non_null(strstr(perseas_message(f->p), "ring_size"));
	set(f, tx, 0, 7000);
	memset(f->bytes, 1, 7000);
	assert_int_equal(perseas_set_range(tx, f->bytes + 7000, 2000), PERSEAS_ETOOBIG);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* Returns how many ranges of `length` bytes, one every 2 * length, a transaction takes: upwards, as
 * most programs do, or downwards. */
static unsigned fill(struct fixture *f, unsigned length, bool upwards)
{
	const unsigned most = SIZE / (2 * length);
	perseas_tx_t *tx = begin(f);
	static unsigned times[SIZE];
	unsigned taken = 0;

	while (taken < most) {
		const unsigned at = upwards ? taken : most - 1 - taken;
		int rc = perseas_set_range(tx, f->bytes + 2 * length * at, length);

		if (rc)
			assert_int_equal(rc, PERSEAS_ETOOBIG);
		if (rc)
			break;
		memset(f->bytes + 2 * length * at, 0x55, length);
		taken++;
	}
	count_images(f, tx, times);
	for (unsigned i = 0; i < SIZE; i++) {
		const unsigned at = i / (2 * length);
		const bool in = upwards ? at < taken : at < most && at + taken >= most;

		assert_int_equal(times[i], in && i % (2 * length) < length);
	}
	assert_int_equal(perseas_abort(tx), 0);
	assert_memory_equal(f->bytes, f->before, SIZE);
	return taken;
}

/* Ranges declared inline and by a call meet the same limits, and log the same. */
TEST_WITH(test_both_ways_log_alike, setup_small_log, teardown, struct fixture *f)
{
	static const unsigned lengths[] = { 1, 3, 7, 8, 9, 15, 16, 31, 100, 255, 256, 257 };

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		assert_int_equal(fill(f, lengths[i], true), fill(f, lengths[i], false));
}
TEST_ALSO(test_both_ways_log_alike, setup_small_ring, teardown);

/* Very many small ranges: the chain is longer than a frame of the wire takes, and whole. */
TEST(test_thousands_of_ranges, struct fixture *f)
{
	perseas_tx_t *tx = begin(f);
	uint64_t size;
	uint8_t *mirror = memory_heap_piece(f->d->mirrors[0].memory, "bank", "segment-0.1", &size);

	for (unsigned i = 0; i < 1200; i++) {
		set(f, tx, i * 16, 1);
		f->bytes[i * 16] ^= 0xff;
	}
	assert_int_equal(tx->range_count, 1200);
	assert_memory_equal(mirror, f->before, SIZE);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_memory_equal(mirror, f->bytes, SIZE);
}

/* Repeats the same transactions: after the first round no memory is allocated. */
TEST(test_steady_state_allocates_nothing, struct fixture *f)
{
	struct perseas_stat first, last;

	for (int round = 0; round < 2000; round++) {
		perseas_tx_t *tx = begin(f);

		for (unsigned i = 0; i < 150; i++)
			set(f, tx, i * 100, 60);
		f->bytes[(unsigned)draw(150) * 100] ^= 1;
		assert_int_equal(draw(3) ? perseas_commit(tx, 0) : perseas_abort(tx), 0);
		perseas_stat(f->p, &last);
		if (round == 0)
			first = last;
	}
	assert_true(first.allocations > 0);
	assert_true(last.allocations == first.allocations);
	assert_true(last.commits + last.aborts == 2000);
	assert_true(last.log_laps > 100);
}

/* Counts the keeper's barriers, since set_range has no fence of its own. */
static unsigned barriers;
static bool was_observed;

static bool note_barrier(struct ps_env *env)
{
	const struct fixture *f = *(struct fixture **)(void *)(env + 1);

	barriers++;
	was_observed = atomic_load(&f->p->observing.has_observers);
	return true;
}

/* An observer closes the sections of set_range: all threads see that before the observer looks
 * whether one of them is inside. */
TEST(test_observing_begins_with_a_barrier, struct fixture *f)
{
	struct ps_env_ops ops = *f->p->env->ops;
	struct {
		struct ps_env env;
		struct fixture *f;
	} watched = { *f->p->env, f };
	struct ps_env *before = f->p->env;

	ops.barrier = note_barrier;
	watched.env.ops = &ops;
	f->p->env = &watched.env;
	barriers = 0;
	ps_tx_observe_begin(f->p);
	f->p->env = before;
	assert_int_equal(barriers, 1);
	assert_true(was_observed);
	ps_tx_observe_end(f->p);
	assert_false(atomic_load(&f->p->observing.has_observers));
}

/* The page that set_range is about to copy, which cannot be read before the handler has looked. */
static struct {
	uint8_t *page;
	size_t size;
	perseas_tx_t *tx;
	unsigned looks;
	bool declaring;
} hidden;

static void look_inside(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	hidden.looks++;
	hidden.declaring = ps_section_is_entered(&hidden.tx->set_range_section);
	if (mprotect(hidden.page, hidden.size, PROT_READ | PROT_WRITE))
		abort();
}

/* Without the lock, set_range says that it is at work: a resync waits for that to pass. */
TEST(test_set_range_is_seen_at_work, struct fixture *f)
{
	const struct sigaction look = { .sa_sigaction = look_inside, .sa_flags = SA_SIGINFO };
	struct sigaction before;

	assert_false(atomic_load(&f->p->observing.has_observers));
	hidden.page = f->bytes;
	hidden.size = (size_t)sysconf(_SC_PAGESIZE);
	hidden.tx = begin(f);
	hidden.looks = 0;
	assert_int_equal(sigaction(SIGSEGV, &look, &before), 0);
	assert_int_equal(mprotect(hidden.page, hidden.size, PROT_NONE), 0);
	set(f, hidden.tx, 100, 10);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_int_equal(hidden.looks, 1);
	assert_true(hidden.declaring);
	assert_false(ps_section_is_entered(&hidden.tx->set_range_section));
	perseas_abort(hidden.tx);
}
