/*
 * segment.h - the store's segments as this owner knows them, and their memory here.
 */
#ifndef PERSEAS_CLIENT_SEGMENT_H
#define PERSEAS_CLIENT_SEGMENT_H

#include "handle.h"
#include "../../proto/image/segment_key.h"

/* What tells the segment from every other one of the store. */
struct ps_segment_key ps_segment_key(const struct ps_segment *segment);

/* Returns true if the image has the published segments of this handle, and no others. Of an image
 * that was claimed, which names no segment that is unborn or dead by its slot. */
bool ps_segments_match(const struct perseas *p, const Perseas__Header *header);

/* Reserves the segment's memory at its recorded address; never over another mapping. */
int ps_segment_place(struct perseas *p, struct ps_segment *segment);
void ps_segment_unplace(struct ps_segment *segment);

/* Its memory, with the shadow, becomes that of `hidden`, to be unplaced without the lock, or put
 * back: no transaction that begins or ends meanwhile finds it. Locked. */
void ps_segment_hide(struct perseas *p, struct ps_segment *segment, struct ps_segment *hidden);

/* The address of the first byte of a segment that is mapped. */
static inline uint64_t ps_segment_start(const struct ps_segment *segment)
{
	return (uint64_t)(uintptr_t)segment->base;
}

/* The same at this address, or anywhere but where a segment of the store is recorded. 0 or an errno
 * (EEXIST: something is there, or everywhere), and no sentence. */
int ps_segment_reserve(struct perseas *p, struct ps_segment *segment, uint64_t address);
/* At its recorded address, over the memory that is there. */
int ps_segment_reserve_over(struct ps_segment *segment);
int ps_segment_reserve_anywhere(struct perseas *p, struct ps_segment *segment);
/* The sentence for the latter, and the code. */
int ps_segment_fail_anywhere(const struct perseas *p, const struct ps_segment *segment, int error);

/* Fails with ENOMEM: the kernel refused the segment's memory with this errno. Names the limit. */
int ps_segment_fail_memory(const struct perseas *p, const struct ps_segment *segment, int error);

/* Chooses an address for a new segment, and reserves it, with the addresses up to `room` bytes from
 * there on for what it grows by. */
int ps_segment_choose(struct perseas *p, struct ps_segment *segment, uint64_t room);

/* Of one that is mapped and has, with its parts, `whole` bytes: keeps the addresses up to `room`
 * bytes from its first byte on. Both are whole pages. 0 or an errno (EEXIST: something is there).
 * */
int ps_segment_widen(struct ps_segment *head, uint64_t whole, uint64_t room);

/* The part gets the first of the addresses that are kept; they are enough. 0 or an errno. */
int ps_segment_take_spare(struct ps_segment *head, struct ps_segment *part);

/* Adds an entry for a new segment. NULL: there are as many as there can be. */
struct ps_segment *ps_segment_add(struct perseas *p, const char *name, uint64_t size);
void ps_segment_forget(struct perseas *p, struct ps_segment *segment);

/* Keeps the addresses of the segments that are published free, for when they are placed, and no
 * others any more; header NULL: none. What cannot be kept is said in `warning`. Before the store is
 * open. */
void ps_segment_keep(struct perseas *p, const Perseas__Header *header, char *warning, size_t size);

#endif
