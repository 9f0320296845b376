/*
 * creators.h - several applications that create the same store at the same time, what goes wrong
 * while they do, and what must be so whatever does: where an image is settled, every member of its
 * roster has that making, or has lost it.
 */
#ifndef PERSEAS_SIM_CREATORS_H
#define PERSEAS_SIM_CREATORS_H

#include "world.h"

struct sim_mirror;
struct sim_owner;
struct Perseas__Roster;

/* Returns how many creators join the first one. Drawn from the seed alone, so that other schedules
 * keep their course. */
unsigned sim_creators_count(const struct sim_world *w);

/* Plans when they start, and what goes wrong meanwhile. */
void sim_creators_begin(struct sim_world *w);

/* Returns true if a creator may still make the store. */
bool sim_creators_at_work(const struct sim_world *w);

/* The mirrors that this creator names; some name them in the other order. */
void sim_creators_list(const struct sim_world *w, const struct sim_owner *o, char *list,
                       size_t size);

/* Counts the roster's members that no trouble kept from answering this owner: none of its messages
 * to them was delayed, none of its connections to them was reset, and they lost no memory. A
 * trouble counts until the schedule ends, because owners may learn of it seconds later. Processes
 * that are stopped or killed do not count: a stop is far shorter than any commit waits in a calm
 * schedule, and one owner's death delays no commit of another. */
unsigned sim_creators_spared(const struct sim_owner *o, const struct Perseas__Roster *roster);

/* The mirror lost its image of the store with this id, or deleted it. */
void sim_creators_lost(struct sim_mirror *m, const uint8_t *store_id);

/* The mirror settled an image. */
void sim_creators_settled(struct sim_mirror *m);

#endif
