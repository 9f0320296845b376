/*
 * one_range.h - the synthetic workload: every transaction overwrites one range, of 8 bytes to
 * 1 MiB, at a random place of 50 MiB. On engines that keep rows it is a row, or a part of one.
 */
#ifndef PERSEAS_BENCH_ONE_RANGE_H
#define PERSEAS_BENCH_ONE_RANGE_H

#include "work.h"

/* "synthetic"; its size is the range's. */
extern const struct work synthetic_work;

/* "ranges": adds to numbers of 8 bytes at as many random places as its size says. */
extern const struct work ranges_work;

#endif
