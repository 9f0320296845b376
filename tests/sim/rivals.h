/*
 * rivals.h - schedules in which owners that do not know of each other give the same ids and seqs to
 * segments of one size. An owner that publishes, destroys or grows a segment is parted from most
 * mirrors, with which another owner takes over and does the same. Some of these owners never pause.
 */
#ifndef PERSEAS_SIM_RIVALS_H
#define PERSEAS_SIM_RIVALS_H

#include "process.h"

/* Draws it for mixed schedules. */
void sim_rivals_draw(struct sim_world *w);

/* A mirror has handled a request of this kind: an owner that publishes or destroys segments may be
 * parted before it sends the transaction that does. */
void sim_rivals_told(struct sim_owner *o, uint64_t kind);

#endif
