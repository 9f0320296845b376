/*
 * test_fill.c - the order in which the fault lane fills in what both lanes have received, and whom
 * it tells (client/demand/fill.c).
 */
#include "../../client/demand/demand.h"
#include "../support/unit.h"

#include "../../client/core/env.h"

enum { GRANULE = 4096, COUNT = 8, BULK = 4 /* granules in an answer of the bulk lane */ };

struct fixture {
	struct ps_env env;
	struct ps_env_ops env_ops;
	struct ps_pager_ops ops;
	struct ps_demand d;
	uint8_t memory[COUNT * GRANULE], bytes[COUNT * GRANULE];
	uint8_t states[COUNT];
};

static unsigned woken[PS_LANES];
static uint64_t filled[COUNT]; /* granules, in the order of the fills */
static unsigned fill_count;
static uint8_t *memory;

static void ignore_broadcast(struct ps_env *env, pthread_cond_t *cond)
{
	(void)env;
	(void)cond;
}

static void ignore_wake(struct ps_env *env, enum ps_sleeper who)
{
	(void)env;
	(void)who;
}

static void note_wake(struct ps_pager *pager, enum ps_lane lane)
{
	(void)pager;
	woken[lane]++;
}

static uint32_t note_fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes,
                          uint32_t length, bool watched)
{
	(void)pager;
	(void)bytes;
	(void)watched;
	assert_true(fill_count < COUNT);
	filled[fill_count++] = (uint64_t)(to - memory) / GRANULE;
	return length;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->env_ops.broadcast = ignore_broadcast;
	f->env_ops.wake = ignore_wake;
	f->env.ops = &f->env_ops;
	f->ops = (struct ps_pager_ops){
		.granule = GRANULE, .run = BULK, .wake = note_wake, .fill = note_fill
	};
	f->d.env = &f->env;
	f->d.ops = &f->ops;
	pthread_mutex_init(&f->d.lock, NULL);
	f->d.mappings[f->d.mapping_count++] = (struct ps_mapping){ .generation = 1,
		                                                   .base = f->memory,
		                                                   .size = sizeof(f->memory),
		                                                   .states = f->states,
		                                                   .count = COUNT,
		                                                   .missing_count = COUNT,
		                                                   .cover_state = 1 };
	memory = f->memory;
	fill_count = woken[PS_FAULT_LANE] = woken[PS_BULK_LANE] = 0;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	pthread_mutex_destroy(&f->d.lock);
	free(f);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* The lane has received these granules from its first mirror. */
static struct ps_fetching *receive(struct fixture *f, enum ps_lane lane, uint64_t granule,
                                   unsigned count)
{
	struct ps_fetching *fetching = &f->d.fetching[ps_source_number(lane, 0)];

	*fetching = (struct ps_fetching){ .state = PS_FETCH_FILLING,
		                          .generation = 1,
		                          .granule = granule,
		                          .granule_count = count,
		                          .bytes = f->bytes };
	return fetching;
}

static void assert_filled(const uint64_t *order, unsigned count)
{
	assert_int_equal(fill_count, count);
	assert_memory_equal(filled, order, count * sizeof(order[0]));
}

/* A thread waits for no more than one granule of the bulk, however much of it is there. */
TEST(test_an_answer_to_a_fault_overtakes_the_bulk, struct fixture *f)
{
	static const uint64_t order[] = { 0, 7, 1, 2, 3 };

	receive(f, PS_BULK_LANE, 0, BULK);
	assert_true(ps_fill_answers_step(&f->d));
	receive(f, PS_FAULT_LANE, 7, 1);
	while (ps_fill_answers_step(&f->d))
		;
	assert_filled(order, 5);
}

static bool can_move;

static bool moves(const struct ps_pager *pager, const uint8_t *to, uint32_t length, bool watched)
{
	(void)pager;
	(void)to;
	(void)watched;
	return can_move && length == BULK * GRANULE;
}

/* A whole run is filled at once where that takes no longer than one granule. */
TEST(test_a_run_that_is_copied_is_filled_granule_by_granule, struct fixture *f)
{
	static const uint64_t order[] = { 0, 4, 5, 6, 7 };

	f->ops.can_move = moves;
	can_move = true;
	receive(f, PS_BULK_LANE, 0, BULK);
	assert_true(ps_fill_answers_step(&f->d));
	can_move = false;
	receive(f, PS_BULK_LANE, 4, BULK);
	while (ps_fill_answers_step(&f->d))
		;
	assert_filled(order, 5);
}

/* The application may have changed the part that is here. So the whole run must not be moved over
 * it, and of this granule only the rest is filled. */
TEST(test_a_run_over_a_part_of_a_granule_is_filled_granule_by_granule, struct fixture *f)
{
	static const uint64_t order[] = { 0, 1, 2, 3 };
	uint8_t partial_pages[COUNT] = { [1] = 1 };

	f->ops.page = 16;
	f->ops.can_move = moves;
	f->d.mappings[0].partial_pages = partial_pages;
	can_move = true;
	receive(f, PS_BULK_LANE, 0, BULK);
	while (ps_fill_answers_step(&f->d))
		;
	can_move = false;
	assert_filled(order, 4);
	assert_int_equal(f->d.fetched_bytes, BULK * GRANULE - f->ops.page);
}

/* The bulk lane then asks for more. The fault lane fills in its own answers, and needs no wake. */
TEST(test_the_bulk_lane_is_told_when_its_answer_was_filled, struct fixture *f)
{
	struct ps_fetching *bulk = receive(f, PS_BULK_LANE, 0, 2);

	assert_true(ps_fill_answers_step(&f->d));
	assert_int_equal(bulk->state, PS_FETCH_FILLING);
	assert_int_equal(woken[PS_BULK_LANE], 0);
	assert_true(ps_fill_answers_step(&f->d));
	assert_int_equal(bulk->state, PS_FETCH_FILLED);
	assert_int_equal(woken[PS_BULK_LANE], 1);
	receive(f, PS_FAULT_LANE, 7, 1);
	assert_true(ps_fill_answers_step(&f->d));
	assert_int_equal(woken[PS_BULK_LANE], 1);
	assert_int_equal(woken[PS_FAULT_LANE], 0);
}
