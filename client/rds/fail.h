/*
 * fail.h - errors of this library: a code for programs, and a sentence for people, which
 * rds_message returns. The library never prints.
 */
#ifndef PERSEAS_RDS_FAIL_H
#define PERSEAS_RDS_FAIL_H

#include "rds.h"

/* Sets the calling thread's message. Returns `code`. */
__attribute__((format(printf, 2, 3))) int ps_rds_fail(int code, const char *format, ...);

/* Sets the calling thread's message to `doing`, followed by RVM's message. Returns `code`. */
int ps_rds_fail_rvm(rvm_return_t code, const char *doing);

/* Stores `code` in *err, unless that is NULL. Returns 0 for SUCCESS, else -1. */
static inline int ps_rds_set_err(int code, int *err)
{
	if (err)
		*err = code;
	return code == SUCCESS ? 0 : -1;
}

#endif
