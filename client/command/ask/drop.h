/*
 * drop.h - deleting images.
 */
#ifndef PERSEAS_COMMAND_DROP_H
#define PERSEAS_COMMAND_DROP_H

#include "ask.h"

/* Asks mirror i of the panel to delete its image of the store. header NULL: whatever is damaged
 * under that name. */
void ps_drop_ask(struct ps_panel *panel, const char *store, unsigned i,
                 const Perseas__Header *header);

/* Deletes the images of this making of a store from all mirrors of the list that have one. A
 * mirror that could not is complained about, and makes it PS_EXIT_FAILURE. */
enum ps_exit ps_drop_all(const char *store, const char *mirrors, const uint8_t *store_id,
                         const struct perseas_options *options);

#endif
