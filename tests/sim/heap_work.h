/*
 * heap_work.h - what simulated applications do with a heap, in the transactions of work.c, and
 * which objects it must have. Each function does nothing where the schedule has no heap.
 */
#ifndef PERSEAS_SIM_HEAP_WORK_H
#define PERSEAS_SIM_HEAP_WORK_H

#include "work.h"

/* Gives the schedule a heap, or not. Depends on the seed alone, so that other schedules keep their
 * course. */
void sim_heap_shape(struct sim_world *w);

/* Opens the heap, or makes it, and holds it against the state that the owner was shown. GO_ON or
 * LEAVE. */
int sim_heap_open(struct sim_application *a);

/* Returns the heap's empty extents to the store, and removes them from this node. Returns an error
 * code. */
int sim_heap_trim(struct sim_application *a);
void sim_heap_shrinks(struct sim_application *a, struct sim_node *node);

/* Allocates, frees, changes and resizes objects in an open transaction. */
void sim_heap_fill(struct sim_application *a, perseas_tx_t *tx);

/* Returns true if the transaction changed the heap, so that it has something to commit. */
bool sim_heap_changes(const struct sim_application *a, const perseas_tx_t *tx);

/* Tell that the transaction is about to commit; that it took its seq, as this node; and that it
 * ended, sent as this node or not. */
void sim_heap_commits(struct sim_application *a, perseas_tx_t *tx);
void sim_heap_seal(struct sim_application *a, const perseas_tx_t *tx, struct sim_node *node);
void sim_heap_end(struct sim_application *a, const perseas_tx_t *tx, const struct sim_node *node);

/* Checks, while no transaction is open, that the heap has exactly the expected objects. */
void sim_heap_check(struct sim_application *a);

#endif
