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

/* Returns a memory with the same pieces and bytes, all closed. */
struct memory *memory_heap_copy(const struct memory *memory);

/* Loses the pieces of one store, or of all (NULL). */
void memory_heap_lose(struct memory *memory, const char *store);

/* Opens an open piece once more, whether it has its name or not, as a process that is given it. */
void memory_heap_give(struct memory *memory, const struct piece *piece, struct piece *given);

/* Somebody gives the folder of a store this name, which begins with a dot, or its own again. */
void memory_heap_move(struct memory *memory, const char *store, const char *to);

/* Loses one piece. Returns false if it does not exist. */
bool memory_heap_lose_piece(struct memory *memory, const char *store, const char *name);

/* Returns the bytes of a piece, open or not, or NULL if it does not exist. */
uint8_t *memory_heap_piece(struct memory *memory, const char *store, const char *name,
                           uint64_t *size);

/* Lengthens the piece's file, as an owner that has it open could. Returns false if it does not
 * exist. */
bool memory_heap_take(struct memory *memory, const char *store, const char *name, uint64_t bytes);

void memory_heap_set_limit(struct memory *memory, uint64_t limit);

/* The mistake: the memory reserves no room for the replacement of a small piece, as memory.h
 * asks. */
void memory_heap_need_room(struct memory *memory);

/* Restarts the host: the pieces belong to another boot until they are written anew, and the daemon
 * gets another identity. `seed` starts its random ids. */
void memory_heap_reboot(struct memory *memory, uint64_t seed);
/* Makes the pieces copies, such as a backup that is put back within the same boot, until they are
 * written anew. */
void memory_heap_put_back(struct memory *memory, uint64_t seed);
/* The mistake: the memory takes copied pieces for the original ones. */
void memory_heap_trust_copies(struct memory *memory);
/* Gives the memory the identity of another memory's daemon, before its own daemon starts. */
void memory_heap_identify(struct memory *memory, const struct memory *as);
/* The mistake: the memory accepts images of any boot. */
void memory_heap_trust_boots(struct memory *memory);

/* Sets the descriptor as which shared memory is handed out; the caller keeps it. -1, the default:
 * none. */
void memory_heap_set_descriptor(struct memory *memory, int fd);

/* Sets what the kernel says about all pieces; MEMORY_SHARING_UNKNOWN by default. */
void memory_heap_set_whose(struct memory *memory, enum memory_sharing whose);

/* The next `skip` makes and replaces succeed, then `count` fail (make: NO_MEMORY, replace:
 * IO). */
void memory_heap_fail(struct memory *memory, unsigned skip, unsigned count);

/* Called at each fence: the instant after a promise, before the image is read. */
void memory_heap_on_fence(struct memory *memory, void (*hook)(void *arg), void *arg);

/* Called before each piece is made, replaced or removed. */
void memory_heap_on_change(struct memory *memory, void (*hook)(void *arg), void *arg);

/* With `keep`, removed pieces stay readable and writable, as another process's mappings of them do.
 * Without it, removed pieces that are closed go. */
void memory_heap_keep_removed(struct memory *memory, bool keep);

/* Pieces that are there. */
unsigned memory_heap_pieces(const struct memory *memory);

#endif
