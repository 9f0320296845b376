/*
 * container_locks.h - which uses of a container keep out which others, for the tests of those in
 * doc/examples/. Two transactions of one thread show it: no threads have to meet.
 */
#ifndef PERSEAS_TESTS_CONTAINER_LOCKS_H
#define PERSEAS_TESTS_CONTAINER_LOCKS_H

#include "container_rig.h"

enum use { INSERTS, PUTS, REMOVES, GETS, WALKS, COUNTS, USES };

static inline int pass_by(void *arg, struct text key, struct text value)
{
	(void)arg;
	(void)key;
	(void)value;
	return 0;
}

static inline int use_container(perseas_tx_t *tx, enum use use, struct text key)
{
	struct text found;
	uint64_t count;

	switch (use) {
	case INSERTS:
		return container->insert(tx, key, key);
	case PUTS:
		return container->put(tx, key, key);
	case REMOVES:
		return container->remove(tx, key);
	case GETS:
		return container->get(tx, key, &found);
	case WALKS:
		return container->walk(tx, pass_by, NULL);
	default:
		return container->count(tx, &count);
	}
}

static inline void use_beside(perseas_t *p, enum use first, enum use second, struct text key)
{
	const bool both_look = first >= GETS && second >= GETS;
	perseas_tx_t *older, *younger;
	int rc;

	assert_int_equal(perseas_begin(p, 0, &older), 0);
	assert_int_equal(perseas_begin(p, 0, &younger), 0);
	assert_true(use_container(older, first, key) >= 0);
	rc = use_container(younger, second, key);
	if (both_look ? rc < 0 : rc != PERSEAS_ECONFLICT)
		fail_msg("use %u of key %zu beside use %u: %s", second, key.size, first,
		         perseas_error_name(rc));
	assert_int_equal(perseas_abort(younger), 0);
	assert_int_equal(perseas_abort(older), 0);
}

/* If two transactions use one key, or all keys, and either changes something, the younger one is
 * refused. Two that only look are never refused. Tested for keys that exist and keys that do
 * not. */
TEST(test_each_use_keeps_out_what_it_must, struct owner *o)
{
	perseas_tx_t *tx;

	open_container(o, 0);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	for (unsigned i = 0; i < NAMES; i += 2)
		assert_int_equal(container->put(tx, key_number(i), key_number(i)), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	for (unsigned i = 0; i < NAMES; i++)
		for (enum use first = INSERTS; first < USES; first++)
			for (enum use second = INSERTS; second < USES; second++)
				use_beside(o->p, first, second, key_number(i));
}

#endif
