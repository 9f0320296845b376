/*
 * test_huge_warm.c - standbys that keep a copy of a store's memory, whose next owner has it in the
 * kernel's huge pages: of each of these all is taken from the copy, or nothing. With real pages,
 * which only root can have the kernel keep.
 */
#include "huge_rig.h"

#include "warm_rig.h"

enum { PAGES = 12 };

static struct ps_pager_ops noting_pager;
static _Atomic uint32_t least_filled; /* bytes at once */
static struct perseas *waits; /* somebody does, for a byte of the third page; NULL: nobody */

static uint32_t note_fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes,
                          uint32_t length, bool watched)
{
	if (length < least_filled)
		least_filled = length;
	if (waits) {
		ps_demand_want(waits, &waits->segments[0], 2 * HUGE + HUGE / 2, 1);
		waits = NULL;
	}
	return ps_pager_uffd.fill(pager, to, bytes, length, watched);
}

static int setup(void **state)
{
	huge_begin(PAGES);
	noting_pager = ps_pager_uffd;
	noting_pager.fill = note_fill;
	least_filled = UINT32_MAX;
	return setup_warm_tcp(state);
}

static int teardown(void **state)
{
	const int rc = teardown_warm(state);

	huge_end();
	return rc;
}

#define HUGE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void what_was_left_is_taken(void **state)
{
	struct rig *rig = *state;
	const pid_t owner = start_process(rig, own);
	perseas_standby_t *s = begin_warm(rig, PERSEAS_RECOVERY_ON_DEMAND);

	RIG_UNTIL(is_warm(s));
	waits = s->p;
	waits->env->pager = &noting_pager;
	kill_process(owner);
	become_owner(rig, s);
	assert_int_equal(huge_page_at(rig->bytes), HUGE);
	assert_used(rig, true);
	assert_int_equal(rig->bytes[0], 42);
	assert_as_made(rig, 8);
	assert_int_equal(fetched(rig), 0);
	assert_int_equal(least_filled, HUGE);
	perseas_standby_close(s);
	assert_as_mirrors(rig);
}

/* One page of the first huge page did. */
static void a_huge_page_that_changed_since_comes_from_mirrors(void **state)
{
	struct rig *rig = *state;
	perseas_standby_t *s = become_owner_behind(rig);

	assert_int_equal(huge_page_at(rig->bytes), HUGE);
	assert_used(rig, true);
	assert_int_equal(rig->bytes[0], 42);
	assert_int_equal(rig->bytes[5000], 77);
	assert_int_equal(fetched(rig), HUGE);
	perseas_standby_close(s);
	assert_as_mirrors(rig);
}

static void an_owner_that_is_killed_at_work_is_followed(void **state)
{
	struct rig *rig = *state;
	const pid_t owner = start_process(rig, own_busily);
	perseas_standby_t *s = begin_warm(rig, PERSEAS_RECOVERY_ON_DEMAND);

	RIG_UNTIL(stat_of(s).warm > SIZE / 2);
	kill_process(owner);
	become_owner(rig, s);
	assert_int_equal(huge_page_at(rig->bytes), HUGE);
	perseas_standby_close(s);
	assert_as_mirrors(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HUGE_TEST(what_was_left_is_taken),
		HUGE_TEST(a_huge_page_that_changed_since_comes_from_mirrors),
		HUGE_TEST(an_owner_that_is_killed_at_work_is_followed),
	};

	if (!huge_can_begin())
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
