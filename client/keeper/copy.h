/*
 * copy.h - copies contents in bulk between a mirror and this process, and from mirror to mirror.
 * Callers have exclusive use of the links (exclusive.h), or the store is not open yet.
 */
#ifndef PERSEAS_CLIENT_COPY_H
#define PERSEAS_CLIENT_COPY_H

#include "../core/handle.h"

/* Reads a placed segment from a whole mirror, and tries the next one if that fails. Returns 0, or
 * PERSEAS_EUNREACHABLE. */
int ps_copy_segment_from_mirror(struct perseas *p, struct ps_segment *segment);

/* Writes a segment's memory to every active mirror, and breaks the links that fail. Returns 0, or
 * PERSEAS_ECANCELLED (ps_copy_set_stop). */
int ps_copy_segment_to_mirrors(struct perseas *p, const struct ps_segment *segment);

/* Prepares a mirror for a whole copy: in place if an earlier copy to it did not end, since nothing
 * in such an image counts and it needs no memory for a second one, otherwise beside what it has.
 * Returns 0 or an error code. */
int ps_copy_prepare_whole(struct perseas *p, struct ps_mirror *m, struct ps_error *error);

/* Copies part of a region from one mirror to another. Returns 0, or -1 if a link broke. */
int ps_copy_between_mirrors(struct perseas *p, struct ps_mirror *from, struct ps_mirror *to,
                            uint32_t region, uint64_t offset, uint64_t length);

/* Fills in *write with the zeros that must follow the newest record, at the slot's `next`. Without
 * them, bytes that users stored could be taken for the next record. They must reach the mirror
 * before the slot. Returns the number of writes: 1, or 0 at the end of the ring. */
unsigned ps_copy_make_terminator_write(const struct perseas *p, struct ps_write *write);

/* Writes a commit slot with this owner's present state as the mirror's next slot, and the zeros
 * before it. Returns 0, or -1 if the link broke. */
int ps_copy_write_commit_slot(struct perseas *p, struct ps_mirror *m);

/* Has ps_copy_segment_to_mirrors call stop() before each piece, and end the copy when it returns
 * true. The default, NULL, never stops. */
void ps_copy_set_stop(bool (*stop)(void));

/* Calls the application's progress callback, if it has one. */
void ps_copy_report_progress(const char *what, uint64_t done, uint64_t total);

#endif
