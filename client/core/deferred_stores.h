/*
 * deferred_stores.h - stores that a transaction makes only when it is sent: at its commit, under
 * p->lock, just before the record is sealed. The heap uses them (client/heap). Several open
 * transactions may defer stores to different bits of the same word: memory never shows uncommitted
 * bits, and the before-image of a store is what the previous commit left.
 *
 * Each deferred store reserves space in the record, the cover and the ring. So the commit cannot
 * fail once it has begun to make the stores, and no uncommitted bits of another transaction are
 * sent.
 */
#ifndef PERSEAS_CLIENT_DEFERRED_STORES_H
#define PERSEAS_CLIENT_DEFERRED_STORES_H

#include "handle.h"

enum {
	PS_DEFERRED_LENGTH = 16, /* maximum bytes of a deferred store */
	/* Bytes of the undo record that a deferred store takes. */
	PS_DEFERRED_RECORD = sizeof(struct ps_range) + PS_DEFERRED_LENGTH,
	/* Bytes of the ring that a deferred store takes. */
	PS_DEFERRED_ENTRY = PS_DEFERRED_RECORD + PS_DEFERRED_LENGTH + sizeof(struct ps_write),
};

struct ps_deferred_stores;

/* The operations of a user of deferred stores. They do not take p->lock, and touch no memory that
 * may be missing. The caller holds p->lock, except for `mark`. */
struct ps_deferred_ops {
	/* Calls ps_deferred_store for each deferred store, at most as often as space was
	 * reserved. */
	void (*apply)(struct ps_deferred_stores *stores, struct perseas_tx *tx);
	/* Called when the transaction is over: its chain is posted, or all of its bytes are
	 * restored. Only now may other transactions use what this user had reserved for it. */
	void (*end)(struct ps_deferred_stores *stores, bool posted);
	/* Notes a new savepoint, whose number is higher than those before. Returns 0 or ENOMEM. */
	int (*mark)(struct ps_deferred_stores *stores, uint64_t savepoint);
	/* Discards the stores deferred after this savepoint. Their bytes in memory are restored
	 * already. */
	void (*roll_back)(struct ps_deferred_stores *stores, uint64_t savepoint);
	void (*free)(struct ps_deferred_stores *stores);
};

/* The stores that one user of a transaction, such as a heap, defers to the commit. The struct is
 * reused for the next transaction. */
struct ps_deferred_stores {
	const struct ps_deferred_ops *ops;
	struct ps_deferred_stores *next;
	const void *user; /* the user's own object: identifies the user */
};

/* Reserves space for `changes` more deferred stores. Returns 0; or ETOOBIG or ENOMEM, and reserves
 * nothing. Caller does not hold p->lock. */
int ps_deferred_reserve(struct perseas_tx *tx, unsigned changes);

/* Stores `bytes` to memory at commit, and logs the before-image. `length` is a multiple of 8 and at
 * most PS_DEFERRED_LENGTH. Only `apply` (struct ps_deferred_ops) calls this. */
void ps_deferred_store(struct perseas_tx *tx, const struct ps_mapped_extent *segment, void *at,
                       const void *bytes, uint32_t length);

/* Call an operation for every user of the transaction's deferred stores: apply, end, mark (in
 * ps_deferred_savepoint), roll_back and free. */
void ps_deferred_apply(struct perseas_tx *tx);
void ps_deferred_end(struct perseas_tx *tx);
int ps_deferred_savepoint(struct perseas_tx *tx, uint64_t savepoint);
void ps_deferred_roll_back(struct perseas_tx *tx, uint64_t savepoint);
void ps_deferred_free(struct perseas_tx *tx);

#endif
