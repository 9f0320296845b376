/*
 * copy.h - contents in bulk: between a mirror and this process, and from mirror to mirror.
 * Exclusive, or before open.
 */
#ifndef PERSEAS_CLIENT_COPY_H
#define PERSEAS_CLIENT_COPY_H

#include "../core/handle.h"

/* Reads a placed segment from a live mirror; tries another where one fails. */
int ps_copy_here(struct perseas *p, struct ps_segment *segment);

/* Writes a segment's memory to every live mirror; mirrors that fail are broken. Returns 0, or
 * PERSEAS_ECANCELLED (ps_copy_set_stop). */
int ps_copy_out(struct perseas *p, const struct ps_segment *segment);

/* Copies part of a region; 0, or -1 when a link broke. */
int ps_copy_across(struct perseas *p, struct ps_mirror *from, struct ps_mirror *to, uint32_t region,
                   uint64_t offset, uint64_t length);

/*
 * The zeros that a slot without its record needs at its `next`: without them, bytes that users
 * stored could lie where the next record is looked for. They must reach the mirror before the slot.
 * Returns the number of writes, 0 or 1: at the end of the ring there is none.
 */
unsigned ps_copy_terminator(const struct perseas *p, struct ps_write *write);

/* Writes where this owner stands as the mirror's next slot, with the zeros behind it. Returns 0, or
 * -1 when the link broke. */
int ps_copy_slot(struct perseas *p, struct ps_mirror *m);

/* Before each piece of a copy out the process's stop() is asked: true ends the copy. NULL, as at
 * first: nobody is asked. */
void ps_copy_set_stop(bool (*stop)(void));

/* Tells the progress callback, if there is one. */
void ps_copy_progress(const char *what, uint64_t done, uint64_t total);

#endif
