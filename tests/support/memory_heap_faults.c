/*
 * memory_heap_faults.c - what a test lets happen to a memory in the heap: limits, failures, hooks,
 * and what the daemon is told of its files. memory_heap.c acts on it.
 */
#include "memory_heap_private.h"

#include <stdio.h>
#include <string.h>

void memory_heap_move(struct memory *memory, const char *store, const char *to)
{
	for (struct heap_piece *piece = heap_of(memory)->pieces; piece; piece = piece->next)
		if (!piece->removed && strcmp(piece->store, store) == 0)
			snprintf(piece->store, sizeof(piece->store), "%s", to);
}

void memory_heap_set_limit(struct memory *memory, uint64_t bytes)
{
	heap_of(memory)->limit = bytes;
}

void memory_heap_need_room(struct memory *memory)
{
	heap_of(memory)->needs_room = true;
}

void memory_heap_put_back(struct memory *memory, uint64_t seed)
{
	heap_of(memory)->random = seed;
	for (struct heap_piece *piece = heap_of(memory)->pieces; piece; piece = piece->next)
		piece->copied = true;
}

void memory_heap_trust_copies(struct memory *memory)
{
	heap_of(memory)->trusts_copies = true;
}

void memory_heap_identify(struct memory *memory, const struct memory *as)
{
	memcpy(heap_of(memory)->identity, ((const struct memory_heap *)as)->identity, PS_ID_SIZE);
}

void memory_heap_trust_boots(struct memory *memory)
{
	heap_of(memory)->trusts_any_boot = true;
}

void memory_heap_set_descriptor(struct memory *memory, int fd)
{
	heap_of(memory)->fd = fd;
}

void memory_heap_set_whose(struct memory *memory, enum memory_sharing whose)
{
	heap_of(memory)->whose = whose;
}

void memory_heap_fail(struct memory *memory, unsigned skip, unsigned count)
{
	heap_of(memory)->skip = skip;
	heap_of(memory)->fail = count;
}

void memory_heap_on_fence(struct memory *memory, void (*hook)(void *arg), void *arg)
{
	heap_of(memory)->hook = hook;
	heap_of(memory)->hook_arg = arg;
}

void memory_heap_on_change(struct memory *memory, void (*hook)(void *arg), void *arg)
{
	heap_of(memory)->change = hook;
	heap_of(memory)->change_arg = arg;
}

unsigned memory_heap_pieces(const struct memory *memory)
{
	unsigned count = 0;

	for (const struct heap_piece *piece = ((const struct memory_heap *)memory)->pieces; piece;
	     piece = piece->next)
		count += !piece->removed;
	return count;
}
