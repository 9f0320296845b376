/*
 * test_pause.c - the pauses between two attempts to mend the same trouble.
 */
#include "../../server/host/pause.h"
#include "../support/unit.h"

#define MS 1000000ull

enum { BEGIN = 5000 };

TEST(nothing_waits_at_first)
{
	const struct pause pause = { 0 };

	assert_true(pause_is_over(&pause, 0));
	assert_true(pause_is_over(&pause, BEGIN * MS));
}

/* The trouble comes back as soon as it may be mended. */
TEST(pauses_double_up_to_the_longest)
{
	struct pause pause = { 0 };
	uint64_t now = BEGIN * MS;

	for (uint64_t ms = PAUSE_LEAST_MS; ms < PAUSE_MOST_MS; ms *= 2) {
		pause_begin(&pause, now);
		assert_false(pause_is_over(&pause, now + ms * MS - 1));
		now += ms * MS;
		assert_true(pause_is_over(&pause, now));
	}
	for (int i = 0; i < 3; i++) {
		pause_begin(&pause, now);
		now += PAUSE_MOST_MS * MS;
		assert_false(pause_is_over(&pause, now - 1));
		assert_true(pause_is_over(&pause, now));
	}
}

TEST(after_a_calm_time_the_pause_is_short_again)
{
	struct pause pause = { 0 };
	uint64_t now = BEGIN * MS;

	pause_begin(&pause, now);
	pause_begin(&pause, now += PAUSE_LEAST_MS * MS);
	pause_begin(&pause, now += (PAUSE_CALM * 2 * PAUSE_LEAST_MS - 1) * MS);
	assert_false(pause_is_over(&pause, now + 4 * PAUSE_LEAST_MS * MS - 1));
	pause_begin(&pause, now += PAUSE_CALM * 4 * PAUSE_LEAST_MS * MS);
	assert_true(pause_is_over(&pause, now + PAUSE_LEAST_MS * MS));
}
