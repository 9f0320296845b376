/*
 * open_store.h - how a simulated application opens the store.
 */
#ifndef PERSEAS_SIM_OPEN_STORE_H
#define PERSEAS_SIM_OPEN_STORE_H

#include "work.h"

/* Opens the store once: a->p is the handle and a->at the state that was opened. Returns what
 * perseas_open returns; an error that cannot be fails the seed. */
int sim_open_store(struct sim_application *a);

#endif
