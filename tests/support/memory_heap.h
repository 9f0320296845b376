/*
 * memory_heap.h - server/store/memory.h in the heap, for tests and for the simulator: it can be
 * copied (a daemon that crashes, and what is left for the next one), lose what it holds (a
 * machine that crashes), and fail on purpose. A piece that is removed while it is open stays
 * until it is closed, as a file does. It keeps the contract of memory.h, clause by clause
 * (tests/unit/test_contract_memory.c).
 *
 * What files can do and this cannot: run out of descriptors, be cut short by an owner that has them
 * (`guard`), fail at a flush (`flush`) or become read-only (`usable`),
 * have names that leave the directory, and lie in a file system that is full: a limit stands for
 * that. What was set aside counts as used for ever here, there only until the next start.
 */
#ifndef PERSEAS_TESTS_MEMORY_HEAP_H
#define PERSEAS_TESTS_MEMORY_HEAP_H

#include "../../server/store/memory.h"

#include <stdbool.h>

/* limit in bytes, 0: none. seed: of its random ids. NULL: out of memory. */
struct memory *memory_heap_new(uint64_t limit, uint64_t seed);

/* Pieces that are still open are the caller's mistake: an assertion finds it. */
void memory_heap_free(struct memory *memory);

/* A memory with the same pieces and bytes, none of them open. */
struct memory *memory_heap_copy(const struct memory *memory);

/* Loses the pieces of one store, or of all (NULL). */
void memory_heap_lose(struct memory *memory, const char *store);

/* Opens an open piece once more, whether it has its name or not, as a process that is given it. */
void memory_heap_give(struct memory *memory, const struct piece *piece, struct piece *given);

/* Somebody gives the folder of a store this name, which begins with a dot, or its own again. */
void memory_heap_move(struct memory *memory, const char *store, const char *to);

/* Loses one piece. False: there is none. */
bool memory_heap_lose_piece(struct memory *memory, const char *store, const char *name);

/* The bytes of a piece as they lie there, open or not; NULL: there is none. */
uint8_t *memory_heap_piece(struct memory *memory, const char *store, const char *name,
                           uint64_t *size);

/* An owner that has the piece makes its file longer by so many bytes. False: there is none. */
bool memory_heap_take(struct memory *memory, const char *store, const char *name, uint64_t bytes);

void memory_heap_set_limit(struct memory *memory, uint64_t limit);

/* It keeps no room for what replaces a small piece, as it must (memory.h): a mistake. */
void memory_heap_need_room(struct memory *memory);

/* The host starts again: what is there was memory in another boot, unless it is written anew, and
 * the daemon gets another identity.
 * seed: of its random ids from now on. */
void memory_heap_reboot(struct memory *memory, uint64_t seed);
/* What is there was copied there, as a backup that is put back, unless it is written anew. The host
 * did not start again. */
void memory_heap_put_back(struct memory *memory, uint64_t seed);
/* It takes a copy for the memory that it was: a mistake. */
void memory_heap_trust_copies(struct memory *memory);
/* It gets the identity of the other memory's daemon, before a daemon of its own starts. */
void memory_heap_identify(struct memory *memory, const struct memory *as);
/* It takes an image of any boot for memory: a mistake. */
void memory_heap_trust_boots(struct memory *memory);

/* What shared memory is handed out as; it stays the caller's. At first -1: there is none. */
void memory_heap_set_descriptor(struct memory *memory, int fd);

/* What the kernel says of all pieces; at first MEMORY_UNKNOWN. */
void memory_heap_set_whose(struct memory *memory, enum memory_whose whose);

/* The next `skip` makes and replaces succeed, then `count` fail (make: NO_MEMORY, replace:
 * IO). */
void memory_heap_fail(struct memory *memory, unsigned skip, unsigned count);

/* Called at each fence: the instant after a promise, before the image is read. */
void memory_heap_on_fence(struct memory *memory, void (*hook)(void *arg), void *arg);

/* Called before each piece is made, replaced or removed. */
void memory_heap_on_change(struct memory *memory, void (*hook)(void *arg), void *arg);

/* Removed pieces stay readable and writable, as another process's mappings of them do; off:
 * those that are closed go. */
void memory_heap_keep_removed(struct memory *memory, bool keep);

/* Pieces that are there. */
unsigned memory_heap_pieces(const struct memory *memory);

#endif
