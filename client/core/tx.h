/*
 * tx.h - transactions until they are sent.
 */
#ifndef PERSEAS_CLIENT_TX_H
#define PERSEAS_CLIENT_TX_H

#include "handle.h"

/* Computes tx->record_room, the length up to which the record may grow without a further check: it
 * then fits into its memory, the log, and the ring. A ring entry has the record, the after-images,
 * which are no longer than the record, and a write for each range, which is shorter than the
 * range's head in the record. */
void ps_tx_update_room(struct perseas_tx *tx);

/* Adds a range that was changed before it was declared. It must not overlap the ranges added
 * before. The before-image comes from the segment's shadow. Returns 0, ETOOBIG or ENOMEM. Caller
 * holds p->lock. */
int ps_tx_add_found_range(struct perseas_tx *tx, const struct ps_segment *segment, uint64_t offset,
                          uint64_t length);

/* Returns the bytes of the ring entry that the transaction would take now. */
uint64_t ps_tx_entry_length(const struct perseas_tx *tx);
/* Makes room for `record_bytes` of record, `entry_bytes` other bytes of the ring entry, and `spans`
 * spans. Returns 0, ETOOBIG or ENOMEM. */
int ps_tx_make_room(struct perseas_tx *tx, uint64_t record_bytes, uint64_t entry_bytes,
                    unsigned spans);

/* Begins a transaction, which has no ranges yet. Returns 0, ENOMEM, ECONFLICT while a tracked
 * transaction is open, or why no transaction can begin. Caller holds p->lock. */
int ps_tx_begin(struct perseas *p, struct perseas_tx **tx);

/* Resets an open transaction to what it was when it had just begun, except that it keeps its locks
 * and its turn. Caller holds p->lock. */
void ps_tx_reset_open(struct perseas_tx *tx);

/* Ends a transaction and returns it to the pool. Releases its locks and passes on its turn. Caller
 * holds p->lock. */
void ps_tx_end(struct perseas_tx *tx);

/* Finds out whether set_range may do without p->lock on this machine. Called once, before the
 * handle is used. */
void ps_tx_init_observing(struct perseas *p);

/* Between ps_tx_observe_begin and ps_tx_observe_end, open transactions change only under p->lock,
 * so that the caller may read them. Several threads may observe at a time. Caller does not hold
 * p->lock; may sleep as long as a set_range takes. */
void ps_tx_observe_begin(struct perseas *p);
void ps_tx_observe_end(struct perseas *p);

/* Copies the committed bytes of a mapped segment: from its shadow, or, without one, from memory
 * with the before-images of open transactions and of gathered commits put back. Caller observes
 * transactions, and holds p->lock. */
void ps_tx_copy_committed(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                          uint8_t *bytes, uint64_t length);

/* Puts every before-image back into memory. Caller holds p->lock. */
void ps_tx_restore_memory(struct perseas_tx *tx);

/* Rolls a transaction back and counts it as aborted. Caller holds p->lock. */
void ps_tx_roll_back(struct perseas_tx *tx);

/* savepoint.c: ps_savepoint_before_range is called before a transaction with savepoints declares
 * [start, end), in `spans` spans: it saves the present contents for the newest savepoint. Returns 0
 * or ENOMEM. ps_savepoint_after_range is called for each span after it was declared, or refused
 * with code rc. The caller is inside set_range. */
int ps_savepoint_before_range(struct perseas_tx *tx, uint64_t start, uint64_t end, unsigned spans);
void ps_savepoint_after_range(struct perseas_tx *tx, const struct ps_span *span, int rc);
/* ps_savepoints_end drops a transaction's savepoints when it ends. */
void ps_savepoints_end(struct perseas_tx *tx);
void ps_savepoints_free(struct perseas_tx *tx);

void ps_tx_free_all(struct perseas *p);

/* checked.c: the checks of PERSEAS_CHECK_OVERLAP and PERSEAS_CHECK_WRITES. Return 0; ECONFLICT if
 * [start, end) overlaps another open transaction; EUNDECLARED if memory was changed without
 * set_range. Caller holds p->lock. */
int ps_check_overlap(struct perseas_tx *tx, uint64_t start, uint64_t end);
int ps_check_undeclared(struct perseas_tx *tx);

#endif
