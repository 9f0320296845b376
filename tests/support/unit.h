/*
 * unit.h - TEST(), which begins a test of a program of tests/unit; unit.c has the main() that runs
 * all tests of the program in the order of the file. What cmocka.h needs is included here.
 *
 * A program that runs its tests in some other way (several times, in groups, by a word of its
 * command line) has a main() of its own with a list of them, and no TEST().
 */
#ifndef PERSEAS_TESTS_UNIT_H
#define PERSEAS_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Two functions to call before and after something; either may be NULL. */
struct unit_fixture {
	CMFixtureFunction setup, teardown;
};

/* What a program calls for each TEST(), and what it calls once for all of them. A program defines
 * those that it needs. */
extern const struct unit_fixture unit_fixture, unit_group;

/* Begins a test, as in TEST(name) { ... }. The test finds in *state what its setup left there. */
#define TEST(name) TEST_WITH(name, unit_fixture.setup, unit_fixture.teardown)

/* Begins a test with a setup and a teardown of its own, or NULL. */
#define TEST_WITH(name, setup, teardown)                        \
	static void name(void **state);                         \
	UNIT_ADD(unit_add_##name, #name, name, setup, teardown) \
	static void name(__attribute__((unused)) void **state)

/* Runs a test that stands above once more, with another setup. */
#define TEST_ALSO(name, setup, teardown)                                             \
	UNIT_ADD(unit_add_##name##_##setup, #name " " #setup, name, setup, teardown) \
	_Static_assert(1, "")

/* Adds a test to those that main() runs, before it does. */
#define UNIT_ADD(adder, title, test, setup, teardown)                                          \
	__attribute__((constructor)) static void adder(void)                                   \
	{                                                                                      \
		unit_add((struct CMUnitTest){ title, test, setup, teardown, NULL }, __LINE__); \
	}

/* Adds a test, which begins in a line of the program's file, to those that main() runs. */
void unit_add(struct CMUnitTest test, int line);

#endif
