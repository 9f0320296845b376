/*
 * test_granules.c - what each lane fetches next. The fault lane fetches what threads wait for, in
 * the order of their faults, however much that is. The bulk lane fetches what threads will probably
 * need soon, and then the rest. Each lane asks for a granule once, unless the request failed.
 */
#include "../../client/demand/demand.h"
#include "../support/unit.h"

enum { GRANULE = 4096, COUNT = 1000, LAST = 7 /* bytes of the last */ };

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
		.missing_count = count,
		.cover_state = 1,
	};
	assert_non_null(f->mapping->states);
}

static bool can_move;

static bool moves(const struct ps_pager *pager, const uint8_t *to, uint32_t length, bool watched)
{
	(void)pager;
	(void)to;
	return can_move && length == 4 * GRANULE && !watched;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ops.granule = GRANULE;
	f->ops.run = 1;
	f->ops.can_move = moves;
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

static enum ps_granule state_of(struct fixture *f)
{
	return ps_mapping_by_generation(&f->d, want.generation)->states[want.granule];
}

static uint64_t next(struct fixture *f)
{
	assert_true(ps_granule_next_bulk(&f->d, 0, &want));
	return want.granule;
}

static uint64_t next_wanted(struct fixture *f)
{
	assert_true(ps_granule_next_wanted(&f->d, 1, &want));
	assert_int_equal(state_of(f), PS_GRANULE_ASKED);
	assert_int_equal(want.count, 1);
	return want.granule;
}

static void assert_next(struct fixture *f, uint64_t granule, unsigned count)
{
	assert_int_equal(next(f), granule);
	assert_int_equal(want.count, count);
}

static void assert_no_bulk_is_left(struct fixture *f)
{
	assert_false(ps_granule_next_bulk(&f->d, 0, &want));
}

static void assert_nobody_waits(struct fixture *f)
{
	assert_false(ps_granule_next_wanted(&f->d, f->ops.run, &want));
}

TEST(test_the_rest_comes_in_order, struct fixture *f)
{
	for (uint64_t g = 0; g < COUNT; g++) {
		assert_int_equal(next(f), g);
		assert_int_equal(state_of(f), PS_GRANULE_COMING);
	}
	assert_no_bulk_is_left(f);
	assert_nobody_waits(f);
}

/* Each once, also where the bulk lane has asked for it. */
TEST(test_what_is_wanted_comes_in_the_order_of_waits, struct fixture *f)
{
	assert_int_equal(next(f), 0);
	ps_granule_note_wanted(&f->d, f->mapping, 700);
	ps_granule_note_wanted(&f->d, f->mapping, 0);
	ps_granule_note_wanted(&f->d, f->mapping, 700);
	assert_int_equal(next_wanted(f), 700);
	assert_int_equal(next_wanted(f), 0);
	ps_granule_note_wanted(&f->d, f->mapping, 0);
	assert_nobody_waits(f);
	assert_int_equal(next(f), 1);
}

/* The fault lane may ask in vain: the bulk lane leaves nothing out, and who waits still does. */
TEST(test_the_bulk_has_what_is_wanted_too, struct fixture *f)
{
	f->ops.run = 4;
	ps_granule_note_wanted(&f->d, f->mapping, 1);
	assert_int_equal(next_wanted(f), 1);
	ps_granule_note_wanted(&f->d, f->mapping, 2);
	assert_next(f, 0, 4);
	assert_int_equal(f->mapping->states[0], PS_GRANULE_COMING);
	assert_int_equal(f->mapping->states[1], PS_GRANULE_ASKED);
	assert_int_equal(next_wanted(f), 2);
	assert_next(f, 4, 4);
}

/* A run ends at what is here, at a multiple of the run, and at the end. */
TEST(test_the_rest_comes_in_runs, struct fixture *f)
{
	f->ops.run = 4;
	map(f, 2, 6);
	f->d.mappings[0].states[2] = PS_GRANULE_HERE;
	assert_next(f, 0, 2);
	assert_next(f, 3, 1);
	do
		next(f);
	while (want.generation == 1);
	assert_int_equal(want.count, 4);
	assert_next(f, 4, 2);
	assert_int_equal(f->mapping->states[5], PS_GRANULE_COMING);
	assert_no_bulk_is_left(f);
}

static void assert_wanted(struct fixture *f, uint64_t granule, unsigned count)
{
	assert_true(ps_granule_next_wanted(&f->d, f->ops.run, &want));
	assert_int_equal(want.granule, granule);
	assert_int_equal(want.count, count);
}

/* A wanted granule brings the large page that it lies in, where that is moved and none of it is
 * here. */
TEST(test_what_is_wanted_comes_in_large_pages, struct fixture *f)
{
	static const uint64_t wanted[] = { 5, 6, 10, 13, COUNT - 1 };

	f->ops.run = 4;
	can_move = true;
	f->mapping->states[8] = PS_GRANULE_HERE;
	f->mapping->states[15] = PS_GRANULE_COPIED;
	f->mapping->states[4] = PS_GRANULE_COMING;
	ps_granule_ask_early(f->mapping, 7);
	for (unsigned i = 0; i < 5; i++)
		ps_granule_note_wanted(&f->d, f->mapping, wanted[i]);
	assert_wanted(f, 4, 4);
	assert_int_equal(f->mapping->states[4], PS_GRANULE_ASKED);
	assert_int_equal(f->mapping->states[7], PS_GRANULE_ASKED);
	assert_wanted(f, 10, 1);
	assert_wanted(f, 13, 1);
	/* The last large page is not whole. */
	assert_wanted(f, COUNT - 1, 1);
	assert_nobody_waits(f);
	can_move = false;
	ps_granule_note_wanted(&f->d, f->mapping, 20);
	assert_wanted(f, 20, 1);
}

/* Where only some pages of a granule are here, the large page is torn as well. */
TEST(test_a_torn_granule_is_in_no_large_page, struct fixture *f)
{
	uint8_t torn[COUNT] = { [6] = 1 };

	f->ops.run = 4;
	f->ops.page = 16;
	can_move = true;
	f->mapping->partial_pages = torn;
	ps_granule_note_wanted(&f->d, f->mapping, 5);
	assert_wanted(f, 5, 1);
}

/* The newest transactions are all over the memory: what lies beside them is large pages, too. */
TEST(test_what_comes_soon_brings_its_neighbours, struct fixture *f)
{
	f->ops.run = 4;
	ps_granule_ask_early(f->mapping, 13);
	ps_granule_ask_early(f->mapping, 6);
	assert_next(f, 4, 4);
	assert_next(f, 12, 4);
	assert_next(f, 0, 4);
	assert_next(f, 8, 4);
}

/* Who waits for one of many granules that are to come soon does not wait for the others. */
TEST(test_what_comes_soon_delays_nobody, struct fixture *f)
{
	for (uint64_t g = 100; g < 900; g++)
		ps_granule_ask_early(f->mapping, g);
	assert_int_equal(next(f), 100);
	ps_granule_note_wanted(&f->d, f->mapping, 899);
	ps_granule_note_wanted(&f->d, f->mapping, 950);
	ps_granule_note_wanted(&f->d, f->mapping, 500);
	ps_granule_ask_early(f->mapping, 500);
	assert_int_equal(next_wanted(f), 899);
	assert_int_equal(next_wanted(f), 950);
	assert_int_equal(next_wanted(f), 500);
	for (uint64_t g = 101; g < 899; g++)
		if (g != 500)
			assert_int_equal(next(f), g);
	assert_int_equal(next(f), 0);
}

/* Before what was to come soon already, after it, and once all of that is under way. */
TEST(test_more_comes_soon, struct fixture *f)
{
	ps_granule_ask_early(f->mapping, 500);
	ps_granule_ask_early(f->mapping, COUNT - 1);
	ps_granule_ask_early(f->mapping, 700);
	ps_granule_ask_early(f->mapping, 3);
	assert_int_equal(next(f), 3);
	assert_int_equal(next(f), 500);
	ps_granule_ask_early(f->mapping, 3);
	ps_granule_ask_early(f->mapping, 2);
	assert_int_equal(next(f), 2);
	assert_int_equal(next(f), 700);
	assert_int_equal(next(f), COUNT - 1);
	ps_granule_ask_early(f->mapping, 10);
	assert_int_equal(next(f), 10);
	for (uint64_t g = 0; g < COUNT - 1; g++)
		if (g != 2 && g != 3 && g != 10 && g != 500 && g != 700)
			assert_int_equal(next(f), g);
	assert_no_bulk_is_left(f);
}

/* More than are remembered: none is forgotten, and none comes twice. */
TEST(test_all_are_wanted, struct fixture *f)
{
	bool seen[COUNT] = { false };

	for (uint64_t g = COUNT; g-- > 0;)
		ps_granule_note_wanted(&f->d, f->mapping, g);
	for (unsigned i = 0; i < COUNT; i++) {
		const uint64_t g = next_wanted(f);

		assert_false(seen[g]);
		seen[g] = true;
	}
	assert_nobody_waits(f);
}

TEST(test_bulk_that_was_asked_in_vain_is_asked_again, struct fixture *f)
{
	assert_int_equal(next(f), 0);
	assert_int_equal(next(f), 1);
	ps_granule_allow_request_again(&f->d, 1, 0);
	assert_nobody_waits(f);
	assert_int_equal(next(f), 0);
	f->mapping->states[0] = PS_GRANULE_HERE;
	ps_granule_allow_request_again(&f->d, 1, 0);
	assert_int_equal(f->mapping->states[0], PS_GRANULE_HERE);
	assert_int_equal(next(f), 2);
}

/* By either lane: the one that asked may have lost its connections. */
TEST(test_what_somebody_waits_for_in_vain_is_asked_again, struct fixture *f)
{
	for (uint64_t g = 0; g < COUNT; g++)
		next(f);
	ps_granule_note_wanted(&f->d, f->mapping, 5);
	assert_int_equal(next_wanted(f), 5);
	ps_granule_allow_request_again(&f->d, 1, 5);
	assert_int_equal(next(f), 5);
	assert_int_equal(next_wanted(f), 5);
	/* A standby's copy has it, and there is no memory for it. */
	f->mapping->states[9] = PS_GRANULE_COPIED;
	ps_granule_allow_request_again(&f->d, 1, 9);
	assert_int_equal(next(f), 9);
	assert_int_equal(next_wanted(f), 9);
}

/* With a rate: the bulk comes when its time has come, what is wanted at once. */
TEST(test_the_rest_has_a_rate, struct fixture *f)
{
	f->d.bulk_bytes_per_s = 2 * GRANULE;
	assert_int_equal(next(f), 0);
	ps_granule_ask_early(f->mapping, 900);
	assert_false(ps_granule_next_bulk(&f->d, 499999999, &want));
	ps_granule_note_wanted(&f->d, f->mapping, 500);
	assert_int_equal(next_wanted(f), 500);
	assert_true(ps_granule_next_bulk(&f->d, 500000000, &want));
	assert_int_equal(want.granule, 900);
	assert_false(ps_granule_next_bulk(&f->d, 999999999, &want));
}

/* No run is longer than what the rate allows in 10 ms. */
TEST(test_runs_have_the_rate, struct fixture *f)
{
	static const struct {
		unsigned rate, count;
	} rates[] = { { 1, 1 }, { 199, 1 }, { 200, 2 }, { 400, 4 }, { 10000, 4 } };

	f->ops.run = 4;
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		f->d.bulk_bytes_per_s = (uint64_t)rates[i].rate * GRANULE;
		f->d.bulk_allowed_at = 0;
		f->mapping->next_bulk = 4 * i;
		assert_next(f, 4 * i, rates[i].count);
	}
}

/* Those who wanted something of a mapping that is gone wait for nothing. */
TEST(test_a_mapping_goes, struct fixture *f)
{
	ps_granule_note_wanted(&f->d, f->mapping, 5);
	assert_int_equal(next_wanted(f), 5);
	ps_granule_note_wanted(&f->d, f->mapping, 6);
	f->mapping->generation = 2;
	ps_granule_allow_request_again(&f->d, 1, 5);
	assert_int_equal(f->mapping->states[5], PS_GRANULE_ASKED);
	assert_int_equal(next(f), 0);
}

TEST(test_where_an_address_is, struct fixture *f)
{
	const uint64_t base = (uint64_t)(uintptr_t)f->mapping->base;

	assert_ptr_equal(ps_mapping_by_address(&f->d, base), f->mapping);
	assert_null(ps_mapping_by_address(&f->d, base - 1));
	/* The rest of the last page belongs to it. */
	assert_ptr_equal(ps_mapping_by_address(&f->d, base + COUNT * GRANULE - 1), f->mapping);
	assert_null(ps_mapping_by_address(&f->d, base + COUNT * GRANULE));
	assert_int_equal(ps_granule_by_address(&f->d, f->mapping, base + GRANULE - 1), 0);
	assert_int_equal(ps_granule_by_address(&f->d, f->mapping, base + GRANULE), 1);
	assert_int_equal(ps_granule_length(&f->d, f->mapping, 0), GRANULE);
	assert_int_equal(ps_granule_length(&f->d, f->mapping, COUNT - 1), LAST);
	assert_ptr_equal(ps_mapping_by_segment(&f->d, 1), f->mapping);
	assert_null(ps_mapping_by_segment(&f->d, 2));
}
