/*
 * unit.h - TEST(), which begins a test of a program of tests/unit. The main() of unit_main.c runs
 * all tests of the program in the order of the file; a program that runs them twice, or on a
 * condition, has its own, which calls unit_run(). Included here are cmocka.h with what it needs,
 * and headers of the system that many tests need.
 *
 * A program that runs its tests in groups has a main() with a list of them, and no TEST().
 */
#ifndef PERSEAS_TESTS_UNIT_H
#define PERSEAS_TESTS_UNIT_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Two functions to call before and after something; either may be NULL. */
struct unit_fixture {
	CMFixtureFunction setup, teardown;
};

/* unit_fixture runs around each TEST(), unit_group once around all of them. If a program defines
 * unit_fixture_too, each TEST() runs a second time with it. A program defines only the fixtures
 * that it needs. */
extern struct unit_fixture unit_fixture, unit_fixture_too, unit_group;

/*
 * Begins a test: TEST(name) { ... }, or TEST(name, struct owner *o) { ... } for one that uses what
 * its setup left in *state.
 */
#define TEST(name, ...) TEST_WITH(name, unit_fixture.setup, unit_fixture.teardown, ##__VA_ARGS__)

/* Begins a test with a setup and a teardown of its own, or NULL. */
#define TEST_WITH(name, setup, teardown, ...)                              \
	static void name(UNIT_SECOND(none, ##__VA_ARGS__, void *unused));  \
	static void unit_run_##name(void **state)                          \
	{                                                                  \
		unit_state = state;                                        \
		name(*state);                                              \
	}                                                                  \
	UNIT_ADD(unit_add_##name, #name, unit_run_##name, setup, teardown) \
	static void name(UNIT_SECOND(none, ##__VA_ARGS__, __attribute__((unused)) void *unused))
#define UNIT_SECOND(first, second, ...) second

/* The state of the test that runs, for one that replaces what its teardown will find there. */
extern void **unit_state;

/* Ends a program that hangs, 10 minutes from now, by SIGALRM. May be the setup of a group. */
int unit_limit_time(void **state);

/* Returns what `fn` returns, at most 255, in a child process that runs it and ends. */
int unit_in_child(int (*fn)(void *arg), void *arg);

/* Removes a folder with all that is in it. */
void unit_remove_folder(const char *path);

/* Runs the program's teardown and setup within a test. Returns what the setup left. */
void *unit_begin_again(void);

/* Runs a test that stands above once more, with another setup. */
#define TEST_ALSO(name, setup, teardown)                                                        \
	UNIT_ADD(unit_add_##name##_##setup, #name " " #setup, unit_run_##name, setup, teardown) \
	_Static_assert(1, "")

/* Adds a test to the program's list before main() begins. */
#define UNIT_ADD(adder, title, test, setup, teardown)                                          \
	__attribute__((constructor)) static void adder(void)                                   \
	{                                                                                      \
		unit_add((struct CMUnitTest){ title, test, setup, teardown, NULL }, __LINE__); \
	}

/* Adds a test that begins at `line` of the program's file. */
void unit_add(struct CMUnitTest test, int line);

/* Returns the number that follows *state, which is not 0: the same numbers in every run. */
uint64_t unit_draw(uint64_t *state);

/* Runs all tests, as a group of that name. Returns how many failed. */
int unit_run(const char *name);

#endif
