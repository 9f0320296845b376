/*
 * track_rig.h - what the tests of transactions without set_range, and of the check of writes,
 * share: a store with a segment "large", in every way in which changes are found and sent, and what
 * must be in it.
 */
#ifndef PERSEAS_TESTS_TRACK_RIG_H
#define PERSEAS_TESTS_TRACK_RIG_H

#include "owner.h"

#include "../../client/core/shadow.h"
#include "../../client/core/tx.h"

enum { PAGE = 4096, LARGE = 40 * PAGE + 100, FAR = 33 * PAGE };

static const struct way {
	const char *name;
	bool pages, staged;
} ways[] = {
	{ "all memory", false, false },
	{ "all memory, staged", false, true },
	{ "pages", true, false },
	{ "pages, staged", true, true },
};

static struct owner *o;
static uint8_t *large;
static uint8_t expected[LARGE];

static inline void map_large(void)
{
	void *addr;

	assert_int_equal(perseas_map(o->p, "large", 0, &addr), 0);
	large = addr;
}

/* Creates the store, and opens it in this way with these flags. */
static inline void begin_store(const struct way *way, unsigned mirrors, uint32_t flags)
{
	void *addr;

	print_message("%s\n", way->name);
	o = owner_new(mirrors);
	o->d->staged = way->staged;
	o->options.log_size = 512 << 10;
	o->options.ring_size = 1 << 20;
	owner_begin(o);
	assert_int_equal(perseas_map(o->p, "large", LARGE, &addr), 0);
	for (unsigned i = 0; i < LARGE; i++)
		((uint8_t *)addr)[i] = expected[i] = (uint8_t)(i * 11);
	assert_int_equal(perseas_publish(o->p), 0);
	o->d->written = way->pages ? &ps_written_pages : NULL;
	assert_int_equal(owner_open(o, flags), 0);
	owner_map(o);
	map_large();
}

static inline bool can(const struct way *way)
{
	struct ps_env env = { .written = &ps_written_pages };
	struct ps_error error;

	return !way->pages || !ps_written_probe(&env, &error);
}

static inline void each_way(unsigned mirrors, uint32_t flags, void (*fn)(void))
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!can(&ways[i]))
			continue;
		begin_store(&ways[i], mirrors, flags);
		fn();
		owner_free(o);
	}
}

/* Begins a test that is run in each way, as TEST() does: EACH_WAY(name) { ... }. */
#define EACH_WAY(name) EACH_WAY_OF(1, PERSEAS_TRACKED, name)
#define EACH_WAY_OF(mirrors, flags, name)                  \
	static void name##_in_a_way(void);                 \
	TEST(name)                                         \
	{                                                  \
		each_way(mirrors, flags, name##_in_a_way); \
	}                                                  \
	static void name##_in_a_way(void)

static inline perseas_tx_t *track(void)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), 0);
	return tx;
}

/* The store holds what is expected, for the next owner and here. */
static inline void assert_stored(void)
{
	assert_memory_equal(large, expected, LARGE);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER | PERSEAS_TRACKED), 0);
	owner_map(o);
	map_large();
	assert_memory_equal(large, expected, LARGE);
}

static inline void put(unsigned at, unsigned length)
{
	for (unsigned i = at; i < at + length; i++)
		large[i] = expected[i] = (uint8_t)(expected[i] + 1);
}

#endif
