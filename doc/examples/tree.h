/*
 * tree.h - an ordered map of keys and values of any length, in a heap of the store: keys are in the
 * order of their bytes. To use it, copy tree.h and tree.c into your
 * program.
 *
 * Several threads may use it at once, each with its own transaction: one at a time may change it,
 * or several may read. Every call locks the whole map (perseas_lock) until the transaction is sent
 * or aborted; a value that was found does not change until then. A transaction that is refused the
 * lock gets PERSEAS_ECONFLICT, and calls perseas_retry.
 *
 * Functions return 0, or 1 where they say so, or an error of the library. After an error the change
 * may be half made: undo it by perseas_abort, perseas_retry or perseas_rollback_to.
 *
 * Its objects have plain pointers to each other, so the heap must be mapped at its recorded
 * address. With PERSEAS_HEAP_MOVED every call would follow wild pointers. A transaction with
 * PERSEAS_TRACK may search, but gets PERSEAS_EINVAL if it would allocate or free: when it inserts,
 * removes, or puts a value of another size.
 */
#ifndef TREE_H
#define TREE_H

#include <perseas.h>

#include <stddef.h>
#include <stdint.h>

/* Types of its objects. Change them if your program uses these numbers. */
enum { TREE_TOP = 0x5401, TREE_NODE };

struct tree_bytes {
	const void *at; /* may be NULL if size is 0 */
	size_t size;    /* less than 4 GiB */
};

/* A map that is open in this process. */
struct tree {
	perseas_heap_t *heap;
	struct tree_top *top; /* in the heap */
};

/* Finds the map that the root leads to, or makes it, in a transaction of its own. Call it in one
 * thread, before others use the map. */
int tree_open(perseas_t *p, perseas_heap_t *heap, const char *root, struct tree *tree);

/* Adds a key with its value. Returns 1 if the key exists, and leaves it unchanged. */
int tree_insert(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key,
                struct tree_bytes value);

/* Adds a key with its value, or gives an existing key the new value. */
int tree_put(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key,
             struct tree_bytes value);

/* Finds the value of a key, which begins at a multiple of 8; do not change it. Returns 1 if there
 * is no such key. */
int tree_get(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key,
             struct tree_bytes *value);

/* Removes a key. Returns 1 if there is no such key. */
int tree_remove(perseas_tx_t *tx, const struct tree *tree, struct tree_bytes key);

enum tree_from {
	TREE_FROM, /* the smallest key that is not less than this one */
	TREE_AFTER /* the smallest greater key */
};

/* Finds the next key and its value, starting from *key, which need not exist; the empty key is the
 * smallest. *key may be the previous result. Returns 1 if there is no next key. */
int tree_next(perseas_tx_t *tx, const struct tree *tree, enum tree_from from,
              struct tree_bytes *key, struct tree_bytes *value);

/* Counts the keys. */
int tree_count(perseas_tx_t *tx, const struct tree *tree, uint64_t *count);

#endif
