/*
 * rvm_run.h - how inputs of fuzz_rvm_table are written: runs of bytes, and zeros where there is
 * none. make_rvm.c and the target include it.
 */
#ifndef PERSEAS_TESTS_RVM_RUN_H
#define PERSEAS_TESTS_RVM_RUN_H

#include <stdint.h>

struct rvm_run {
	uint32_t at;  /* in the table, in bytes */
	uint32_t len; /* of what follows */
};

#endif
