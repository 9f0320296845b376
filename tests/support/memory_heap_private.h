/*
 * memory_heap_private.h - pieces of heap memory, for memory_heap.c and memory_heap_faults.c.
 */
#ifndef PERSEAS_TESTS_MEMORY_HEAP_PRIVATE_H
#define PERSEAS_TESTS_MEMORY_HEAP_PRIVATE_H

#include "memory_heap.h"

#include "../../proto/image/layout.h"

struct heap_piece {
	struct heap_piece *next;
	char store[80];
	char name[80];
	uint8_t *base;
	uint64_t size;
	uint64_t beyond; /* bytes that an owner that has it took beyond that */
	unsigned open;
	bool removed;
	bool copied; /* somebody put it there, and no daemon wrote it since */
};

struct memory_heap {
	struct memory memory;
	struct heap_piece *pieces;
	enum memory_sharing whose; /* all of them are */
	uint64_t limit;
	uint64_t random;
	unsigned skip;
	unsigned fail;
	bool keep_removed;
	bool needs_room;
	bool trusts_any_boot;
	bool trusts_copies;
	uint8_t boot[PS_ID_SIZE];
	uint8_t identity[PS_ID_SIZE];
	int fd;
	void (*hook)(void *arg);
	void *hook_arg;
	void (*change)(void *arg);
	void *change_arg;
};

static inline struct memory_heap *heap_of(struct memory *memory)
{
	return (struct memory_heap *)memory;
}

#endif
