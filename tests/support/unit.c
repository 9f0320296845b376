/*
 * unit.c - the tests that a program of tests/unit begins with TEST(): collects them before main(),
 * and runs them in the order of the file.
 */
#include "unit.h"

#include <limits.h>

enum { TESTS_MAX = 100 };

static struct CMUnitTest tests[TESTS_MAX];
static int lines[TESTS_MAX];
static int count;

void **unit_state;

/* For programs that define none. They are not const, because clang would use a weak constant's
 * value. */
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

int unit_limit_time(void **state)
{
	(void)state;
	alarm(600);
	return 0;
}

int unit_in_child(int (*fn)(void *arg), void *arg)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(fn(arg));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

void unit_remove_folder(const char *path)
{
	char command[PATH_MAX + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	assert_int_equal(system(command), 0);
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
