/*
 * test_small_pages.c - which pages the kernel is asked to gather to large ones, and when: once all
 * memory is here, one place after the other, but for what is large already.
 */
#include "../../client/core/env.h"
#include "../../client/demand/demand.h"
#include "../../proto/base/large_page.h"
#include "../support/unit.h"

#define BASE ((uint64_t)1 << 40) /* a multiple of a large page; nobody looks there */
#define LARGE PS_LARGE_PAGE

enum { PLACES = 5 };

/* What the kernel was asked. */
static struct {
	unsigned calls, in_use; /* so many calls find some of it in use */
	uint64_t large;         /* places that are large, a bit for each */
	struct ps_demand *gone; /* what it has mapped is unmapped during the next call; or NULL */
	uint64_t place;         /* of the last call */
} kernel;

static uint64_t place_at(const uint8_t *at, uint64_t length)
{
	assert_int_equal((uintptr_t)at % LARGE, 0);
	assert_int_equal(length, LARGE);
	return ((uintptr_t)at - BASE) / LARGE;
}

static bool fake_gather(struct ps_pager *pager, uint8_t *base, uint64_t size)
{
	const bool all = !kernel.in_use;

	(void)pager;
	kernel.calls++;
	kernel.place = place_at(base, size);
	kernel.in_use -= !all;
	if (kernel.gone)
		kernel.gone->mapping_count = 0;
	return all;
}

static bool fake_is_large(struct ps_pager *pager, const uint8_t *at, uint64_t length)
{
	(void)pager;
	return kernel.large >> place_at(at, length) & 1;
}

static const struct ps_pager_ops ops = {
	.is_large = fake_is_large,
	.collapse = fake_gather,
};

/* One mapping at this address, all of which is here. */
static int setup_at(void **state, uint64_t base)
{
	static struct ps_demand demand;
	struct ps_demand *const d = &demand;
	const struct ps_mapping mapping = { .generation = 1,
		                            .base = (uint8_t *)(uintptr_t)base,
		                            .size = PLACES * LARGE,
		                            .cover_state = 1 };

	memset(&kernel, 0, sizeof(kernel));
	*d = (struct ps_demand){ .ops = &ops, .mapping_count = 1 };
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

/* The next call, and what it is for. */
static void assert_gathers(struct ps_demand *d, uint64_t now, uint64_t place)
{
	const unsigned before = kernel.calls;

	assert_int_equal(ps_make_large_pages_step(d, now), now);
	assert_int_equal(kernel.calls, before + 1);
	assert_int_equal(kernel.place, place);
}

static void assert_passes(struct ps_demand *d, uint64_t now)
{
	for (uint64_t place = 0; place < PLACES; place++)
		assert_gathers(d, now, place);
}

static void assert_rests(struct ps_demand *d, uint64_t now, uint64_t until)
{
	const unsigned before = kernel.calls;

	assert_int_equal(ps_make_large_pages_step(d, now), until);
	assert_int_equal(kernel.calls, before);
}

/* A process that is killed waits for one of them at most. */
TEST(test_each_place_is_gathered_once, struct ps_demand *d)
{
	assert_passes(d, 7);
	assert_rests(d, 7, PS_NEVER);
}

TEST(test_large_pages_are_left_out, struct ps_demand *d)
{
	kernel.large = 1 << 1 | 1 << 2;
	assert_gathers(d, 7, 0);
	assert_int_equal(ps_make_large_pages_step(d, 7), 7);
	assert_int_equal(ps_make_large_pages_step(d, 7), 7);
	assert_int_equal(kernel.calls, 1);
	assert_gathers(d, 7, 3);
}

/* These two never become one large page. */
TEST_WITH(test_a_segment_that_begins_inside_a_large_page, setup_askew, NULL, struct ps_demand *d)
{
	for (uint64_t place = 1; place < PLACES; place++)
		assert_gathers(d, 7, place);
	assert_rests(d, 7, PS_NEVER);
}

/* Whoever waits for a page would wait for the kernel, too. */
TEST(test_not_while_something_is_missing, struct ps_demand *d)
{
	d->mappings[0].missing_count = 1;
	assert_rests(d, 7, PS_NEVER);
	d->mappings[0].missing_count = 0;
	/* Another segment is mapped at the moment. */
	d->mappings[d->mapping_count++] = (struct ps_mapping){ .generation = 2 };
	assert_rests(d, 7, PS_NEVER);
	d->mapping_count--;
	assert_gathers(d, 7, 0);
}

/* No unmap waits for it. */
TEST(test_unmapped_meanwhile, struct ps_demand *d)
{
	kernel.gone = d;
	assert_gathers(d, 7, 0);
	assert_rests(d, 7, PS_NEVER);
	assert_int_equal(d->mappings[0].large_bytes_done, 0);
}

/* The kernel gathers no pages that are watched. */
TEST(test_what_is_watched_stays_small, struct ps_demand *d)
{
	d->mappings[0].tracks_stores = true;
	assert_rests(d, 7, PS_NEVER);
}

/* It is tried again, after a pause, and not for ever: others may keep it in use. */
TEST(test_what_is_in_use_is_tried_again, struct ps_demand *d)
{
	uint64_t now = 7, until;

	kernel.in_use = UINT32_MAX;
	for (uint64_t place = 0; place < PLACES; place++) {
		const unsigned before = kernel.calls;

		do {
			until = ps_make_large_pages_step(d, now);
			assert_int_equal(kernel.place, place);
			assert_int_equal(until, now + ps_ms(20));
			now = until;
		} while (d->mappings[0].large_bytes_done == place * LARGE &&
		         kernel.calls - before < 100);
		assert_in_range(kernel.calls - before, 2, 20);
	}
	assert_rests(d, now, PS_NEVER);
}

/* A large page that is in use at the first try is made at a later one. */
TEST(test_in_use_for_once, struct ps_demand *d)
{
	kernel.in_use = 1;
	assert_int_equal(ps_make_large_pages_step(d, 7), 7 + ps_ms(20));
	assert_passes(d, 7 + ps_ms(20));
	assert_rests(d, 7 + ps_ms(20), PS_NEVER);
}
