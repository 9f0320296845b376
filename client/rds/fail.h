/*
 * fail.h - errors of this library: a code for programs, and a sentence for people, which
 * rds_message returns. It never prints.
 */
#ifndef PERSEAS_RDS_FAIL_H
#define PERSEAS_RDS_FAIL_H

#include "rds.h"

/* Keeps the sentence for the calling thread. Returns the code. */
__attribute__((format(printf, 2, 3))) int ps_rds_fail(int code, const char *format, ...);

/* The same for a code of RVM's, with RVM's sentence behind what was being done. */
int ps_rds_fail_rvm(rvm_return_t code, const char *doing);

/* Hands a code to the caller: 0, or -1 if it is none of success. */
static inline int ps_rds_tell(int code, int *err)
{
	if (err)
		*err = code;
	return code == SUCCESS ? 0 : -1;
}

#endif
