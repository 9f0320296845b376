/*
 * tx.h - transactions before they are sent.
 */
#ifndef PERSEAS_CLIENT_TX_H
#define PERSEAS_CLIENT_TX_H

#include "handle.h"

/* Bytes of the ring entry that the transaction would take. */
uint64_t ps_tx_entry_length(const struct perseas_tx *tx);

/* Ends it: back to the pool, off the list of open ones. Locked. */
void ps_tx_end(struct perseas_tx *tx);

/* Puts every before-image back. */
void ps_tx_undo(struct perseas_tx *tx);

void ps_tx_free_all(struct perseas *p);

/* check.c: what the checked modes look for. Locked. */
int ps_check_overlap(struct perseas_tx *tx, uint64_t start, uint64_t end);
int ps_check_undeclared(struct perseas_tx *tx);
void ps_check_committed(struct perseas_tx *tx);

#endif
