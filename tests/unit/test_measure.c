/*
 * test_measure.c - rounds of the benchmarks: who runs when, who failed, what comes out.
 */
#include "../support/unit.h"

#include "../../bench/measure.h"

enum { STEPS = 4, BROKEN = -7 };

/* Steps write down whose they are. */
struct stepper {
	char letter;
	unsigned left; /* steps until one fails; 0: none does */
};

static char steps[128];
static size_t done;

static int step(void *ctx)
{
	struct stepper *stepper = ctx;

	if (stepper->left && !--stepper->left)
		return BROKEN;
	assert_true(done < sizeof(steps) - 1);
	steps[done++] = stepper->letter;
	steps[done] = 0;
	return 0;
}

/* Without any time a round is STEPS steps, all before the clock is looked at. */
static const struct measured *run(struct stepper *steppers, struct measured **m, uint64_t rounds)
{
	done = 0;
	for (unsigned i = 0; i < 2; i++)
		m[i] = measured_new(i ? "second" : "first", step, &steppers[i]);
	return measure_in_turn(m, 2, &(struct measure_plan){ .rounds = rounds, .steps = STEPS });
}

TEST(rounds_take_turns)
{
	struct stepper steppers[] = { { 'a', 0 }, { 'b', 0 } };
	struct measured *m[2];

	assert_null(run(steppers, m, 2));
	assert_string_equal(steps, "aaaabbbbaaaabbbb");
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(m[i]->rounds, 2);
	measured_free_all(m, 2);
}

/* The second fails in its second round: nothing runs after that, and its code is told. */
TEST(one_that_fails_ends_it)
{
	struct stepper steppers[] = { { 'a', 0 }, { 'b', STEPS + 2 } };
	struct measured *m[2];
	const struct measured *failed = run(steppers, m, 3);

	assert_ptr_equal(failed, m[1]);
	assert_int_equal(m[1]->code, BROKEN);
	assert_int_equal(m[0]->code, 0);
	assert_string_equal(steps, "aaaabbbbaaaab");
	assert_int_equal(m[1]->rounds, 1);
	measured_free_all(m, 2);
}

/* The second step of a round sets one of its rates; the other rates are steady. */
struct scripted {
	struct measured *m;
	const double *rates;
	bool busy;
	unsigned steps;
};

static int step_scripted(void *ctx)
{
	struct scripted *s = ctx;

	if (s->steps++ % 2) {
		s->m->rates[s->m->rounds] = s->rates[s->busy ? 0 : s->m->rounds];
		s->m->busy_rates[s->m->rounds] = s->rates[s->busy ? s->m->rounds : 0];
	}
	return 0;
}

/* Returns how many of six rounds are run for two series with these rates, when they may differ by
 * `spread`. */
static unsigned rounds_run_by(bool busy, const double *first, const double *second, double spread)
{
	const struct measure_plan plan = {
		.rounds = 6, .seconds = 3600, .steps = 1, .spread = spread, .busy = busy
	};
	struct scripted scripts[] = { { .rates = first, .busy = busy },
		                      { .rates = second, .busy = busy } };
	struct measured *m[2];
	unsigned rounds;

	for (unsigned i = 0; i < 2; i++)
		scripts[i].m = m[i] = measured_new("scripted", step_scripted, &scripts[i]);
	assert_null(measure_in_turn(m, 2, &plan));
	rounds = m[0]->rounds;
	assert_int_equal(m[1]->rounds, rounds);
	measured_free_all(m, 2);
	return rounds;
}

/* Returns how many rounds are run, whether rates at rest or under load count; the other ones are
 * steady. */
static unsigned rounds_run(const double *first, const double *second, double spread)
{
	const unsigned rounds = rounds_run_by(false, first, second, spread);

	assert_int_equal(rounds_run_by(true, first, second, spread), rounds);
	return rounds;
}

/* Steady ones need three rounds. Where one round was disturbed a fourth makes up for it, and where
 * two were, all are run; so they are where nobody says how much they may differ. */
TEST(fewer_rounds_do_once_rates_settle)
{
	const double steady[] = { 100, 104, 102, 100, 103, 101 };
	const double once[] = { 100, 300, 102, 100, 103, 101 };
	const double twice[] = { 100, 300, 10, 400, 20, 500 };

	assert_int_equal(rounds_run(steady, steady, 0.04), 3);
	assert_int_equal(rounds_run(steady, steady, 0.03), 4);
	assert_int_equal(rounds_run(steady, once, 0.04), 4);
	assert_int_equal(rounds_run(once, steady, 0.04), 4);
	assert_int_equal(rounds_run(steady, twice, 0.04), 6);
	assert_int_equal(rounds_run(steady, steady, 0), 6);
}

/* The one in the middle, or half way between two. */
TEST(the_median_is_of_the_middle)
{
	double odd[] = { 5, 1, 4 }, even[] = { 8, 1, 2, 6 };
	struct measured_ratio found = measured_summary(odd, 3);

	assert_true(found.median == 4 && found.least == 1 && found.most == 5);
	found = measured_summary(even, 4);
	assert_true(found.median == 4 && found.least == 1 && found.most == 8);
	found = measured_summary(even, 0);
	assert_true(found.median == 0 && found.least == 0 && found.most == 0);
}
