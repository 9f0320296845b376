/*
 * small_caches.h - runs a test program again, with a C library that was told of small caches: from
 * 20 KiB on it then copies around them.
 */
#ifndef PERSEAS_TESTS_SMALL_CACHES_H
#define PERSEAS_TESTS_SMALL_CACHES_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes glibc take caches for small when a program begins, so that it copies as for large blocks
 * from these sizes on. */
static const char small_caches[] = "glibc.cpu.x86_non_temporal_threshold=0x5000:"
				   "glibc.cpu.x86_rep_movsb_threshold=0x10000000";

static inline bool has_small_caches(void)
{
	const char *tunables = getenv("GLIBC_TUNABLES");

	return tunables && !strcmp(tunables, small_caches);
}

static inline int again_with_small_caches(char **argv)
{
	setenv("GLIBC_TUNABLES", small_caches, 1);
	return execv("/proc/self/exe", argv);
}

/* Runs `tests`, and `small` with such a library then; for main to return. With an argument, only
 * those run whose names it matches. */
#define run_also_with_small_caches(argv, tests, small)            \
	((argv)[1] ? cmocka_set_test_filter((argv)[1]) : (void)0, \
	 has_small_caches()                                       \
	         ? cmocka_run_group_tests(small, NULL, NULL)      \
	         : (cmocka_run_group_tests(tests, NULL, NULL) || again_with_small_caches(argv)))

#endif
