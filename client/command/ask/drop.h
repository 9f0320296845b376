/*
 * drop.h - deletes images from mirrors, for perseas drop, drain and bench.
 */
#ifndef PERSEAS_COMMAND_DROP_H
#define PERSEAS_COMMAND_DROP_H

#include "ask.h"

/* Asks mirror i of the peers to delete its image of the store. header NULL: whatever is damaged
 * under that name. */
void ps_drop_ask(struct ps_peers *peers, const char *store, unsigned i,
                 const Perseas__Header *header);

/* Deletes the images of the store from all mirrors of the list that have one. Complains about each
 * mirror that could not, and returns PS_EXIT_FAILURE then. */
enum ps_exit ps_drop_all(const char *store, const char *mirrors,
                         const struct perseas_options *options);

#endif
