/*
 * gather_rig.h - an owner of three mirrors that holds commits back, for as long as it may.
 */
#ifndef PERSEAS_TESTS_GATHER_RIG_H
#define PERSEAS_TESTS_GATHER_RIG_H

#include "nowait_rig.h"

#include "../../client/core/gather.h"

#define HOLD ((uint64_t)1000000000) /* ns, of gather_us */

static inline struct owner *gathering_owner(unsigned mirrors)
{
	struct owner *o = owner_new(mirrors);

	o->options.on_event = note;
	o->options.gather_us = 1000000;
	doubts = settled = 0;
	doubtful = 0;
	return o;
}

static inline int setup_gathering(void **state)
{
	return owner_setup_of(state, gathering_owner(3));
}

/* Returns a byte of the accounts in the mirror's image. */
static inline uint8_t byte_of(struct owner *o, unsigned mirror, unsigned at)
{
	return memory_heap_piece(o->d->mirrors[mirror].memory, STORE, "segment-0.1", NULL)[at];
}

/* Check that no mirror has the commit yet, or that all have it. */
static inline void assert_held(struct owner *o, unsigned at, uint8_t value)
{
	assert_true(o->p->commit.has_gathered);
	for (unsigned i = 0; i < o->d->count; i++)
		assert_int_not_equal(byte_of(o, i, at), value);
}

static inline void assert_sent(struct owner *o, unsigned at, uint8_t value)
{
	assert_false(o->p->commit.has_gathered);
	for (unsigned i = 0; i < o->d->count; i++)
		assert_int_equal(byte_of(o, i, at), value);
}

/* Posts a commit that is held back in a group. */
static inline struct perseas_token put_held(struct owner *o, unsigned at, unsigned length,
                                            uint8_t value)
{
	struct perseas_token token = { 0, 0 };

	assert_int_equal(post_with(o, PERSEAS_NOWAIT, at, length, value, &token), 0);
	assert_true(token.seq == owner_stat(o).seq && token.epoch == owner_stat(o).epoch);
	return token;
}

#endif
