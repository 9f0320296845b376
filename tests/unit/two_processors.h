/*
 * two_processors.h - threads and processes that run on two processors at once, for tests of the
 * order in which these see each other's stores. Where there is one only, such a test is skipped.
 */
#ifndef PERSEAS_TESTS_TWO_PROCESSORS_H
#define PERSEAS_TESTS_TWO_PROCESSORS_H

#include <sched.h>
#include <stdbool.h>

/* Two that the caller may run on. */
static inline bool find_two(int processors[2])
{
	unsigned found = 0;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return false;
	for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			processors[found++] = cpu;
	return found == 2;
}

/* The calling thread runs there only. */
static inline void stay_on(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

#endif
