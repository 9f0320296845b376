/*
 * stranger.h - somebody who may claim, or create, and owns nothing, and what it must not get.
 */
#ifndef PERSEAS_SIM_STRANGER_H
#define PERSEAS_SIM_STRANGER_H

#include "world.h"

/*
 * Comes to the mirror now and then, in some schedules, and goes. It claims the mirror with an epoch
 * near a limit. Or it makes an image of the store on a mirror that has none, as a client does that
 * may create stores there and knows all that a Status tells, once the store has level 1: then the
 * image must count for nothing. Returns false if it did not come.
 */
bool sim_stranger_comes(struct sim_world *w, struct sim_mirror *m);

/*
 * Returns true if the owner's open, which has just returned, was told of a stranger's image and of
 * none of the store. SECURITY.md promises nothing then. The owner is no application of the store,
 * and its process is killed.
 */
bool sim_stranger_misled(struct sim_owner *o);

#endif
