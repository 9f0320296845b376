/*
 * rivals.h - schedules in which owners that do not know of each other give the same ids and seqs to
 * segments of one size, and the same addresses to segments of one name. An owner that publishes,
 * destroys or grows a segment is parted from most mirrors, with which another owner takes over and
 * does the same. Some of these owners never pause.
 */
#ifndef PERSEAS_SIM_RIVALS_H
#define PERSEAS_SIM_RIVALS_H

#include "process.h"
#include "work.h"

/* Draws it for mixed schedules. */
void sim_rivals_draw(struct sim_world *w);

/* Notes that a mirror handled a request of this kind: an owner that publishes or destroys segments
 * may then be cut off before it sends the transaction. */
void sim_rivals_told(struct sim_owner *o, uint64_t kind);

/* Maps new segment i, and returns what perseas_map_at does. Rivals record one address for it. */
int sim_rivals_map(const struct sim_application *a, unsigned i, uint32_t size, void **addr);

#endif
