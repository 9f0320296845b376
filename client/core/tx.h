/*
 * tx.h - transactions before they are sent.
 */
#ifndef PERSEAS_CLIENT_TX_H
#define PERSEAS_CLIENT_TX_H

#include "handle.h"

/*
 * Notes up to where the record may grow without a further look: it fits into its memory, the log,
 * and the ring, where an entry takes the record, the after-images, which are no more than the
 * record, and a write for each range, which is no more either, since a range takes 24 bytes of
 * record at least.
 */
void ps_range_room(struct perseas_tx *tx);

/* Adds a range that was changed already, and is apart from those before: its before-image is that
 * of the segment's shadow. 0, ETOOBIG or ENOMEM. Locked. */
int ps_range_found(struct perseas_tx *tx, const struct ps_segment *segment, uint64_t offset,
                   uint64_t length);

/* Bytes of the ring entry that the transaction would take. */
uint64_t ps_tx_entry_length(const struct perseas_tx *tx);
/* Room for `more` bytes of record, `bytes` of what is sent besides it, and so many spans. 0,
 * ETOOBIG or ENOMEM. */
int ps_range_find_room(struct perseas_tx *tx, uint64_t more, uint64_t bytes, unsigned spans);

/* Begins a transaction, which has no ranges yet. Returns 0, ENOMEM, ECONFLICT while a tracked
 * transaction is open, or why no transaction can begin. Caller holds p->lock. */
int ps_tx_begin(struct perseas *p, struct perseas_tx **tx);

/* It is as if it had just begun, but that it keeps its locks and its turn. Locked. */
void ps_tx_begin_again(struct perseas_tx *tx);

/* Ends it: back to the pool, off the list of open ones. Its locks are released, and its turn passes
 * on. Locked. */
void ps_tx_end(struct perseas_tx *tx);

/* Finds out whether set_range may do without p->lock on this machine. Called once, before the
 * handle is used. */
void ps_tx_begin_handle(struct perseas *p);

/* From when ps_tx_observe_begin returns until ps_tx_observe_end, open transactions change only
 * under p->lock, so that the caller may read them. Several threads may observe at the same time.
 * Caller does not hold p->lock; may sleep for as long as a set_range takes. */
void ps_tx_observe_begin(struct perseas *p);
void ps_tx_observe_end(struct perseas *p);

/* Copies the committed and posted bytes of a mapped segment: from its shadow, or, if it has none,
 * from its memory with the before-images of open transactions, and of gathered commits, in place.
 * Caller observes transactions, and holds p->lock. */
void ps_tx_copy_committed(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                          uint8_t *bytes, uint64_t length);

/* Puts every before-image back. */
void ps_tx_undo(struct perseas_tx *tx);

/* The application takes all of it back: what it changed is as it was, and counts as aborted.
 * Locked. */
void ps_tx_take_back(struct perseas_tx *tx);

/* savepoint.c: [start, end) is about to be declared by a transaction with savepoints: what it holds
 * now is kept for the newest of these. 0, or ENOMEM. Then, when it is declared or was refused (rc),
 * in as many spans as it was said to be. The caller is inside of set_range. */
int ps_savepoint_keep(struct perseas_tx *tx, uint64_t start, uint64_t end, unsigned spans);
void ps_savepoint_kept(struct perseas_tx *tx, const struct ps_span *span, int rc);
/* It has none any more. */
void ps_savepoints_end(struct perseas_tx *tx);
void ps_savepoints_free(struct perseas_tx *tx);

void ps_tx_free_all(struct perseas *p);

/* checked.c: what the checked modes look for. Locked. */
int ps_check_overlap(struct perseas_tx *tx, uint64_t start, uint64_t end);
int ps_check_undeclared(struct perseas_tx *tx);

#endif
