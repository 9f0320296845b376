/*
 * test_standby_named.c - a standby inside a process that has a name: mirrors tell of it, and a
 * store can be handed over to it.
 */
#include "standby_rig.h"

#include "../../client/open/open.h"

struct unit_fixture unit_fixture = { setup_tcp, teardown_standby };

static perseas_standby_t *begin_named(struct rig *rig, const char *name, uint32_t order)
{
	struct perseas_options options = standby_options();

	options.name = name;
	options.order = order;
	return begin_with(STORE, rig->list, &options);
}

/* The named standby would come last by its order. Its owner is recognized by the mark that all
 * owners of this standby have. */
TEST(a_store_is_handed_over_to_a_named_one, struct rig *rig)
{
	struct asker asker;
	perseas_standby_t *s;
	uint8_t mark[PS_OWNER_MARK];

	asker_begin(&asker, rig);
	s = begin_named(rig, "beta", PS_ORDER_MAX);
	for (unsigned i = 0; i < 2; i++) {
		start_owner(rig, own);
		wait_in_vain(rig, s, SHORT_MS);
		RIG_UNTIL(is_told_of(&asker, "beta"));
		assert_int_equal(asker.order, PS_ORDER_MAX);
		if (i > 0)
			assert_memory_equal(asker.mark, mark, PS_OWNER_MARK);
		memcpy(mark, asker.mark, PS_OWNER_MARK);
		move_to(&asker, "beta");
		kill_owner();
		/* By its order it would wait for 25 s. */
		assert_int_equal(perseas_standby_wait(s, (PS_ORDER_MAX - 4) * PS_TURN_STEP_MS,
		                                      &rig->p),
		                 0);
		assert_memory_equal(rig->p->owner, mark, PS_OWNER_MARK);
		RIG_UNTIL(is_told_of(&asker, NULL));
		end_owner(rig);
	}
	close_standby();
	s = begin_named(rig, "gamma", 0);
	RIG_UNTIL(is_told_of(&asker, "gamma"));
	assert_memory_not_equal(asker.mark, mark, PS_OWNER_MARK);
	close_standby();
	asker_end(&asker);
}
TEST_ALSO(a_store_is_handed_over_to_a_named_one, setup_shared, teardown_standby);

/* Others hold back for it as long as mirrors tell of it. */
TEST(mirrors_tell_of_it_until_it_has_opened_the_store, struct rig *rig)
{
	struct perseas *p;
	struct asker asker;
	struct ps_error error;
	perseas_standby_t *s = begin_named(rig, "beta", 0);

	asker_begin(&asker, rig);
	RIG_UNTIL(is_told_of(&asker, "beta"));
	await_handed(s);
	p = ps_standby_thread_take(s);
	for (unsigned i = 0; i < 3; i++)
		assert_true(is_told_of(&asker, "beta"));
	assert_int_equal(ps_open_handle(p, &rig->p, &error), 0);
	assert_true(is_told_of(&asker, "beta"));
	ps_standby_thread_end_watches(s);
	RIG_UNTIL(is_told_of(&asker, NULL));
	asker_end(&asker);
}

/* perseas run has told the mirrors by which mark its COMMAND's owners are known. */
TEST(what_perseas_run_started_keeps_its_mark, struct rig *rig)
{
	static const uint8_t mark[PS_OWNER_MARK] = { 7 };
	struct asker asker;
	perseas_standby_t *s;

	setenv(PS_INHERITED_VARIABLE, "mark 07000000\n", 1);
	s = begin_named(rig, "beta", 0);
	unsetenv(PS_INHERITED_VARIABLE);
	asker_begin(&asker, rig);
	RIG_UNTIL(is_told_of(&asker, "beta"));
	assert_memory_equal(asker.mark, mark, PS_OWNER_MARK);
	become_owner(rig, s);
	assert_memory_equal(rig->p->owner, mark, PS_OWNER_MARK);
	asker_end(&asker);
}

TEST(names_that_no_message_takes_are_refused, struct rig *rig)
{
	static const char *const names[] = { "", ".beta", "a b", "b/c" };
	struct perseas_options options = standby_options();
	perseas_standby_t *s;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		options.name = names[i];
		assert_int_equal(perseas_standby(STORE, rig->list, &options, &s), PERSEAS_EINVAL);
		assert_null(s);
		assert_non_null(strstr(perseas_message(NULL), "cannot name a standby"));
	}
	options.name = "beta";
	options.order = PS_ORDER_MAX + 1;
	assert_int_equal(perseas_standby(STORE, rig->list, &options, &s), PERSEAS_EINVAL);
	assert_non_null(strstr(perseas_message(NULL), "100 at most"));
}
