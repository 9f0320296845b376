/*
 * target.h - what every fuzz target includes.
 */
#ifndef PERSEAS_TESTS_FUZZ_TARGET_H
#define PERSEAS_TESTS_FUZZ_TARGET_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs the target on one input; libFuzzer and replay.c call it. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process unless what a target found holds: also where assertions are off. */
static inline void require(bool holds)
{
	if (!holds)
		abort();
}

#endif
