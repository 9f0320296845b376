/*
 * own_table.h - a thread parts with the table of descriptors that it shares with all others. The
 * fault lane's does (pager_uffd.c); those that it begins then share its own.
 */
#ifndef PERSEAS_CLIENT_OWN_TABLE_H
#define PERSEAS_CLIENT_OWN_TABLE_H

#include <stdbool.h>

/* The calling thread gets a table of its own, which has nothing but these descriptors (which are
 * sorted, and may be 0 where there is none) and something at the numbers of the standard streams.
 * False, with errno set: the kernel refused (close_range, Linux 5.9), and all may be as it was. */
bool ps_own_table(int *kept, unsigned count);

#endif
