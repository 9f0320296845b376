/*
 * deferred_stores.h - stores that a transaction makes only when it is sent: at its commit, under
 * p->lock, just before the record is sealed (client/heap). Several open transactions may defer
 * stores to the same word, each to some of its bits: memory never shows what is not committed, and
 * the before-image of a store is what the previous commit left.
 *
 * Room for each store is reserved when it is asked for, in the record, the cover and the ring. So
 * the commit cannot fail once it has begun to make them, and no other transaction's bits are mixed
 * into one that is not sent.
 */
#ifndef PERSEAS_CLIENT_DEFERRED_STORES_H
#define PERSEAS_CLIENT_DEFERRED_STORES_H

#include "handle.h"

enum {
	PS_LATE_LENGTH = 16, /* bytes that one change may store */
	PS_LATE_RECORD = sizeof(struct ps_range) + PS_LATE_LENGTH, /* that it takes of a record */
	PS_LATE_ENTRY = PS_LATE_RECORD + PS_LATE_LENGTH + sizeof(struct ps_write), /* of the ring */
};

struct ps_late;

/* None of these takes the lock, or touches memory that may be missing; all but `mark` have the
 * lock. */
struct ps_late_ops {
	/* Calls ps_late_store for each change, at most as often as room was kept. */
	void (*apply)(struct ps_late *late, struct perseas_tx *tx);
	/* The transaction is over. Its chain is posted, or else every byte is back as it was: not
	 * before that may others get what it had. */
	void (*end)(struct ps_late *late, bool posted);
	/* A savepoint is made; each has a higher number than those before. 0 or ENOMEM. */
	int (*mark)(struct ps_late *late, uint64_t savepoint);
	/* What came after that savepoint is taken back, and its bytes are as they were. What was
	 * put off before it stays. */
	void (*roll_back)(struct ps_late *late, uint64_t savepoint);
	void (*free)(struct ps_late *late);
};

/* Whose changes: one for each user of a transaction, kept from one transaction to the next. */
struct ps_late {
	const struct ps_late_ops *ops;
	struct ps_late *next;
	const void *whose;
};

/* Keeps room for so many changes more. 0, or ETOOBIG, ENOMEM, and nothing is kept. Not locked. */
int ps_late_keep(struct perseas_tx *tx, unsigned changes);

/* Stores up to PS_LATE_LENGTH bytes, whole words, and logs what was there before. */
void ps_late_store(struct perseas_tx *tx, const struct ps_extent_of *segment, void *at,
                   const void *bytes, uint32_t length);

/* All of them are applied; the transaction is over; its handle is. */
void ps_late_apply(struct perseas_tx *tx);
void ps_late_end(struct perseas_tx *tx);
int ps_late_mark(struct perseas_tx *tx, uint64_t savepoint);
void ps_late_roll_back(struct perseas_tx *tx, uint64_t savepoint);
void ps_late_free(struct perseas_tx *tx);

#endif
