/*
 * test_track.c - transactions without set_range: what they changed is found, sent, put back by
 * abort, and not lost by commits that are refused; by the pages that were written and by all
 * memory, over fabrics that copy at once and over the ring.
 */
#include "track_rig.h"

/* --- what is found --- */

static void put_all_over(void)
{
	put(0, 1);
	put(9, 1);
	put(60, 3);
	put(500, 700);
	put(PAGE - 3, 9);
	put(3 * PAGE, 5 * PAGE);
	put(LARGE - 1, 1);
}

EACH_WAY(what_was_changed_is_sent)
{
	uint64_t before;
	perseas_tx_t *tx = track();

	put_all_over();
	assert_int_equal(perseas_commit(tx, 0), 0);
	/* Nothing is found twice, and what nobody changed is not sent. */
	before = owner_stat(o).range_bytes;
	assert_int_equal(perseas_commit(track(), 0), 0);
	assert_int_equal(owner_stat(o).range_bytes, before);
	tx = track();
	put(FAR + 16, 8);
	put(FAR + 400, 8);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(owner_stat(o).range_bytes, before + 16);
	assert_stored();
}

EACH_WAY(abort_puts_back_what_was_changed)
{
	uint8_t other = o->bytes[5];
	perseas_tx_t *tx = track();
	uint64_t seq;

	seq = owner_stat(o).seq;
	memset(large + 10, 0, 3 * PAGE);
	large[LARGE - 1] ^= 1;
	o->bytes[5] ^= 1;
	assert_int_equal(perseas_abort(tx), 0);
	assert_memory_equal(large, expected, LARGE);
	assert_int_equal(o->bytes[5], other);
	assert_int_equal(perseas_commit(track(), 0), 0);
	assert_int_equal(owner_stat(o).seq, seq);
}

/* With set_range, before and after the store, and then another one, of another kind. */
EACH_WAY(both_kinds_get_along)
{
	perseas_tx_t *tx = track();

	put(FAR, 1);
	assert_int_equal(perseas_set_range(tx, large + FAR, 50), 0);
	/* A short range in the segment of the last one is logged no more than others. */
	assert_int_equal(perseas_set_range(tx, large + FAR + 64, 8), 0);
	put(FAR + 1, 1);
	assert_int_equal(perseas_set_range(tx, large + LARGE, 1), PERSEAS_ERANGE);
	assert_int_equal(perseas_commit(tx, 0), 0);
	tx = owner_tx(o);
	assert_int_equal(perseas_set_range(tx, large + 100, 3000), 0);
	put(100, 3000);
	assert_int_equal(perseas_commit(tx, 0), 0);
	tx = owner_tx(o);
	assert_int_equal(perseas_set_range(tx, large + 200, 300), 0);
	memset(large + 200, 0, 300);
	assert_int_equal(perseas_abort(tx), 0);
	/* Bytes that were declared and committed are not found again. */
	tx = track();
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(owner_stat(o).range_bytes, 3008);
	/* Declared ones are as fast as ever afterwards: they have their room again. */
	assert_int_equal(owner_put(o, 3, 8, 1), 0);
	assert_stored();
}

/* --- alone --- */

EACH_WAY(a_tracked_transaction_is_alone)
{
	perseas_tx_t *tx, *other;

	other = owner_tx(o);
	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), PERSEAS_ECONFLICT);
	assert_null(tx);
	assert_says(o, "must be alone");
	assert_int_equal(perseas_set_range(other, large, 8), 0);
	put(0, 8);
	assert_int_equal(perseas_commit(other, 0), 0);
	tx = track();
	assert_int_equal(perseas_begin(o->p, 0, &other), PERSEAS_ECONFLICT);
	assert_null(other);
	assert_says(o, "begin when it has ended");
	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &other), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_unmap(o->p, o->bytes), PERSEAS_ECONFLICT);
	put(20, 8);
	assert_int_equal(perseas_commit(tx, 0), 0);
	other = owner_tx(o);
	tx = owner_tx(o);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(perseas_abort(other), 0);
	tx = track();
	assert_int_equal(perseas_abort(tx), 0);
	/* The next user of the handle need not ask for room at each range. */
	other = owner_tx(o);
	assert_ptr_equal(other, tx);
	assert_true(other->record_room > 0);
	assert_int_equal(perseas_abort(other), 0);
	assert_int_equal(perseas_unmap(o->p, o->bytes), 0);
	assert_stored();
}

/* With a turn: it waits for others that take turns, and not for those that do not. */
EACH_WAY(it_may_take_a_turn)
{
	perseas_tx_t *tx, *other;
	uint64_t savepoint;

	assert_int_equal(perseas_begin(o->p, PERSEAS_SERIAL | PERSEAS_TRACK, &tx), 0);
	assert_int_equal(perseas_begin(o->p, 0, &other), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_savepoint(tx, &savepoint), PERSEAS_EINVAL);
	assert_says(o, "no savepoints");
	assert_int_equal(perseas_lock(tx, 7, PERSEAS_LOCK_EXCLUSIVE), 0);
	large[FAR] ^= 1;
	assert_int_equal(perseas_retry(tx), 0);
	assert_int_equal(large[FAR], expected[FAR]);
	assert_int_equal(perseas_unmap(o->p, o->bytes), PERSEAS_ECONFLICT);
	put(FAR, 100);
	assert_int_equal(perseas_commit(tx, 0), 0);
	/* The turn has passed on: refused, it passes on, too. */
	other = owner_tx(o);
	assert_int_equal(perseas_begin(o->p, PERSEAS_SERIAL | PERSEAS_TRACK, &tx),
	                 PERSEAS_ECONFLICT);
	assert_null(tx);
	assert_int_equal(perseas_abort(other), 0);
	tx = track();
	assert_int_equal(perseas_begin(o->p, PERSEAS_SERIAL, &other), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(perseas_begin(o->p, PERSEAS_SERIAL, &other), 0);
	assert_int_equal(perseas_commit(other, 0), 0);
	assert_int_equal(perseas_begin(o->p, PERSEAS_SERIAL | PERSEAS_TRACK, &tx), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_stored();
}

TEST(it_must_be_asked_for)
{
	perseas_tx_t *tx;

	begin_store(&ways[0], 1, PERSEAS_TRACKED);
	assert_non_null(strstr(perseas_report(o->p), "PERSEAS_TRACKED: commits compare"));
	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK | 8, &tx), PERSEAS_EINVAL);
	assert_says(o, "unknown bits");
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), PERSEAS_EINVAL);
	assert_says(o, "PERSEAS_TRACKED");
	owner_free(o);
}

/* A heap is in use as well: changes that declared transactions made there are not found, and its
 * objects can be changed. */
EACH_WAY(a_heap_may_be_beside_it)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_heap_t *heap;
	perseas_tx_t *tx;
	uint64_t before;
	void *object, *other;

	options.flags = PERSEAS_HEAP_CREATE;
	assert_int_equal(perseas_heap_open(o->p, "heap", &options, &heap), 0);
	tx = owner_tx(o);
	assert_int_equal(perseas_zalloc(tx, heap, 500, 1, &object), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	before = owner_stat(o).range_bytes;
	assert_int_equal(perseas_commit(track(), 0), 0);
	assert_int_equal(owner_stat(o).range_bytes, before);
	tx = track();
	assert_int_equal(perseas_alloc(tx, heap, 100, 1, &other), PERSEAS_EINVAL);
	assert_says(o, "cannot allocate");
	memset(object, 1, 8);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(owner_stat(o).range_bytes, before + 8);
}

/* --- refused, and tried again --- */

/* A commit is refused while another one is in doubt: none of its changes is forgotten. */
EACH_WAY(what_was_refused_is_found_again)
{
	perseas_tx_t *tx;

	if (!o->d->staged)
		return;
	o->d->mirrors[0].hold = DIRECT_HOLD_WRITES;
	tx = track();
	put(7, 1);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EINDOUBT);
	direct_release(o->d, 0, 100);
	assert_int_equal(perseas_flush(o->p), 0);
	tx = track();
	put(FAR, 3000);
	o->p->commit.in_doubt_seq = o->p->commit.seq;
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EBLOCKED);
	o->p->commit.in_doubt_seq = 0;
	put(99, 1);
	o->d->mirrors[0].hold = DIRECT_HOLD_NOTHING;
	assert_int_equal(perseas_commit(tx, 0), 0);
	tx = track();
	large[FAR + 5] ^= 1;
	o->p->commit.in_doubt_seq = o->p->commit.seq;
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EBLOCKED);
	o->p->commit.in_doubt_seq = 0;
	assert_int_equal(perseas_abort(tx), 0);
	assert_stored();
}

/* There is no room for what it changed, which shows only when that was found. */
EACH_WAY(without_room_it_is_found_anew)
{
	perseas_tx_t *tx;

	if (!o->d->staged)
		return;
	o->d->mirrors[0].hold = DIRECT_HOLD_WRITES;
	for (unsigned i = 0; i < 6; i++) {
		tx = track();
		put(0, 30000);
		assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	}
	tx = track();
	put(FAR, 10);
	put(0, 100000);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT | PERSEAS_NOBLOCK), PERSEAS_EAGAIN);
	put(FAR + 500, 10);
	o->d->mirrors[0].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 0, 1000);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_stored();
}

/* Too many bytes for the log are found again, unless they are put back. */
EACH_WAY(too_much_can_be_made_less)
{
	perseas_tx_t *tx;
	void *addr;

	assert_int_equal(perseas_map(o->p, "huge", 2 << 20, &addr), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	tx = track();
	put(FAR, 10);
	memset(addr, 1, 2 << 20);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_ETOOBIG);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_ETOOBIG);
	memset((uint8_t *)addr + PAGE, 0, (2 << 20) - PAGE);
	assert_int_equal(perseas_commit(tx, 0), 0);
	tx = track();
	memset(addr, 2, 2 << 20);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_ETOOBIG);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(((uint8_t *)addr)[PAGE - 1], 1);
	assert_int_equal(((uint8_t *)addr)[PAGE], 0);
	assert_stored();
}

/* Another owner took over: what it never had is not shown here any more. */
EACH_WAY(who_is_fenced_puts_it_back)
{
	perseas_tx_t *tx = track();

	memset(large + FAR, 0, 2 * PAGE);
	o->p->is_superseded = true;
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EFENCED);
	assert_memory_equal(large, expected, LARGE);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EENDED);
	o->p->is_superseded = false;
	tx = track();
	assert_int_equal(perseas_abort(tx), 0);
}

/* --- other threads, and mirrors that are copied --- */

/* Another thread stores to what is being sent: what the mirrors got is what counts, and what they
 * did not get is found by the next. */
static void scribble(void *arg, const struct direct_write *write)
{
	(void)arg;
	if (write->part == DIRECT_UNDO)
		large[FAR]++;
}

EACH_WAY(what_is_stored_beside_is_found_next)
{
	const struct direct_tap tap = { .write = scribble };
	perseas_tx_t *tx = track();

	put(FAR, 1);
	o->d->tap = &tap;
	assert_int_equal(perseas_commit(tx, 0), 0);
	o->d->tap = NULL;
	expected[FAR]++;
	assert_int_equal(perseas_commit(track(), 0), 0);
	assert_stored();
}

/* A mirror is copied whole while a tracked transaction is open: it gets none of its bytes. */
EACH_WAY_OF(3, PERSEAS_TRACKED, a_copy_has_none_of_its_bytes)
{
	perseas_tx_t *tx;

	owner_lose(o, 0);
	tx = track();
	memset(large, 0xee, LARGE);
	owner_keep(o, 0, PERSEAS_MIRROR_RESYNCING);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	assert_memory_equal(owner_piece(o, 0, "segment-1"), expected, LARGE);
	put(0, 9);
	put(20, 5 * PAGE);
	memcpy(large + 9, expected + 9, 11);
	memcpy(large + 20 + 5 * PAGE, expected + 20 + 5 * PAGE, LARGE - 20 - 5 * PAGE);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_memory_equal(owner_piece(o, 0, "segment-1"), expected, LARGE);
}

/* Killed when the data is there, and the slot is not: the next owner rolls it back. */
EACH_WAY(it_is_rolled_back_by_the_next_owner)
{
	perseas_tx_t *tx = track();

	memset(large + FAR, 0xee, 100);
	o->d->mirrors[0].writes_left = 2;
	perseas_commit(tx, 0);
	owner_die(o);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER | PERSEAS_TRACKED), 0);
	map_large();
	assert_memory_equal(large, expected, LARGE);
}

/* --- random ones --- */

EACH_WAY(random_changes_are_all_there)
{
	uint32_t n = 1;

	for (unsigned i = 0; i < 300; i++) {
		perseas_tx_t *tx = track();

		for (unsigned k = 0; k < 6; k++) {
			n = n * 1664525 + 1013904223;
			put((n >> 8) % (LARGE - 100), 1 + n % 90);
		}
		if (i % 3 == 0) {
			uint8_t was = large[i];

			large[i] ^= 0xff;
			expected[i] = (uint8_t)(was ^ 0xff);
		}
		assert_int_equal(perseas_commit(tx, 0), 0);
	}
	assert_stored();
}
