/*
 * track.h - transactions without set_range (PERSEAS_TRACK): what they changed is found when they
 * commit, as what differs from the shadow (shadow.h). A page does not say whose store it was: so
 * such a transaction is open alone, and no other begins before it has ended.
 */
#ifndef PERSEAS_CLIENT_TRACK_H
#define PERSEAS_CLIENT_TRACK_H

#include "handle.h"

/* *tx, which has just begun, is tracked; or ECONFLICT, as others are open: *tx is over then, and
 * NULL. Takes the lock. */
int ps_track_begin(struct perseas_tx **tx);

/* It still is, after it was made empty. Locked. */
void ps_track_keep(struct perseas_tx *tx);

/* Others may begin again. Locked. */
void ps_track_end(struct perseas_tx *tx);

/* ECONFLICT, for who begins while a transaction is tracked. */
int ps_track_conflict(const struct perseas *p);

/* Makes what differs its ranges, with before-images from the shadow. It has none so far. 0, ETOOBIG
 * or ENOMEM, and it has none then. Locked. */
int ps_track_find(struct perseas_tx *tx);

/* It has no ranges again: they are found anew when it commits. Locked. */
void ps_track_forget(struct perseas_tx *tx);

/* Puts back all that differs from the shadow. Locked. */
void ps_track_undo(struct perseas_tx *tx);

#endif
