/*
 * fillers.h - schedules in which a store is made to be filled, as a restore makes it. Fillers die
 * or stop before their first transaction, others remove what is left and begin anew, and a filler
 * that stopped wakes up later. Nobody else opens the store before it is filled, and nobody removes
 * it afterwards.
 */
#ifndef PERSEAS_SIM_FILLERS_H
#define PERSEAS_SIM_FILLERS_H

#include "process.h"

struct sim_application;

/* Removes a store that is not filled, then makes it and opens it. Returns what perseas_open
 * returns, or PERSEAS_EEXIST if the store was filled. */
int sim_fillers_open(struct sim_application *a, const char *list,
                     const struct perseas_options *options, struct ps_error *error);

/* Returns true if the store was removed while its filler opened it. */
bool sim_fillers_came_late(const struct sim_application *a);

/* Runs after everything healed. Returns true if the store is unfinished and was removed. */
bool sim_fillers_end(struct sim_owner *o);

/* The mirror deleted its image of the store with this id. */
void sim_fillers_dropped(struct sim_mirror *m, const uint8_t *store_id);

#endif
