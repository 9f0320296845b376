/*
 * test_granules.c - what is fetched next: what somebody waits for, in the order in which they came,
 * however much that is, then what is to come soon, and then the rest; each granule once, unless it
 * was asked for in vain.
 */
#include "../../client/demand/demand.h"
#include "../support/unit.h"

enum { GRANULE = 4096, COUNT = 1000, LAST = 7 /* bytes of the last */ };

static const struct ps_runs ONE = { 1, 1, false }, FOUR = { 1, 4, false }, BOTH = { 4, 4, false },
			    NONE = { 1, 0, true };

struct fixture {
	struct ps_pager_ops ops;
	struct ps_demand d;
	struct ps_mapping *mapping;
};

static void map(struct fixture *f, uint64_t generation, uint64_t count)
{
	f->mapping = &f->d.mappings[f->d.mapping_count++];
	*f->mapping = (struct ps_mapping){
		.generation = generation,
		.segment = (uint32_t)generation,
		.base = (uint8_t *)(uintptr_t)(generation << 40),
		.size = (count - 1) * GRANULE + LAST,
		.states = calloc(count, 1),
		.count = count,
		.missing = count,
		.covered = 1,
	};
	assert_non_null(f->mapping->states);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ops.granule = GRANULE;
	f->d.ops = &f->ops;
	map(f, 1, COUNT);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < f->d.mapping_count; i++)
		free(f->d.mappings[i].states);
	free(f);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static struct ps_want want; /* what was asked for last */
static bool waits;          /* whether somebody waits for it */

static uint64_t next(struct fixture *f)
{
	assert_true(ps_granule_next(&f->d, 0, ONE, &want, &waits));
	assert_int_equal(ps_mapping_of(&f->d, want.generation)->states[want.granule],
	                 PS_GRANULE_ASKED);
	return want.granule;
}

static void assert_nothing_is_missing(struct fixture *f)
{
	assert_false(ps_granule_next(&f->d, 0, ONE, &want, &waits));
}

TEST(test_the_rest_comes_in_order, struct fixture *f)
{
	for (uint64_t g = 0; g < COUNT; g++)
		assert_int_equal(next(f), g);
	assert_nothing_is_missing(f);
}

TEST(test_what_is_wanted_comes_first, struct fixture *f)
{
	ps_granule_want(&f->d, f->mapping, 700);
	ps_granule_want(&f->d, f->mapping, 3);
	ps_granule_want(&f->d, f->mapping, 700);
	assert_int_equal(next(f), 700);
	assert_int_equal(next(f), 3);
	assert_int_equal(next(f), 0);
}

/* Where none of the rest may be asked for, what somebody waits for may. */
TEST(test_no_rest, struct fixture *f)
{
	assert_false(ps_granule_next(&f->d, 0, NONE, &want, &waits));
	ps_granule_want(&f->d, f->mapping, 700);
	assert_true(ps_granule_next(&f->d, 0, NONE, &want, &waits));
	assert_int_equal(want.granule, 700);
	assert_int_equal(next(f), 0);
}

/* A run ends at a wanted granule, which comes alone, at a multiple of the run, and at the end. */
TEST(test_the_rest_comes_in_runs, struct fixture *f)
{
	static const struct {
		uint64_t granule;
		unsigned count;
		bool waits;
	} expected[] = { { 2, 1, true }, { 0, 2, false }, { 3, 1, false }, { 4, 4, false } };
	map(f, 2, 6);
	ps_granule_want(&f->d, &f->d.mappings[0], 2);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(ps_granule_next(&f->d, 0, FOUR, &want, &waits));
		assert_int_equal(want.granule, expected[i].granule);
		assert_int_equal(want.count, expected[i].count);
		assert_int_equal(waits, expected[i].waits);
	}
	do
		assert_true(ps_granule_next(&f->d, 0, FOUR, &want, &waits));
	while (want.generation == 1);
	assert_int_equal(want.count, 4);
	assert_true(ps_granule_next(&f->d, 0, FOUR, &want, &waits));
	assert_int_equal(want.granule, 4);
	assert_int_equal(want.count, 2);
	assert_int_equal(f->mapping->states[5], PS_GRANULE_ASKED);
	assert_false(ps_granule_next(&f->d, 0, FOUR, &want, &waits));
}

/* A wanted granule brings its missing neighbours, but none that are under way or here. */
TEST(test_what_is_wanted_comes_in_runs, struct fixture *f)
{
	static const struct {
		uint64_t granule;
		unsigned count;
	} expected[] = { { 4, 4 }, { 9, 2 }, { 996, 4 } };
	static const uint64_t wanted[] = { 5, 6, 10, COUNT - 1 };
	f->mapping->states[8] = PS_GRANULE_HERE;
	f->mapping->states[11] = PS_GRANULE_ASKED;
	ps_granule_soon(f->mapping, 7);
	for (unsigned i = 0; i < 4; i++)
		ps_granule_want(&f->d, f->mapping, wanted[i]);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(ps_granule_next(&f->d, 0, BOTH, &want, &waits));
		assert_int_equal(want.granule, expected[i].granule);
		assert_int_equal(want.count, expected[i].count);
		assert_true(waits);
	}
	assert_true(ps_granule_next(&f->d, 0, BOTH, &want, &waits));
	assert_false(waits);
}

/* The newest transactions are all over the memory: what lies beside them is large pages, too. */
TEST(test_what_comes_soon_brings_its_neighbours, struct fixture *f)
{
	static const uint64_t granules[] = { 4, 12, 0, 8 };
	ps_granule_soon(f->mapping, 13);
	ps_granule_soon(f->mapping, 6);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(ps_granule_next(&f->d, 0, FOUR, &want, &waits));
		assert_int_equal(want.granule, granules[i]);
		assert_int_equal(want.count, 4);
		assert_false(waits);
	}
}

/* Who waits for one of many granules that are to come soon does not wait for the others. */
TEST(test_what_comes_soon_delays_nobody, struct fixture *f)
{
	for (uint64_t g = 100; g < 900; g++)
		ps_granule_soon(f->mapping, g);
	assert_int_equal(next(f), 100);
	ps_granule_want(&f->d, f->mapping, 899);
	ps_granule_want(&f->d, f->mapping, 950);
	ps_granule_want(&f->d, f->mapping, 500);
	ps_granule_soon(f->mapping, 500);
	assert_int_equal(next(f), 899);
	assert_int_equal(next(f), 950);
	assert_int_equal(next(f), 500);
	for (uint64_t g = 101; g < 899; g++)
		if (g != 500)
			assert_int_equal(next(f), g);
	assert_int_equal(next(f), 0);
}

/* Before what was to come soon already, after it, and once all of that is under way. */
TEST(test_more_comes_soon, struct fixture *f)
{
	ps_granule_soon(f->mapping, 500);
	ps_granule_soon(f->mapping, COUNT - 1);
	ps_granule_soon(f->mapping, 700);
	ps_granule_soon(f->mapping, 3);
	assert_int_equal(next(f), 3);
	assert_int_equal(next(f), 500);
	ps_granule_soon(f->mapping, 3);
	ps_granule_soon(f->mapping, 2);
	assert_int_equal(next(f), 2);
	assert_int_equal(next(f), 700);
	assert_int_equal(next(f), COUNT - 1);
	ps_granule_soon(f->mapping, 10);
	assert_int_equal(next(f), 10);
	for (uint64_t g = 0; g < COUNT - 1; g++)
		if (g != 2 && g != 3 && g != 10 && g != 500 && g != 700)
			assert_int_equal(next(f), g);
	assert_nothing_is_missing(f);
}

/* More than are remembered: none is forgotten, and none comes twice. */
TEST(test_all_are_wanted, struct fixture *f)
{
	bool seen[COUNT] = { false };

	for (uint64_t g = COUNT; g-- > 0;)
		ps_granule_want(&f->d, f->mapping, g);
	for (unsigned i = 0; i < COUNT; i++) {
		const uint64_t g = next(f);

		assert_false(seen[g]);
		seen[g] = true;
	}
	assert_nothing_is_missing(f);
}

TEST(test_what_was_asked_in_vain_is_asked_again, struct fixture *f)
{
	assert_int_equal(next(f), 0);
	assert_int_equal(next(f), 1);
	ps_granule_give_back(&f->d, 1, 0);
	assert_int_equal(next(f), 0);
	f->mapping->states[0] = PS_GRANULE_HERE;
	ps_granule_give_back(&f->d, 1, 0);
	assert_int_equal(next(f), 2);
}

/* With a rate: what nobody waits for comes when its time has come, what is wanted at once. */
TEST(test_the_rest_has_a_rate, struct fixture *f)
{
	f->d.rate = 2 * GRANULE;
	assert_true(ps_granule_next(&f->d, 0, ONE, &want, &waits));
	ps_granule_soon(f->mapping, 900);
	assert_false(ps_granule_next(&f->d, 499999999, ONE, &want, &waits));
	ps_granule_want(&f->d, f->mapping, 500);
	assert_true(ps_granule_next(&f->d, 499999999, ONE, &want, &waits));
	assert_int_equal(want.granule, 500);
	assert_true(ps_granule_next(&f->d, 500000000, ONE, &want, &waits));
	assert_int_equal(want.granule, 900);
	assert_false(ps_granule_next(&f->d, 999999999, ONE, &want, &waits));
}

/* Those who wanted something of a mapping that is gone wait for nothing. */
TEST(test_a_mapping_goes, struct fixture *f)
{
	ps_granule_want(&f->d, f->mapping, 5);
	assert_int_equal(next(f), 5);
	ps_granule_want(&f->d, f->mapping, 6);
	f->mapping->generation = 2;
	ps_granule_give_back(&f->d, 1, 5);
	assert_int_equal(f->mapping->states[5], PS_GRANULE_ASKED);
	assert_int_equal(next(f), 0);
}

TEST(test_where_an_address_is, struct fixture *f)
{
	const uint64_t base = (uint64_t)(uintptr_t)f->mapping->base;

	assert_ptr_equal(ps_mapping_at(&f->d, base), f->mapping);
	assert_null(ps_mapping_at(&f->d, base - 1));
	/* The rest of the last page belongs to it. */
	assert_ptr_equal(ps_mapping_at(&f->d, base + COUNT * GRANULE - 1), f->mapping);
	assert_null(ps_mapping_at(&f->d, base + COUNT * GRANULE));
	assert_int_equal(ps_granule_at(&f->d, f->mapping, base + GRANULE - 1), 0);
	assert_int_equal(ps_granule_at(&f->d, f->mapping, base + GRANULE), 1);
	assert_int_equal(ps_granule_length(&f->d, f->mapping, 0), GRANULE);
	assert_int_equal(ps_granule_length(&f->d, f->mapping, COUNT - 1), LAST);
	assert_ptr_equal(ps_mapping_segment(&f->d, 1), f->mapping);
	assert_null(ps_mapping_segment(&f->d, 2));
}
