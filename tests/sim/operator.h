/*
 * operator.h - changes of the roster, asked for by a thread of the application while others
 * commit.
 */
#ifndef PERSEAS_SIM_OPERATOR_H
#define PERSEAS_SIM_OPERATOR_H

#include "work.h"

/* A task of the application: now and then it adds, removes or replaces a mirror. */
/* Is the store made with level 0? Operators then try to raise it. */
bool sim_operator_keeps_low(const struct sim_world *w);

void sim_operate(void *application);

/* At the end an operator drops what keeps a mirror from being made anew: the images without the
 * store's key that owners take for those of a fork from before the store was raised, as
 * `perseas status` says, and what another create left, as the mirror says. */
void sim_operator_drop_left(struct sim_world *w);

/* A process that is dead waits for no change: else its threads could not end. */
void sim_operator_let_go(void *application);

/* The addresses that an owner is started with: those of the beginning, which may be outdated, all
 * that there are, or those of the newest roster, one of them missing perhaps. */
enum { SIM_LIST = 200 };
void sim_operator_list(struct sim_world *w, bool first, bool last, char list[SIM_LIST]);

#endif
