/*
 * test_heap_long.c - what a heap does in steps that others do not wait for: objects of many chunks
 * are checked by pieces, and transactions that allocate in turn have few edits.
 */
#include "heap_rig.h"

#include "../../client/heap/heap.h"

enum { SPAN = 150 }; /* chunks of a large object: more than are looked at in one go */

static int setup(void **state)
{
	return setup_heap(state, 1, 0, false);
}

struct unit_fixture unit_fixture = { setup, owner_teardown };

TEST(test_a_bit_in_any_chunk_of_a_large_object_is_found, struct owner *o)
{
	struct perseas_heap *heap = heap_of(o);
	void *object = reserved(o, SPAN, POINT);
	struct ps_found_object found;
	struct ps_heap_need need;
	char words[40];

	checked(o);
	assert_int_equal(ps_object_find(heap, object, &found, &need), 0);
	for (unsigned i = 0; i < SPAN; i++) {
		uint64_t *bits = found.extent->bitmaps + (found.chunk + i) * PS_CHUNK_WORDS;

		bits[i % PS_CHUNK_WORDS] = 1;
		assert_int_equal(perseas_heap_check(heap), PERSEAS_EHEAP);
		snprintf(words, sizeof(words), "chunk %llu ", (unsigned long long)found.chunk + i);
		assert_says(o, words);
		bits[i % PS_CHUNK_WORDS] = 0;
	}
	next_finds(o, 1);
}

/* Objects of several sizes and types in turn have one edit a word, also after a roll-back. */
TEST(test_who_allocates_in_turn_has_few_edits, struct owner *o)
{
	enum { KINDS = 4, ROUNDS = 60 };
	perseas_tx_t *tx = begin(o);
	uint8_t *objects[ROUNDS][KINDS];
	uint64_t savepoint;

	for (unsigned i = 0; i < ROUNDS; i++)
		for (unsigned kind = 0; kind < KINDS; kind++)
			objects[i][kind] = take(o, tx, 16 + 16 * kind, kind % 2);
	assert_int_equal(ps_edits_find(tx, heap_of(o))->count, KINDS);
	assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
	for (unsigned i = 0; i < ROUNDS; i++)
		for (unsigned kind = 0; kind < KINDS; kind++)
			assert_int_equal(perseas_free(tx, heap_of(o), objects[i][kind]), 0);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	for (unsigned kind = 0; kind < KINDS; kind++)
		take(o, tx, 16 + 16 * kind, kind % 2);
	assert_int_equal(ps_edits_find(tx, heap_of(o))->count, KINDS);
	commit_finds(o, tx, (uint64_t)KINDS * (ROUNDS + 1));
}
