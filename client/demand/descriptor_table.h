/*
 * descriptor_table.h - gives a thread a table of descriptors of its own, instead of the one that
 * all threads of the process share. Threads that it creates afterwards share the new table.
 */
#ifndef PERSEAS_CLIENT_DESCRIPTOR_TABLE_H
#define PERSEAS_CLIENT_DESCRIPTOR_TABLE_H

#include <stdbool.h>

/* Gives the calling thread a table with only these descriptors (0: none) and /dev/null at the
 * numbers of the standard streams. Sorts `kept`. Returns false with errno set if the kernel refuses
 * (close_range needs Linux 5.9); the thread may then still share the old table. */
bool ps_unshare_descriptor_table(int *kept, unsigned count);

#endif
