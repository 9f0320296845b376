/*
 * segment.h - the store's segments as this owner knows them, and their memory here.
 */
#ifndef PERSEAS_CLIENT_SEGMENT_H
#define PERSEAS_CLIENT_SEGMENT_H

#include "handle.h"

/* Reserves the segment's memory at its recorded address; never over another mapping. */
int ps_segment_place(struct perseas *p, struct ps_segment *segment);
void ps_segment_unplace(struct ps_segment *segment);

/* Chooses an address for a new segment, and reserves it. */
int ps_segment_choose(struct perseas *p, struct ps_segment *segment);

/* Adds an entry for a new segment. NULL: there are as many as there can be. */
struct ps_segment *ps_segment_add(struct perseas *p, const char *name, uint64_t size);
void ps_segment_forget(struct perseas *p, struct ps_segment *segment);

/* Keeps the addresses of the segments that are published free, for when they are placed, and no
 * others any more; header NULL: none. What cannot be kept is said in `warning`. Before the store is
 * open. */
void ps_segment_keep(struct perseas *p, const Perseas__Header *header, char *warning, size_t size);

#endif
