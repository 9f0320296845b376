/*
 * unit.c - the main() of programs of tests/unit that begin their tests with TEST(): it runs all of
 * them, in the order of the file. Linked from the archive by programs that have no main().
 */
#include "unit.h"

enum { TESTS_MAX = 100 };

static struct CMUnitTest tests[TESTS_MAX];
static int lines[TESTS_MAX];
static int count;

void **unit_state;

/* For programs that define none. */
__attribute__((weak)) const struct unit_fixture unit_fixture = { NULL, NULL };
__attribute__((weak)) const struct unit_fixture unit_fixture_too = { NULL, NULL };
__attribute__((weak)) const struct unit_fixture unit_group = { NULL, NULL };

static void add(const struct CMUnitTest *test, int line)
{
	int at = count++;

	assert_true(count <= TESTS_MAX);
	for (; at && lines[at - 1] > line; at--) {
		tests[at] = tests[at - 1];
		lines[at] = lines[at - 1];
	}
	tests[at] = *test;
	lines[at] = line;
}

/* Compilers choose the order in which constructors run: the line says where the test belongs. */
void unit_add(struct CMUnitTest test, int line)
{
	add(&test, line);
	if (test.setup_func && test.setup_func == unit_fixture.setup && unit_fixture_too.setup) {
		test.setup_func = unit_fixture_too.setup;
		test.teardown_func = unit_fixture_too.teardown;
		add(&test, line);
	}
}

void *unit_begin_again(void)
{
	assert_int_equal(unit_fixture.teardown(unit_state), 0);
	assert_int_equal(unit_fixture.setup(unit_state), 0);
	return *unit_state;
}

int main(void)
{
	assert_true(count > 0);
	return cmocka_run_group_tests(tests, unit_group.setup, unit_group.teardown);
}
