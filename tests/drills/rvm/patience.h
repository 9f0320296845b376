/*
 * patience.h - calls of RVM that are repeated until mirrors answer, for the programs in this
 * folder. RVM's calls wait for 5 s, and mirrors on a busy machine may take longer. It must not
 * include any header of the product except rvm.h.
 */
#ifndef PERSEAS_TESTS_PATIENCE_H
#define PERSEAS_TESTS_PATIENCE_H

#include <rvm.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program if the code is one of an error; other threads may be running. */
static inline void check(rvm_return_t code, const char *what)
{
	if (code == RVM_SUCCESS)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, rvm_return(code), rvm_message());
	_Exit(1);
}

static inline void wait_for_mirrors(void)
{
	rvm_return_t code;

	do
		code = rvm_flush();
	while (code == RVM_EIO && errno == ETIMEDOUT);
	check(code, "flush");
}

/* Returns true if a call was refused because an earlier commit was in doubt. That commit is durable
 * now: make the call again. */
static inline bool was_refused(rvm_return_t code)
{
	if (code != RVM_EIO || errno != EAGAIN)
		return false;
	wait_for_mirrors();
	return true;
}

static inline void begin_transaction(rvm_tid_t *tid)
{
	rvm_return_t code;

	do
		code = rvm_begin_transaction(tid, restore);
	while (was_refused(code));
	check(code, "begin");
}

static inline void end_transaction(rvm_tid_t *tid, rvm_mode_t mode)
{
	rvm_return_t code;

	do
		code = rvm_end_transaction(tid, mode);
	while (was_refused(code));
	if (code == RVM_EIO && errno == ETIMEDOUT)
		wait_for_mirrors();
	else
		check(code, "end");
}

static inline void truncate_log(void)
{
	rvm_return_t code;

	do
		code = rvm_truncate();
	while (code == RVM_EIO && errno == ETIMEDOUT);
	check(code, "truncate");
}

#endif
