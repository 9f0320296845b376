/*
 * test_small_pages.c - which small pages the kernel is asked to gather to large ones, and when:
 * those that came, once their large page is whole, and while nobody is likely to wait.
 */
#include "../../client/core/env.h"
#include "../../client/demand/demand.h"
#include "../../proto/base/large_page.h"
#include "../support/unit.h"

#define BASE ((uint64_t)1 << 40) /* a multiple of a large page; nobody looks there */
#define LARGE PS_LARGE_PAGE

enum { PLACES = 100, GRANULE = 128 << 10, EACH = (2 << 20) / GRANULE, QUIET_AT = 1000, CALLS = 8 };

/* What the kernel was asked. */
static struct {
	unsigned calls, in_use; /* so many calls find some of it in use */
	uint64_t now, takes;    /* ns */
	bool large;             /* what has come is one large page */
	bool poor;              /* there is no memory for what comes */
	struct ps_demand *gone; /* what it has mapped is unmapped during the next call; or NULL */
	uint64_t first[CALLS], places[CALLS];
} kernel;

static bool fake_gather(struct ps_pager *pager, uint8_t *base, uint64_t size)
{
	const unsigned i = kernel.calls++ % CALLS;
	const bool all = !kernel.in_use;

	(void)pager;
	assert_int_equal((uintptr_t)base % LARGE, 0);
	assert_int_equal(size % LARGE, 0);
	kernel.first[i] = ((uintptr_t)base - BASE) / LARGE;
	kernel.places[i] = size / LARGE;
	kernel.in_use -= !all;
	kernel.now += kernel.takes;
	if (kernel.gone)
		kernel.gone->mapping_count = 0;
	return all;
}

static bool fake_is_large(struct ps_pager *pager, const uint8_t *at, uint64_t length)
{
	(void)pager;
	assert_int_equal((uintptr_t)at % LARGE, 0);
	assert_int_equal(length, LARGE);
	return kernel.large;
}

static uint32_t fake_fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes,
                          uint32_t length, bool watched)
{
	(void)pager;
	(void)to;
	(void)bytes;
	(void)watched;
	return kernel.poor ? 0 : length;
}

static uint64_t fake_now(struct ps_env *env)
{
	(void)env;
	return kernel.now;
}

static void nobody_waits(struct ps_env *env, pthread_cond_t *cond)
{
	(void)env;
	(void)cond;
}

static const struct ps_env_ops env_ops = { .now = fake_now, .broadcast = nobody_waits };
static struct ps_env env = { .ops = &env_ops };
static const struct ps_pager_ops ops = {
	.granule = GRANULE,
	.page = PS_PAGE,
	.run = EACH,
	.fill = fake_fill,
	.is_large = fake_is_large,
	.gather = fake_gather,
};

static uint8_t states[(PLACES + 1) * EACH], small[PLACES + 1];

/* One mapping at this address, all of which is here. */
static int setup_at(void **state, uint64_t base)
{
	static struct ps_demand demand;
	struct ps_demand *const d = &demand;
	const struct ps_mapping mapping = { .generation = 1,
		                            .base = (uint8_t *)(uintptr_t)base,
		                            .size = PLACES * LARGE,
		                            .states = states,
		                            .count = PLACES * EACH,
		                            .small = small,
		                            .covered = 1 };

	memset(&kernel, 0, sizeof(kernel));
	memset(states, PS_GRANULE_HERE, sizeof(states));
	memset(small, 0, sizeof(small));
	*d = (struct ps_demand){
		.env = &env, .ops = &ops, .mapping_count = 1, .quiet_at = QUIET_AT
	};
	d->mappings[0] = mapping;
	pthread_mutex_init(&d->lock, NULL);
	*state = d;
	return 0;
}

static int setup(void **state)
{
	return setup_at(state, BASE);
}

/* It begins, and ends, inside a large page. */
static int setup_askew(void **state)
{
	return setup_at(state, BASE + PS_PAGE);
}

struct unit_fixture unit_fixture = { setup, NULL };

static void note(struct ps_demand *d, uint64_t place, uint64_t places)
{
	ps_large_note(d, &d->mappings[0], place * LARGE, places * LARGE);
}

/* So many granules from this one on are missing, and an answer has them. */
static void fill(struct ps_demand *d, uint64_t granule, unsigned count)
{
	static const uint8_t bytes[LARGE];
	const struct ps_want part = { d->mappings[0].generation, granule, count };
	bool all;

	memset(&states[granule], PS_GRANULE_ASKED, count);
	d->mappings[0].missing += count;
	pthread_mutex_lock(&d->lock);
	(void)ps_granules_fill(d, &part, bytes, &all);
	pthread_mutex_unlock(&d->lock);
	assert_int_equal(all, !kernel.poor);
}

/* The next call, and what it is for. */
static void assert_gathers(struct ps_demand *d, uint64_t now, uint64_t first, uint64_t places)
{
	const unsigned before = kernel.calls;

	assert_int_equal(ps_large_step(d, now), now);
	assert_int_equal(kernel.calls, before + 1);
	assert_int_equal(kernel.first[before % CALLS], first);
	assert_int_equal(kernel.places[before % CALLS], places);
}

static void assert_rests(struct ps_demand *d, uint64_t now, uint64_t until)
{
	const unsigned before = kernel.calls;

	assert_int_equal(ps_large_step(d, now), until);
	assert_int_equal(kernel.calls, before);
}

/* Those between them are large: the kernel finds that at once. */
TEST(test_only_what_came_in_small_pages, struct ps_demand *d)
{
	assert_rests(d, 0, PS_NEVER);
	ps_large_note(d, &d->mappings[0], 3 * LARGE + GRANULE, GRANULE);
	ps_large_note(d, &d->mappings[0], 3 * LARGE, GRANULE);
	note(d, 10, 1);
	note(d, 90, 1);
	assert_gathers(d, 0, 3, 8);
	assert_gathers(d, 0, 90, 1);
	assert_rests(d, 0, PS_NEVER);
	note(d, 2, 1);
	assert_gathers(d, 0, 2, 1);
	assert_rests(d, 0, PS_NEVER);
}

TEST(test_what_is_filled_in, struct ps_demand *d)
{
	fill(d, 7 * EACH + 5, 1);
	assert_gathers(d, QUIET_AT, 7, 1);
	/* It came as a large page. */
	kernel.large = true;
	fill(d, 8 * EACH, EACH);
	assert_rests(d, QUIET_AT, PS_NEVER);
	kernel.large = false;
	fill(d, 9 * EACH, EACH);
	assert_gathers(d, QUIET_AT, 9, 1);
	/* Nothing of it came. */
	kernel.poor = true;
	fill(d, 0, 1);
	d->mappings[0].missing = 0;
	states[0] = PS_GRANULE_HERE;
	assert_rests(d, QUIET_AT, PS_NEVER);
}

/* Where the kernel had no large page for what was received, it is moved in small ones. */
TEST(test_what_came_as_a_large_page, struct ps_demand *d)
{
	kernel.large = true;
	note(d, 3, 1);
	assert_rests(d, 0, PS_NEVER);
	/* Not all of it came at once. */
	ps_large_note(d, &d->mappings[0], 4 * LARGE, LARGE - GRANULE);
	kernel.large = false;
	note(d, 5, 1);
	assert_gathers(d, 0, 4, 2);
	assert_rests(d, 0, PS_NEVER);
}

/* A process that is killed waits for it. */
TEST(test_little_at_once, struct ps_demand *d)
{
	note(d, 0, 9);
	assert_gathers(d, 0, 0, 4);
	assert_gathers(d, 0, 4, 4);
	assert_gathers(d, 0, 8, 1);
	assert_rests(d, 0, PS_NEVER);
}

/* A segment that begins, and ends, inside a large page: these two never become one. */
TEST_WITH(test_what_can_be_large, setup_askew, NULL, struct ps_demand *d)
{
	assert_int_equal(ps_large_places(d->mappings[0].base, PLACES * LARGE), PLACES + 1);
	note(d, 0, 2);
	assert_gathers(d, 0, 1, 2);
	note(d, PLACES - 1, 1);
	assert_gathers(d, 0, PLACES - 1, 1);
	assert_rests(d, 0, PS_NEVER);
}

TEST(test_not_while_somebody_may_wait, struct ps_demand *d)
{
	note(d, 5, 1);
	d->mappings[0].missing = 1;
	assert_rests(d, QUIET_AT - 1, PS_NEVER);
	/* Who waits for all of it waits for this as well. */
	d->waits_whole = 1;
	assert_rests(d, QUIET_AT, PS_NEVER);
	d->waits_whole = 0;
	/* Another segment is mapped at the moment. */
	d->mappings[d->mapping_count++] = (struct ps_mapping){ .generation = 2 };
	assert_rests(d, QUIET_AT, PS_NEVER);
	d->mapping_count--;
	d->fenced = true;
	assert_rests(d, QUIET_AT, PS_NEVER);
	d->fenced = false;
	assert_gathers(d, QUIET_AT, 5, 1);
}

/* It would come later, and could be lost with a mirror: a wait for all processors takes long. */
TEST(test_what_is_missing_goes_first, struct ps_demand *d)
{
	note(d, 0, 9);
	d->mappings[0].missing = 1;
	kernel.now = QUIET_AT;
	kernel.takes = 70;
	assert_gathers(d, QUIET_AT, 0, 4);
	assert_rests(d, QUIET_AT + 559, PS_NEVER);
	assert_gathers(d, QUIET_AT + 560, 4, 4);
	d->mappings[0].missing = 0;
	assert_gathers(d, QUIET_AT + 560, 8, 1);
}

/* The kernel would look at all of it, and leave it as it is. */
TEST(test_not_with_a_hole, struct ps_demand *d)
{
	note(d, 5, 3);
	d->mappings[0].missing = 2;
	states[7 * EACH - 1] = states[8 * EACH] = PS_GRANULE_ASKED;
	assert_gathers(d, QUIET_AT, 5, 1);
	assert_gathers(d, QUIET_AT, 7, 1);
	assert_rests(d, QUIET_AT, PS_NEVER);
	states[7 * EACH - 1] = PS_GRANULE_HERE;
	d->mappings[0].missing--;
	assert_gathers(d, QUIET_AT, 6, 1);
	assert_rests(d, QUIET_AT, PS_NEVER);
}

/* The places between those that are gathered at once have no hole either. */
TEST(test_not_across_a_hole, struct ps_demand *d)
{
	note(d, 5, 1);
	note(d, 7, 1);
	d->mappings[0].missing = 1;
	states[6 * EACH + 3] = PS_GRANULE_MISSING;
	assert_gathers(d, QUIET_AT, 5, 1);
	assert_gathers(d, QUIET_AT, 7, 1);
	assert_rests(d, QUIET_AT, PS_NEVER);
}

/* No unmap waits for it. */
TEST(test_unmapped_meanwhile, struct ps_demand *d)
{
	note(d, 5, 1);
	kernel.gone = d;
	assert_gathers(d, 0, 5, 1);
	assert_rests(d, 0, PS_NEVER);
	assert_int_equal(d->mappings[0].gathered, 0);
}

/* The kernel gathers no pages that are watched. */
TEST(test_what_is_watched_stays_small, struct ps_demand *d)
{
	d->mappings[0].watched = true;
	note(d, 0, PLACES);
	assert_rests(d, QUIET_AT, PS_NEVER);
}

/* It is tried again, later each time, and not for ever; what comes then is another matter. */
TEST(test_what_is_in_use_is_tried_again, struct ps_demand *d)
{
	uint64_t now = 0, until, pause = ps_ms(200);
	unsigned passes = 0;

	note(d, 4, 1);
	kernel.in_use = 100;
	for (; passes < 100; passes++, now = until, pause *= 2) {
		assert_gathers(d, now, 4, 1);
		until = ps_large_step(d, now);
		if (until == PS_NEVER)
			break;
		assert_int_equal(until, now + pause);
		assert_rests(d, until - 1, until);
	}
	assert_in_range(passes, 1, 20);
	kernel.in_use = 0;
	note(d, 6, 1);
	now = d->mappings[0].gather_at;
	assert_gathers(d, now, 6, 1);
	assert_rests(d, now, PS_NEVER);
}

/* What of it was not in use is large by then. */
TEST(test_in_use_and_not, struct ps_demand *d)
{
	note(d, 0, 5);
	kernel.in_use = 1;
	assert_gathers(d, 0, 0, 4);
	assert_gathers(d, 0, 4, 1);
	assert_rests(d, 0, ps_ms(200));
	assert_gathers(d, ps_ms(200), 0, 4);
	assert_rests(d, ps_ms(200), PS_NEVER);
}
