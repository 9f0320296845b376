/*
 * operator.h - changes of the roster, asked for by a thread of the application while others
 * commit.
 */
#ifndef PERSEAS_SIM_OPERATOR_H
#define PERSEAS_SIM_OPERATOR_H

#include "work.h"

/* Returns true if the store is made with level 0. Operators then try to raise it. */
bool sim_operator_keeps_low(const struct sim_world *w);

void sim_operate(void *application);

/* Drops, at the end, images that keep a mirror from being made anew, as `perseas status` or the
 * mirror itself advises: images without the store's key, which owners take for a fork from before
 * the raise, and what another create left. */
void sim_operator_drop_left(struct sim_world *w);

/* Lets the threads of a dead process end: they wait for no change any more. */
void sim_operator_let_go(void *application);

/* Writes the addresses with which an owner is started: those of the beginning, which may be
 * outdated, all addresses, or those of the newest roster, perhaps without one. */
enum { SIM_LIST = 200 };
void sim_operator_list(struct sim_world *w, bool first, bool last, char list[SIM_LIST]);

#endif
