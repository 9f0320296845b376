/*
 * core_dump.h - keeps the memory of stores out of core dumps. A process that dumps core keeps its
 * connections and its mappings until the dump is written: no other process can take its store over
 * before. What mirrors have need not be in the dump.
 */
#ifndef PERSEAS_PROTO_CORE_DUMP_H
#define PERSEAS_PROTO_CORE_DUMP_H

#include <stddef.h>

/* "on": core dumps have the memory of stores, too. Read once. */
#define PS_CORE_DUMP_VARIABLE "PERSEAS_CORE_DUMP"

/* Leaves these whole pages out of core dumps, unless the environment asks for them. */
void ps_core_dump_omit(void *base, size_t size);

#endif
