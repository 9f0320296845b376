/*
 * spill_heap.h - spill.h in the heap, for tests: it can be copied (what a crash leaves),
 * spoiled, and fail on purpose. Every operation is whole or not done.
 */
#ifndef PERSEAS_TESTS_SPILL_HEAP_H
#define PERSEAS_TESTS_SPILL_HEAP_H

#include "../../server/store/spill.h"

#include <stdbool.h>

struct spill *spill_heap_new(void);
void spill_heap_free(struct spill *spill);

/* The spills that are whole, set aside ones included; nothing is being written. */
struct spill *spill_heap_copy(const struct spill *spill);

/* Returns the bytes of a store's spill, or NULL if it has none. */
uint8_t *spill_heap_bytes(struct spill *spill, const char *store, size_t *len);
/* Makes or replaces the store's spill. */
void spill_heap_put(struct spill *spill, const char *store, const uint8_t *bytes, size_t len);

/* Bytes that all spills together may have; at first there is room for any. */
void spill_heap_set_room(struct spill *spill, uint64_t room);
/* With `frozen`, spills can be neither removed nor renamed. */
void spill_heap_freeze(struct spill *spill, bool frozen);

/* From now on, the directory's path leads to another directory, until follow_path(). */
void spill_heap_move(struct spill *spill);

/* Called before each operation that changes something. */
void spill_heap_on_change(struct spill *spill, void (*hook)(void *arg), void *arg);

/* Return the number of spills under their names, and of spills that were set aside. */
unsigned spill_heap_count(const struct spill *spill);
unsigned spill_heap_aside(const struct spill *spill);

#endif
