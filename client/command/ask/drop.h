/*
 * drop.h - deletes images from mirrors, for perseas drop, drain and bench.
 */
#ifndef PERSEAS_COMMAND_DROP_H
#define PERSEAS_COMMAND_DROP_H

#include "ask.h"

/* Asks peer i to delete its image of the store. header: identifies the image; NULL: the image is
 * damaged, so that only the store's name identifies it. */
void ps_drop_ask_mirror(struct ps_peers *peers, const char *store, unsigned i,
                        const Perseas__Header *header);

/* Deletes the images of the store from all mirrors of the list that have one. If a mirror cannot
 * delete its image, complains and returns PS_EXIT_FAILURE. */
enum ps_exit ps_drop_all(const char *store, const char *mirrors,
                         const struct perseas_options *options);

#endif
