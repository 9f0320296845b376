/*
 * mirror_faults.h - what happens to a mirror in a schedule: it crashes, an operator stops and
 * starts it, or it has too little memory.
 */
#ifndef PERSEAS_SIM_MIRROR_FAULTS_H
#define PERSEAS_SIM_MIRROR_FAULTS_H

#include "world.h"

/* Draws how long a fault lasts: up to three seconds, and mostly far less. */
uint64_t sim_some_time(struct sim_world *w);

/* Starts `mirror` (a struct sim_mirror) unless it runs. An event of the world (sim_at). */
void sim_mirror_faults_start(struct sim_world *w, void *mirror, uint64_t ticket);

/* Stops the mirror on purpose, or all at once, as when the power fails. They start again. */
void sim_mirror_faults_stop(struct sim_world *w, struct sim_mirror *m);

/* Crashes the mirror, sometimes with its memory. It starts again. */
void sim_mirror_faults_crash(struct sim_world *w, struct sim_mirror *m);

/* Gives the mirror too little memory, or files that cannot be made or written. */
void sim_mirror_faults_limit(struct sim_world *w, struct sim_mirror *m);

#endif
