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

struct unit_fixture unit_fixture = { setup, teardown };

TEST(what_was_left_is_taken, struct rig *rig)
{
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
TEST(a_huge_page_that_changed_since_comes_from_mirrors, struct rig *rig)
{
	perseas_standby_t *s = become_owner_behind(rig);

	assert_int_equal(huge_page_at(rig->bytes), HUGE);
	assert_used(rig, true);
	assert_int_equal(rig->bytes[0], 42);
	assert_int_equal(rig->bytes[5000], 77);
	assert_int_equal(fetched(rig), HUGE);
	perseas_standby_close(s);
	assert_as_mirrors(rig);
}

TEST(an_owner_that_is_killed_at_work_is_followed, struct rig *rig)
{
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
	return huge_can_begin() ? unit_run("tests") : 0;
}
