/*
 * test_gather_apart.c - what is held back beside everything else that transactions can do: copies
 * of mirrors, shadows, savepoints, turns and the heap.
 */
#include "gather_rig.h"

struct unit_fixture unit_fixture = { setup_gathering, owner_teardown };

/* --- a mirror is copied meanwhile --- */

static int setup_copied(void **state, bool staged, uint32_t flags)
{
	struct owner *o = gathering_owner(3);

	o->options.flags = flags;
	o->options.resync_rate = 0;
	o->d->staged = staged;
	return setup_owner(state, o);
}

static int setup_staged(void **state)
{
	return setup_copied(state, true, 0);
}

static int setup_straight(void **state)
{
	return setup_copied(state, false, 0);
}

static int setup_checked(void **state)
{
	return setup_copied(state, true, PERSEAS_CHECK_WRITES);
}

static int setup_small(void **state)
{
	struct owner *o = gathering_owner(3);

	o->options.ring_size = 65536;
	return setup_owner(state, o);
}

/* Bytes do not bound a group here. */
static int setup_large(void **state)
{
	struct owner *o = gathering_owner(3);

	o->options.gather_bytes = 1 << 20;
	o->options.ring_size = 1 << 20;
	o->options.log_size = 1 << 20;
	return setup_owner(state, o);
}

static perseas_tx_t *open_on(struct fixture *f, unsigned at, unsigned length)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(f->o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, f->big + at, length), 0);
	memset(f->big + at, 0xee, length);
	return tx;
}

/* Held, here and there, and over the edge of two chunks. */
static void hold_all_over(struct fixture *f, uint8_t value)
{
	for (unsigned at = 1000; at < BIG - 2000; at += BIG / 9) {
		perseas_tx_t *tx = open_on(f, at, 300);

		memset(f->big + at, value, 300);
		assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		perseas_tx_t *tx = open_on(f, (128 << 10) - 100 + 50 * i, 200);

		memset(f->big + (128 << 10) - 100 + 50 * i, value + i, 200);
		assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	}
	assert_true(f->o->p->commit.has_gathered);
}

/* The image of the mirror that is copied is whole at its slot, behind which all of that comes. */
TEST_WITH(test_a_copy_has_nothing_of_it, setup_staged, teardown, struct fixture *f)
{
	struct owner *o = f->o;
	perseas_tx_t *tx;

	owner_lose(o, 1);
	hold_all_over(f, 5);
	tx = open_on(f, (128 << 10) - 10, 20);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_true(o->p->commit.has_gathered);
	assert_image(f, 1);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(perseas_flush(o->p), 0);
	memcpy(f->ledger->big, f->big, BIG);
	assert_image(f, 1);
	assert_image(f, 0);
}
TEST_ALSO(test_a_copy_has_nothing_of_it, setup_straight, teardown);
TEST_ALSO(test_a_copy_has_nothing_of_it, setup_checked, teardown);

/* The next owner finds the same on the mirror that was copied, alone. */
TEST_WITH(test_a_copy_carries, setup_staged, teardown, struct fixture *f)
{
	owner_lose(f->o, 1);
	hold_all_over(f, 5);
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_flush(f->o->p), 0);
	memcpy(f->ledger->big, f->big, BIG);
	assert_carries(f, 1);
}

/* A mirror comes back while a group is held: it is not sent what the group will overwrite. */
TEST_WITH(test_its_room_in_the_ring_is_kept, setup_small, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	for (unsigned missed = 40; missed < 64; missed++) {
		direct_crash(o->d, 1);
		for (unsigned i = 0; i < missed; i++)
			assert_int_equal(put_big(f, 1000 + 500 * i, 440, (uint8_t)(missed + i)), 0);
		for (unsigned i = 0; i < 6; i++) {
			perseas_tx_t *tx = open_on(f, 60000 + 500 * i, 440);

			assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
		}
		assert_true(o->p->commit.has_gathered);
		o->d->mirrors[1].hold = DIRECT_HOLD_WRITES;
		direct_start(o->d, 1);
		for (unsigned i = 0; i < 3; i++)
			direct_keep(o->d, o->p);
		assert_int_equal(perseas_flush(o->p), 0);
		let_go(o, 1);
		owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
		memcpy(f->ledger->big, f->big, BIG);
		assert_image(f, 1);
	}
}

/* --- what else transactions do --- */

/* A record has no more entries than a mirror that is brought up to date with it can take. */
TEST_WITH(test_entries_are_bounded, setup_large, teardown, struct fixture *f)
{
	const struct perseas_stat before = owner_stat(f->o);

	for (unsigned i = 0; i < 1200; i++) {
		perseas_tx_t *tx = open_on(f, 128 * i, 1);

		assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
		assert_true(f->o->p->commit.gather->entry_count_limit <= 1024);
	}
	assert_int_equal(owner_stat(f->o).groups - before.groups, 1);
	assert_int_equal(perseas_flush(f->o->p), 0);
	memcpy(f->ledger->big, f->big, BIG);
	assert_image(f, 0);
}

/* PERSEAS_CHECK_WRITES finds undeclared writes next to a group, which counts as committed. */
TEST_WITH(test_writes_are_checked, setup_checked, teardown, struct fixture *f)
{
	struct owner *o = f->o;
	perseas_tx_t *tx;

	put_held(o, 0, 10, 1);
	put_held(o, 5, 10, 2);
	tx = open_on(f, 100, 10);
	o->bytes[50]++;
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), PERSEAS_EUNDECLARED);
	o->bytes[50]--;
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	assert_int_equal(owner_stat(o).gathered, 3);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_sent(o, 5, 2);
	memcpy(f->ledger->accounts, o->bytes, SIZE);
	memcpy(f->ledger->big, f->big, BIG);
	assert_image(f, 0);
}

static int setup_tracked(void **state)
{
	struct owner *o = gathering_owner(3);

	o->options.flags = PERSEAS_TRACKED;
	return owner_setup_of(state, o);
}

/* Tracked ones are held, too; an abort puts back what those before left. */
TEST_WITH(test_tracked_ones_are_held, setup_tracked, owner_teardown, struct owner *o)
{
	perseas_tx_t *tx;

	for (uint8_t value = 1; value < 4; value++) {
		assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), 0);
		memset(o->bytes + 8, value, 8);
		o->bytes[100 * value] = value;
		assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
		assert_held(o, 8, value);
		assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), 0);
		memset(o->bytes + 8, 99, 8);
		assert_int_equal(perseas_abort(tx), 0);
		assert_int_equal(o->bytes[8], value);
	}
	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), 0);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	assert_true(owner_stat(o).gathered == 3);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_sent(o, 8, 3);
	assert_sent(o, 100, 1);
	assert_sent(o, 300, 3);
}

/* Changes that were rolled back to a savepoint are not in the group. */
TEST(test_savepoints, struct owner *o)
{
	uint64_t savepoint;
	perseas_tx_t *tx;

	put_held(o, 0, 4, 1);
	tx = owner_begin_put(o, 0, 8, 2);
	assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
	assert_int_equal(perseas_set_range(tx, o->bytes, 12), 0);
	memset(o->bytes, 3, 12);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_sent(o, 0, 2);
	assert_sent(o, 7, 2);
	assert_sent(o, 8, 56);
}

/* Another one gets the turn, and the lock, while the one before is held; it joins it. */
TEST(test_turns_and_locks_pass_on, struct owner *o)
{
	for (uint8_t i = 1; i < 5; i++) {
		perseas_tx_t *tx;

		assert_int_equal(perseas_begin(o->p, i % 2 ? PERSEAS_SERIAL : 0, &tx), 0);
		assert_int_equal(perseas_lock(tx, 7, PERSEAS_LOCK_EXCLUSIVE), 0);
		assert_int_equal(perseas_set_range(tx, o->bytes, 8), 0);
		memset(o->bytes, i, 8);
		assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
		assert_held(o, 0, i);
	}
	assert_int_equal(perseas_flush(o->p), 0);
	assert_sent(o, 0, 4);
	assert_true(owner_stat(o).gathered == 4 && owner_stat(o).groups == 1);
}

static perseas_heap_t *heap_of(struct owner *o)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_heap_t *heap;

	options.flags = PERSEAS_HEAP_CREATE;
	assert_int_equal(perseas_heap_open(o->p, "h", &options, &heap), 0);
	return heap;
}

static void *allocate(struct owner *o, perseas_tx_t *tx, uint8_t value)
{
	void *object;

	assert_int_equal(perseas_alloc(tx, heap_of(o), 100, 1, &object), 0);
	memset(object, value, 100);
	return object;
}

/* A block that a held transaction freed serves the next one; recovery finds the heap after all. */
TEST(test_blocks_pass_on, struct owner *o)
{
	perseas_heap_t *heap = heap_of(o);
	perseas_tx_t *tx;
	uint8_t *old, *new;
	void *root;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	old = allocate(o, tx, 1);
	assert_int_equal(perseas_root_set(tx, heap, "root", 1, old), 0);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
		assert_int_equal(perseas_free(tx, heap, old), 0);
		old = allocate(o, tx, 2);
		assert_int_equal(perseas_root_set(tx, heap, "root", 1, old), 0);
		assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
		assert_true(o->p->commit.has_gathered);
		assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
		new = allocate(o, tx, 9);
		assert_true(new != old);
		assert_int_equal(perseas_abort(tx), 0);
	}
	assert_int_equal(owner_stat(o).groups, 0);
	assert_int_equal(perseas_flush(o->p), 0);
	owner_next(o);
	heap = heap_of(o);
	assert_int_equal(perseas_heap_check(heap), 0);
	assert_int_equal(perseas_root(heap, "root", 1, &root), 0);
	new = root;
	assert_true(new &&new[0] == 2 && new[99] == 2);
}

/* Changes that a commit will make in a heap are counted beforehand, so that a group never exceeds
 * its limit. */
TEST(test_late_changes_count, struct owner *o)
{
	perseas_heap_t *heap;
	perseas_tx_t *tx;
	void *object;

	o->options.gather_bytes = 2048;
	owner_reopen(o);
	heap = heap_of(o);
	for (unsigned fill = 4; fill < 1000; fill += 4) {
		assert_int_equal(perseas_flush(o->p), 0);
		put_held(o, 0, fill, (uint8_t)fill);
		assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
		assert_int_equal(perseas_alloc(tx, heap, 16, 1, &object), 0);
		assert_true(tx->deferred_store_count > 0);
		assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	}
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(perseas_heap_check(heap), 0);
}
