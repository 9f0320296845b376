/*
 * ends.h - how a process ends that does one thing and then exits: for tests of assertions.
 */
#ifndef PERSEAS_TESTS_ENDS_H
#define PERSEAS_TESTS_ENDS_H

#include "owner.h"

#include <sys/resource.h>

typedef void ends_step(struct owner *o);

/* The status of a child that takes the step. */
static inline int ends_with(struct owner *o, ends_step *step)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		signal(SIGSEGV, SIG_DFL);
		close(STDERR_FILENO);
		step(o);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* Checks that the step ends its process by an assertion. */
static inline void assert_ends(struct owner *o, ends_step *step)
{
	const int status = ends_with(o, step);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

#endif
