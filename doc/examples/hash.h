/*
 * hash.h - a hash table of keys and values of any length, in a heap of the store. It grows by one
 * bucket at a time, so that growing makes no transaction long. To use it, copy hash.h and hash.c
 * into your program.
 *
 * Several threads may use it at once, each with its own transaction. The table has parts, and every
 * call locks the part of its key (perseas_lock), so that two threads conflict only if they use the
 * same part at the same time. A refused thread gets PERSEAS_ECONFLICT, and calls perseas_retry. The
 * lock is held until the transaction is sent or aborted; a value that was found does not change
 * until then.
 *
 * Functions return 0, or 1 where they say so, or an error of the library. After an error the change
 * may be half made: undo it by perseas_abort, perseas_retry or perseas_rollback_to.
 *
 * Its objects have plain pointers to each other, so the heap must be mapped at its recorded
 * address. With PERSEAS_HEAP_MOVED every call would follow wild pointers. A transaction with
 * PERSEAS_TRACK may search, but gets PERSEAS_EINVAL if it would allocate or free: when it inserts,
 * removes, or puts a value of another size.
 */
#ifndef HASH_H
#define HASH_H

#include <perseas.h>

#include <stddef.h>
#include <stdint.h>

/* Types of its objects. Change them if your program uses these numbers. */
enum { HASH_TABLE = 0x4801, HASH_ARRAY, HASH_ENTRY };

struct hash_bytes {
	const void *at; /* may be NULL if size is 0 */
	size_t size;    /* less than 4 GiB */
};

/* A table that is open in this process. */
struct hash {
	perseas_heap_t *heap;
	struct hash_table *table; /* in the heap */
};

/* Finds the table that the root leads to, or makes it, in a transaction of its own. Call it in one
 * thread, before others use the table. */
int hash_open(perseas_t *p, perseas_heap_t *heap, const char *root, struct hash *hash);

/* Adds a key with its value. Returns 1 if the key exists, and leaves it unchanged. */
int hash_insert(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key,
                struct hash_bytes value);

/* Adds a key with its value, or gives an existing key the new value. */
int hash_put(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key,
             struct hash_bytes value);

/* Finds the value of a key, which begins at a multiple of 8; do not change it. Returns 1 if there
 * is no such key. */
int hash_get(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key,
             struct hash_bytes *value);

/* Removes a key. Returns 1 if there is no such key. */
int hash_remove(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key);

/* Calls the function for every key, in no particular order, until it returns anything but 0, and
 * returns that. The function must not change the table. Locks all parts for reading. */
int hash_walk(perseas_tx_t *tx, const struct hash *hash,
              int (*each)(void *arg, struct hash_bytes key, struct hash_bytes value), void *arg);

/* Counts the keys. Locks all parts for reading. */
int hash_count(perseas_tx_t *tx, const struct hash *hash, uint64_t *count);

#endif
