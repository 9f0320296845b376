/*
 * test_bytes.c - copies against memcpy: every length around the limits at which they go another
 * way, at every place in a cache line, and not a byte beside.
 */
#include "../../client/core/bytes.h"
#include "../support/unit.h"

enum { PAGE = 4096, BEFORE = 0x5a, ROOM = 9 << 20 };

typedef void (*copy_fn)(void *to, const void *from, size_t len);

static uint8_t *source, *target, *wanted;

static int make_room(void **state)
{
	uint64_t x = 88172645463325252u;

	(void)state;
	source = aligned_alloc(PAGE, ROOM);
	target = aligned_alloc(PAGE, ROOM);
	wanted = aligned_alloc(PAGE, ROOM);
	if (!source || !target || !wanted)
		return -1;
	for (size_t i = 0; i < ROOM; i++)
		source[i] = (uint8_t)unit_draw(&x);
	return 0;
}

static int free_room(void **state)
{
	(void)state;
	free(source);
	free(target);
	free(wanted);
	return 0;
}

struct unit_fixture unit_group = { make_room, free_room };

/* `at` and `from` are places in the room; what lies around the copy must stay. */
static void check(copy_fn copy, size_t at, size_t from, size_t len)
{
	const size_t end = at + len + PAGE;

	memset(target, BEFORE, end);
	memset(wanted, BEFORE, end);
	memcpy(wanted + at, source + from, len);
	copy(target + at, source + from, len);
	assert_memory_equal(target, wanted, end);
}

static void copy_short(void *to, const void *from, size_t len)
{
	ps_copy_short(to, from, len);
}

static void copy_any(void *to, const void *from, size_t len)
{
	ps_copy(to, from, len);
}

TEST(every_short_length_at_every_place)
{
	for (size_t len = 0; len <= PS_COPY_SHORT + 1; len++)
		for (size_t at = 0; at < 64; at += 3)
			for (size_t from = 0; from < 64; from += 7)
				check(copy_short, PAGE + at, from, len);
}

/* A few bytes behind its source, in terms of places in a page, a long copy goes downwards. */
TEST(long_copies_close_behind_their_source)
{
	const size_t lengths[] = { 257, 1023, 1024, 1025, 1087, 4096, 8191, 70001 };

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		for (size_t behind = 0; behind <= 40; behind++)
			check(copy_any, PAGE + behind, 2 * PAGE, lengths[i]);
}

/* Around the caches: what is before and behind whole lines is copied as well. */
TEST(copies_around_the_caches)
{
	for (size_t at = 0; at < 64; at += 5)
		for (size_t from = 0; from < 64; from += 9)
			for (size_t more = 0; more < 130; more += 43)
				check(ps_copy_uncached, PAGE + at, from,
				      PS_COPY_UNCACHED_MIN - 1 + more);
}

TEST(copies_by_several_processors)
{
	const size_t lengths[] = { 0, 1, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, (8 << 20) + 77 };

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		check(ps_copy_parallel, PAGE + i, 3 * i, lengths[i]);
}
