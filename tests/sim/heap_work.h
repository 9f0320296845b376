/*
 * heap_work.h - what simulated applications do with a heap, in the transactions of work.c, and
 * which objects it must have. Each function does nothing where the schedule has no heap.
 */
#ifndef PERSEAS_SIM_HEAP_WORK_H
#define PERSEAS_SIM_HEAP_WORK_H

#include "work.h"

/* Has the schedule one? Not drawn, so that all others stay as they were. */
void sim_heap_shape(struct sim_world *w);

/* Opens the heap, or makes it, and holds it against the state that the owner was shown. GO_ON or
 * LEAVE. */
int sim_heap_open(struct sim_application *a);

/* It gives back what is empty: a code. What it gave back is gone with this node. */
int sim_heap_trim(struct sim_application *a);
void sim_heap_shrinks(struct sim_application *a, struct sim_node *node);

/* An open transaction allocates, frees, changes and resizes. */
void sim_heap_fill(struct sim_application *a, perseas_tx_t *tx);

/* Did it? Then there is something to commit. */
bool sim_heap_changes(const struct sim_application *a, const perseas_tx_t *tx);

/* It is about to be committed; it takes its seq, as this node; it is over, and was sent as this
 * node, or was not. */
void sim_heap_commits(struct sim_application *a, perseas_tx_t *tx);
void sim_heap_seal(struct sim_application *a, const perseas_tx_t *tx, struct sim_node *node);
void sim_heap_end(struct sim_application *a, const perseas_tx_t *tx, const struct sim_node *node);

/* No transaction is open: the heap has what it must have, and nothing else. */
void sim_heap_check(struct sim_application *a);

#endif
