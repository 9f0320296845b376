/*
 * memory_limit.h - explains ENOMEM: names the limit for which the kernel probably refused memory to
 * this process. Functions whose mmap() failed call it. It changes nothing.
 */
#ifndef PERSEAS_PROTO_MEMORY_LIMIT_H
#define PERSEAS_PROTO_MEMORY_LIMIT_H

#include <stdint.h>

enum { PS_MEMORY_LIMIT_TEXT = 160 };

/* The kernel's limits on the memory that a process may map. */
struct ps_memory_limits {
	uint64_t space;  /* ulimit -v in bytes; UINT64_MAX: unlimited */
	uint64_t data;   /* ulimit -d in bytes; UINT64_MAX: unlimited */
	char overcommit; /* vm.overcommit_memory: '0', '1' or '2'; any other character: unknown */
};

struct ps_memory_limits ps_memory_limits(void);

/* Writes which limit to raise, as the last clause of a sentence. Returns text. */
const char *ps_memory_limit_text(const struct ps_memory_limits *limits,
                                 char text[PS_MEMORY_LIMIT_TEXT]);

#endif
