/*
 * core_dump.h - keeps the memory of stores out of core dumps. A process that dumps core keeps its
 * connections and mappings until the dump is written, so a large dump would delay the takeover of
 * its store. Mirrors have the contents of the memory, so the dump need not.
 */
#ifndef PERSEAS_PROTO_CORE_DUMP_H
#define PERSEAS_PROTO_CORE_DUMP_H

#include <stddef.h>

/* Environment variable: "on" puts the memory of stores into core dumps. Read once. */
#define PS_CORE_DUMP_VARIABLE "PERSEAS_CORE_DUMP"

/* Excludes whole pages from core dumps, unless PERSEAS_CORE_DUMP is "on". Preserves errno. */
void ps_core_dump_omit(void *base, size_t size);

#endif
