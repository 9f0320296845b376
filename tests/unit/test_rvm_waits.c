/*
 * test_rvm_waits.c - the table of a new log is published while the store is opened for RVM: mirrors
 * that get no turn meanwhile are waited for as long as perseas_open waits, and not as a commit is.
 */
#include "owner.h"

#include "../../client/rvm/table.h"

struct unit_fixture unit_fixture = { owner_setup_one, owner_teardown };

/* Seconds for which the mirror completes nothing. */
static uint64_t busy_s;

/* Whose keeper runs in wake_mirror. */
static perseas_t *waiting;

static void hold(struct owner *o, enum direct_hold what)
{
	o->d->mirrors[0].hold = what;
	if (!what)
		direct_release(o->d, 0, UINT32_MAX);
}

/* Called in every pause: the mirror gets its turn when its time has come. */
static void give_turn(void *arg)
{
	struct owner *o = arg;

	if (o->d->now >= busy_s * 1000000000)
		hold(o, DIRECT_HOLD_NOTHING);
}

static int open_table(struct owner *o, uint64_t seconds)
{
	struct ps_rvm_table *table;
	const char *fault;
	int rc;

	busy_s = o->d->now / 1000000000 + seconds;
	hold(o, DIRECT_HOLD_COMPLETIONS);
	o->d->on_pause = give_turn;
	o->d->on_pause_arg = o;
	rc = ps_rvm_table_open(o->p, &table, &fault);
	o->d->on_pause = NULL;
	hold(o, DIRECT_HOLD_NOTHING);
	assert_null(fault);
	if (!rc)
		assert_null(ps_rvm_table_fault(table));
	return rc;
}

TEST(a_busy_mirror_is_waited_for_as_by_an_open, struct owner *o)
{
	assert_int_equal(open_table(o, 9), 0);
}

/* The keeper runs while a call waits for mirrors. The mirror goes on then. */
static void wake_mirror(struct direct *d)
{
	if (d->mirrors[0].hung)
		direct_unhang(d, 0);
	direct_keep_after(d, waiting, 1000000);
}

/* Its session ends before the table has a segment there: it is taken up again, and asked once
 * more. */
TEST(a_mirror_that_answers_late_is_asked_again, struct owner *o)
{
	struct ps_rvm_table *table;
	const char *fault;

	waiting = o->p;
	o->d->on_wait = wake_mirror;
	direct_hang(o->d, 0);
	assert_int_equal(ps_rvm_table_open(o->p, &table, &fault), 0);
	assert_null(ps_rvm_table_fault(table));
}

TEST(a_mirror_that_gets_no_turn_at_all_is_given_up, struct owner *o)
{
	assert_int_equal(open_table(o, 60), PERSEAS_EINDOUBT);
	/* The commit is durable once the mirror has a turn. */
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(open_table(o, 0), 0);
}
