/*
 * roster_rig.h - what the tests of rosters share: more mirrors than a store has, and an owner that
 * opens it with some of them.
 */
#ifndef PERSEAS_TESTS_ROSTER_RIG_H
#define PERSEAS_TESTS_ROSTER_RIG_H

#include "owner.h"

enum { MIRRORS = 5, ROUNDS = 200 }; /* daemons that there are; stores begin on fewer */

/* Opens with the first `count` mirrors only, whatever the roster says. */
static inline int open_with(struct owner *o, unsigned first, unsigned count, uint32_t flags)
{
	struct perseas_options options = o->options;
	char list[128] = "";

	owner_close(o);
	options.flags |= flags;
	for (unsigned i = first; i < first + count; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%ssim://%u",
		         i > first ? "," : "", i);
	memset(&o->error, 0, sizeof(o->error));
	return ps_open(direct_env(o->d), STORE, list, &options, &o->p, &o->error);
}

static inline void open_well(struct owner *o, unsigned first, unsigned count, uint32_t flags)
{
	if (open_with(o, first, count, flags))
		fail_msg("%s", o->error.text);
}

/* Opens the store again, with what transactions need. */
static inline void reopen_with(struct owner *o, unsigned first, unsigned count, uint32_t flags)
{
	open_well(o, first, count, flags);
	owner_map(o);
}

/* Makes a store on the first `count` of MIRRORS daemons. */
static inline struct owner *begin_with(unsigned count, uint32_t acks, uint32_t flags)
{
	struct owner *o = owner_new(MIRRORS);
	void *addr;

	o->options.acks = acks;
	open_well(o, 0, count, PERSEAS_CREATE | flags);
	assert_int_equal(perseas_map(o->p, "accounts", SIZE, &addr), 0);
	o->bytes = addr;
	memset(o->bytes, 1, SIZE);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(owner_put(o, 0, 100, 2), 0);
	return o;
}

static inline struct owner *begin(unsigned count, uint32_t acks)
{
	return begin_with(count, acks, 0);
}

/* Makes the store for a test whose teardown frees it. */
static inline struct owner *begin_test(unsigned count, uint32_t acks)
{
	return owner_of_test(begin(count, acks));
}

/* Changes the roster. Returns the result. */
static inline int change_roster(struct owner *o, const struct perseas_roster_change *wanted)
{
	assert_int_equal(owner_change(o, wanted), 0);
	owner_keep_stage(o, PS_CHANGE_NONE);
	return o->p->upkeep.change.result_code;
}

static inline void begin_removal(struct owner *o, const char *address)
{
	const struct perseas_roster_change leaves = { .kind = PERSEAS_ROSTER_REMOVE,
		                                      .address = address };

	assert_int_equal(owner_change(o, &leaves), 0);
}

static inline void replace_member(struct owner *o, const char *address, const char *with)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, address, with, 0, 0 };

	assert_int_equal(change_roster(o, &wanted), 0);
}

#endif
