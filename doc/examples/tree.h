/*
 * tree.h - an ordered map of keys and values of any length, in a heap of the store: keys are in the
 * order of their bytes. A program that wants one copies tree.h and tree.c.
 *
 * Threads may use it, each with transactions of its own: those that change it do so one after
 * another, those that only read side by side. Every call locks the whole map (perseas_lock) until
 * the transaction is sent or aborted: what was found stays as it is until then. A transaction that
 * is refused the lock gets PERSEAS_ECONFLICT, and calls perseas_retry.
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
#ifndef TREE_H
#define TREE_H

#include <perseas.h>

#include <stddef.h>
#include <stdint.h>

/* Types of its objects: change them if the program has others of these numbers. */
enum { TREE_TOP = 0x5401, TREE_NODE };

struct tree_bytes {
	const void *at; /* may be NULL where size is 0 */
	size_t size;    /* less than 4 GiB */
};

/* What a process knows of a map. */
struct tree {
	perseas_heap_t *heap;
	struct tree_top *top; /* in the heap */
};

/* Finds the map that the root leads to, or makes it, in a transaction of its own. One thread calls
 * it, before others use the map. */
int tree_open(perseas_t *p, perseas_heap_t *heap, const char *root, struct tree *tree);

/* Adds a key with its value. 1: the key is there already, and stays as it is. */
int tree_insert(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key,
                struct tree_bytes value);

/* The same, but that a key that is there gets the new value. */
int tree_put(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key,
             struct tree_bytes value);

/* Finds the value of a key, which begins at a multiple of 8 and is not to be changed. 1: there is
 * no such key. */
int tree_get(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key,
             struct tree_bytes *value);

/* 1: there is no such key. */
int tree_remove(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key);

enum tree_from {
	TREE_FROM, /* the least key that is not less than this one */
	TREE_AFTER /* the least key that is greater */
};

/* Finds the next key and its value, beginning at one that need not be there; the empty key is less
 * than all others. *key may be the one that was found before. 1: there is none. */
int tree_next(perseas_tx_t *tx, const struct tree *tree, enum tree_from from,
              struct tree_bytes *key, struct tree_bytes *value);

/* How many keys there are. */
int tree_count(perseas_tx_t *tx, const struct tree *tree, uint64_t *count);

#endif
