/*
 * segments.h - the segments of a simulated application, of which each has a slot in
 * sim_application.mapped.
 */
#ifndef PERSEAS_SIM_SEGMENTS_H
#define PERSEAS_SIM_SEGMENTS_H

#include "work.h"

/* Fails the seed if the segment's bytes that are here differ from the oracle's. The message
 * contains `when`. */
void sim_segments_compare(struct sim_application *a, unsigned segment, const char *when);

/* The functions below return GO_ON or LEAVE. */

/* Maps all segments of the state that was opened, and compares them. */
int sim_segments_map(struct sim_application *a);

/* Draws a segment, and makes it unless it exists. */
int sim_segments_add(struct sim_application *a);

/* Makes a segment (what: 0), publishes (1), unmaps (2), destroys (3) or grows one (4). One thread
 * of the application does so at a time. */
int sim_segments_change(struct sim_application *a, uint64_t what);

/* Touches some memory, which may be missing. sim_segments_compare sees whether it is right. */
int sim_segments_touch(struct sim_application *a);

#endif
