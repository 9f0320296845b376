/*
 * track.h - tracked transactions (PERSEAS_TRACK), which need no set_range: the commit finds their
 * changes by comparing memory with the shadow (shadow.h). A page does not tell which transaction
 * changed it, so a tracked transaction must be the only open one: p->commit.tracked_tx names it,
 * and no other transaction begins while that is set.
 */
#ifndef PERSEAS_CLIENT_TRACK_H
#define PERSEAS_CLIENT_TRACK_H

#include "handle.h"

/* Makes `tx`, which has just begun, the tracked transaction of its handle. Returns 0, or ECONFLICT
 * if other transactions are open. Caller holds p->lock. */
int ps_track_begin(struct perseas_tx *tx);

/* Marks every segment as touched by the transaction, so that none is unmapped before it ends.
 * Caller holds p->lock. */
void ps_track_touch_all_segments(struct perseas_tx *tx);

/* Ends the tracking of `tx`: other transactions may begin again. Caller holds p->lock. */
void ps_track_end(struct perseas_tx *tx);

/* Fails with ECONFLICT, for a begin while a tracked transaction is open. Returns the code. */
int ps_fail_tracked_tx_is_open(const struct perseas *p);

/* Adds a range to the transaction, which has none, for each difference between memory and shadow,
 * with the before-image from the shadow. Returns 0; or ETOOBIG or ENOMEM, and the transaction still
 * has no ranges. Caller holds p->lock. */
int ps_track_find_changes(struct perseas_tx *tx);

/* Drops the ranges that ps_track_find_changes added: the next commit finds them anew. Caller holds
 * p->lock. */
void ps_track_drop_ranges(struct perseas_tx *tx);

/* Copies the shadow to memory wherever they differ. Caller holds p->lock. */
void ps_track_restore_memory(struct perseas_tx *tx);

#endif
