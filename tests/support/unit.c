/*
 * unit.c - the tests that a program of tests/unit begins with TEST(): collects them before main(),
 * and runs them in the order of the file.
 */
#include "unit.h"

enum { TESTS_MAX = 100 };

static struct CMUnitTest tests[TESTS_MAX];
static int lines[TESTS_MAX];
static int count;

void **unit_state;

/* For programs that define none. They are not const: clang takes the value of a weak constant to be
 * the one that it sees. */
__attribute__((weak)) struct unit_fixture unit_fixture = { NULL, NULL };
__attribute__((weak)) struct unit_fixture unit_fixture_too = { NULL, NULL };
__attribute__((weak)) struct unit_fixture unit_group = { NULL, NULL };

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
		char *name;

		assert_true(asprintf(&name, "%s with the second fixture", test.name) > 0);
		test.name = name;
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

int unit_run(const char *name)
{
	assert_true(count > 0);
	return cmocka_run_group_tests_name(name, tests, unit_group.setup, unit_group.teardown);
}

uint64_t unit_draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
