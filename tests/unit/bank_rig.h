/*
 * bank_rig.h - a mirror with the store "bank", for the tests of the store logic that begin with
 * one: who holds it, and who comes after.
 */
#ifndef PERSEAS_TESTS_BANK_RIG_H
#define PERSEAS_TESTS_BANK_RIG_H

#include "store_rig.h"

/* The owner's session, and that of another client of the mirror, which has claimed nothing. */
static struct peer holder, rival;

/* The last claim that was granted, for tests that look at it. */
static Perseas__ClaimReply granted;

/* How many pieces of memory the mirror has with the bank alone. */
static unsigned bank_pieces;

/* The promise page of the bank's first image, as it lies in memory. */
static inline struct ps_promise *promise_of_bank(struct mirror *mirror)
{
	return (void *)memory_heap_piece(mirror->memory, "bank", "promise.1", NULL);
}

static inline int bank_setup(void **state, bool shared)
{
	struct mirror *mirror;

	setup(state);
	mirror = *state;
	mirror_bank(mirror, &holder, shared);
	bank_pieces = memory_heap_pieces(mirror->memory);
	peer_init(&rival);
	perseas__claim_reply__init(&granted);
	return 0;
}

static inline int setup_bank(void **state)
{
	return bank_setup(state, false);
}

/* The owner has the memory itself. */
static inline int setup_shared_bank(void **state)
{
	return bank_setup(state, true);
}

#endif
