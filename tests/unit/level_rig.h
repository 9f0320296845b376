/*
 * level_rig.h - owners of stores of either level, and what their mirrors' headers say, for the
 * tests of keys and of raising.
 */
#ifndef PERSEAS_TESTS_LEVEL_RIG_H
#define PERSEAS_TESTS_LEVEL_RIG_H

#include "roster_rig.h"

#include "../../proto/base/sha256_tls.h"
#include "../../proto/control/key.h"
#include "../../server/store/store_private.h"

enum { BEFORE = 8 }; /* the last version of the protocol that does not read level 1 */

static const struct perseas_roster_change raise_it = { .kind = PERSEAS_ROSTER_RAISE };

static inline const Perseas__Header *header_at(struct owner *o, unsigned mirror)
{
	const struct store *store = store_find(o->d->mirrors[mirror].stores, STORE);

	assert_non_null(store);
	return store->header;
}

/* Returns an owner of three mirrors, W = 2, with a store of level 0. */
static inline struct owner *begin_low(void)
{
	return begin_with(3, 2, PERSEAS_LEVEL_0);
}

static inline void raise_level(struct owner *o)
{
	if (change_roster(o, &raise_it))
		fail_msg("%s", o->p->upkeep.change.text);
}

static inline void reopen(struct owner *o)
{
	owner_die(o);
	reopen_with(o, 0, 3, PERSEAS_TAKEOVER);
}

/* Every image of the three has level 1 and the same key. */
static inline void assert_raised(struct owner *o)
{
	for (unsigned i = 0; i < 3; i++) {
		const Perseas__Header *header = header_at(o, i);

		assert_int_equal(header->roster->level, 1);
		assert_null(header->next_roster);
		assert_int_equal(header->key.len, PS_KEY_SIZE);
		assert_memory_equal(header->key.data, header_at(o, 0)->key.data, PS_KEY_SIZE);
	}
}

#endif
