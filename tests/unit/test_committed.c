/*
 * test_committed.c - perseas_copy_committed: memory without what open transactions changed and
 * without what is held back, all pieces as of one moment.
 */
#include "tellers.h"

#include "owner.h"

struct unit_fixture unit_fixture = { owner_setup_one, owner_teardown };

enum { COPIES = 2000, THREADS = 3, CELL = 4096 };

static int copy(struct owner *o, size_t offset, size_t length, uint8_t *to)
{
	struct perseas_piece piece = { o->bytes + offset, length, to };

	return perseas_copy_committed(o->p, &piece, 1, NULL);
}

static perseas_tx_t *begin_change(struct owner *o, size_t offset, size_t length, int value)
{
	perseas_tx_t *tx = owner_tx(o);

	assert_int_equal(perseas_set_range(tx, o->bytes + offset, length), 0);
	memset(o->bytes + offset, value, length);
	return tx;
}

TEST(what_is_open_is_as_it_was, struct owner *o)
{
	uint8_t before[SIZE], got[SIZE];
	struct perseas_token token = { 0 };
	struct perseas_piece pieces[] = { { o->bytes, 100, got },
		                          { NULL, 0, NULL },
		                          { o->bytes + 100, SIZE - 100, got + 100 } };
	perseas_tx_t *one, *two;

	assert_int_equal(owner_put(o, 10, 20, 0xaa), 0);
	memcpy(before, o->bytes, SIZE);
	one = begin_change(o, 15, 10, 1);
	two = begin_change(o, 90, 30, 2);
	assert_int_equal(perseas_copy_committed(o->p, pieces, 3, &token), 0);
	assert_memory_equal(got, before, SIZE);
	assert_int_equal(token.epoch, owner_stat(o).epoch);
	assert_int_equal(token.seq, owner_stat(o).seq);
	assert_int_equal(o->bytes[15], 1);
	assert_int_equal(perseas_commit(one, 0), 0);
	memset(before + 15, 1, 10);
	assert_int_equal(copy(o, 0, SIZE, got), 0);
	assert_memory_equal(got, before, SIZE);
	assert_int_equal(perseas_abort(two), 0);
	assert_int_equal(copy(o, 0, SIZE, got), 0);
	assert_memory_equal(got, before, SIZE);
}

/* A crash would lose what is held back: so it is not there. */
TEST(what_is_held_back_is_as_it_was, struct owner *o)
{
	uint8_t got[SIZE];
	perseas_tx_t *tx;

	o->options.gather_us = 1000000;
	owner_reopen(o);
	assert_int_equal(owner_put(o, 0, 8, 1), 0);
	tx = begin_change(o, 4, 8, 2);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	assert_int_equal(copy(o, 0, SIZE, got), 0);
	assert_int_equal(got[4], 1);
	assert_int_equal(o->bytes[4], 2);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(copy(o, 0, SIZE, got), 0);
	assert_int_equal(got[4], 2);
}

TEST(bad_pieces_copy_nothing, struct owner *o)
{
	uint8_t got[2 * SIZE];
	struct perseas_piece pieces[] = { { o->bytes, 10, got }, { o->bytes + SIZE - 5, 6, got } };
	void *raw;

	memset(got, 0x5a, sizeof(got));
	assert_int_equal(perseas_copy_committed(NULL, pieces, 1, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_copy_committed(o->p, NULL, 1, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_copy_committed(o->p, NULL, 0, NULL), 0);
	assert_int_equal(perseas_copy_committed(o->p, pieces, 2, NULL), PERSEAS_ERANGE);
	pieces[1] = (struct perseas_piece){ o->bytes, SIZE_MAX, got };
	assert_int_equal(perseas_copy_committed(o->p, pieces, 2, NULL), PERSEAS_ERANGE);
	pieces[1] = (struct perseas_piece){ o->bytes, 1, NULL };
	assert_int_equal(perseas_copy_committed(o->p, pieces, 2, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_map(o->p, "raw", 100, &raw), 0);
	pieces[1] = (struct perseas_piece){ raw, 1, got };
	assert_int_equal(perseas_copy_committed(o->p, pieces, 2, NULL), PERSEAS_EUNPUBLISHED);
	for (size_t i = 0; i < sizeof(got); i++)
		assert_int_equal(got[i], 0x5a);
}

/* A program that writes the copy to a file has no use for memory of a fenced owner. */
TEST(a_fenced_owner_gets_nothing, struct owner *o)
{
	uint8_t got[SIZE];
	perseas_t *other = owner_rival(o);

	for (unsigned i = 0; i < 10; i++)
		direct_keep(o->d, o->p);
	assert_int_equal(owner_put(o, 0, 1, 1), PERSEAS_EFENCED);
	assert_int_equal(copy(o, 0, SIZE, got), PERSEAS_EFENCED);
	perseas_close(other);
}

/* --- threads --- */

static atomic_bool over;

struct mover {
	pthread_t thread;
	perseas_t *p;
	uint64_t *cells[2]; /* far from each other, and of this thread alone */
};

/* Money goes from one cell to the other, and now and then does not go after all. */
static void *move_money(void *arg)
{
	struct mover *m = arg;
	perseas_tx_t *tx;

	for (unsigned i = 0; !atomic_load(&over); i++) {
		const uint64_t sum = i % 7;

		assert_int_equal(perseas_begin(m->p, 0, &tx), 0);
		for (unsigned c = 0; c < 2; c++)
			assert_int_equal(perseas_set_range(tx, m->cells[c], sizeof(uint64_t)), 0);
		*m->cells[i % 2] -= sum;
		*m->cells[!(i % 2)] += sum;
		assert_int_equal(i % 5 ? perseas_commit(tx, i % 3 ? PERSEAS_NOWAIT : 0)
		                       : perseas_abort(tx),
		                 0);
	}
	return NULL;
}

TEST_WITH(all_pieces_are_of_one_moment, place_setup, place_teardown, struct place *place)
{
	static uint64_t got[THREADS][2];
	struct perseas_piece pieces[THREADS * 2];
	struct mover movers[THREADS];
	uint64_t differ = 0;
	uint8_t *base;
	perseas_t *p = open_store(place->local, 1 << 20, 1 << 20, NULL);

	assert_int_equal(perseas_map(p, "cells", (size_t)THREADS * 2 * CELL, (void **)&base), 0);
	assert_int_equal(perseas_publish(p), 0);
	atomic_store(&over, false);
	for (unsigned i = 0; i < THREADS; i++) {
		for (unsigned c = 0; c < 2; c++) {
			movers[i].cells[c] = (uint64_t *)(base + (c * THREADS + i) * CELL);
			pieces[c * THREADS + i] = (struct perseas_piece){ movers[i].cells[c],
				                                          sizeof(uint64_t),
				                                          &got[i][c] };
		}
		movers[i].p = p;
		pthread_create(&movers[i].thread, NULL, move_money, &movers[i]);
	}
	for (unsigned copies = 0; copies < COPIES || !differ; copies++) {
		assert_int_equal(perseas_copy_committed(p, pieces, (size_t)THREADS * 2, NULL), 0);
		for (unsigned i = 0; i < THREADS; i++) {
			assert_int_equal(got[i][0] + got[i][1], 0);
			differ += got[i][0] != 0;
		}
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(movers[i].thread, NULL);
	perseas_close(p);
}
