/*
 * hash.h - a hash table of keys and values of any length, in a heap of the store. It grows by one
 * bucket at a time, so that no transaction is long because of it. A program that wants one copies
 * hash.h and hash.c.
 *
 * Threads use it side by side, each with transactions of its own. The table has parts, and every
 * call locks that of its key (perseas_lock): so two threads meet only if they use the same part at
 * the same time. The one that is refused gets PERSEAS_ECONFLICT, and calls perseas_retry. The lock
 * is kept until the transaction is sent or aborted, and what was found stays as it is until then.
 *
 * Functions return 0, or 1 where they say so, or an error of the library. After an error the
 * transaction may have changed a part of what was asked for: take it back, by perseas_abort,
 * perseas_retry or perseas_rollback_to.
 *
 * Its objects have plain pointers to each other: the heap must be where it was made. In one that
 * was opened with PERSEAS_HEAP_MOVED every call would follow wild pointers. A transaction with
 * PERSEAS_TRACK may look, but gets PERSEAS_EINVAL where it would allocate or free: when it inserts,
 * removes, or puts a value of another size.
 */
#ifndef HASH_H
#define HASH_H

#include <perseas.h>

#include <stddef.h>
#include <stdint.h>

/* Types of its objects: change them if the program has others of these numbers. */
enum { HASH_TABLE = 0x4801, HASH_ARRAY, HASH_ENTRY };

struct hash_bytes {
	const void *at; /* may be NULL where size is 0 */
	size_t size;    /* less than 4 GiB */
};

/* What a process knows of a table. */
struct hash {
	perseas_heap_t *heap;
	struct hash_table *table; /* in the heap */
};

/* Finds the table that the root leads to, or makes it, in a transaction of its own. One thread
 * calls it, before others use the table. */
int hash_open(perseas_t *p, perseas_heap_t *heap, const char *root, struct hash *hash);

/* Adds a key with its value. 1: the key is there already, and stays as it is. */
int hash_insert(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key,
                struct hash_bytes value);

/* The same, but that a key that is there gets the new value. */
int hash_put(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key,
             struct hash_bytes value);

/* Finds the value of a key, which begins at a multiple of 8 and is not to be changed. 1: there is
 * no such key. */
int hash_get(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key,
             struct hash_bytes *value);

/* 1: there is no such key. */
int hash_remove(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key);

/* Calls the function for every key, in no order, until it returns something else than 0, which is
 * returned. It must not change the table. All parts are locked then, for readers. */
int hash_walk(perseas_tx_t *tx, const struct hash *hash,
              int (*each)(void *arg, struct hash_bytes key, struct hash_bytes value), void *arg);

/* How many keys there are. All parts are locked then, for readers. */
int hash_count(perseas_tx_t *tx, const struct hash *hash, uint64_t *count);

#endif
