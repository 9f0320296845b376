/*
 * aim.h - what the schedules share that aim at one situation (hang.h, loaded.h, lossy.h,
 * fork.h, past.h): an owner for which all is well, what it knows of a mirror, and a mirror that
 * hangs. It draws nothing, so that other schedules stay as they are.
 */
#ifndef PERSEAS_SIM_AIM_H
#define PERSEAS_SIM_AIM_H

#include "world.h"

struct ps_mirror;

/* Makes the schedule one that aims at a situation, if this seed or the mistake is for it. */
void sim_aim_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares);

/* Begins that situation, where the schedule is for one. */
void sim_aim_begin(struct sim_world *w);

/* May transactions begin at this owner? */
bool sim_aim_is_open(const struct sim_owner *o);

/* The first owner that is open and for which just so many mirrors are live (0: however many), or
 * NULL. */
struct sim_owner *sim_aim_owner(const struct sim_world *w, unsigned live);

/* The mirror as its owner's handle has it; the seed fails where it has not. */
struct ps_mirror *sim_aim_mirror(const struct sim_owner *o, const struct sim_mirror *mirror);

/* Does the owner share the memory of a mirror? */
bool sim_aim_shares(const struct sim_owner *o);

/* A mirror hangs, or goes on: nothing that is sent to it or by it arrives, at most until everything
 * heals. */
void sim_aim_hang(struct sim_world *w, const struct sim_mirror *mirror, bool hangs);

#endif
