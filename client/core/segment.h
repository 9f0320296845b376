/*
 * segment.h - the store's segments as this owner knows them, and their memory in this process.
 */
#ifndef PERSEAS_CLIENT_SEGMENT_H
#define PERSEAS_CLIENT_SEGMENT_H

#include "handle.h"
#include "../../proto/image/segment_key.h"

/* Returns what distinguishes the segment from all others of the store. */
struct ps_segment_key ps_segment_key(const struct ps_segment *segment);

/* Returns true if the image has exactly the published segments of this handle. The image must be
 * claimed, so that its header lists no segment that its slot says is unborn or dead. */
bool ps_segments_match_header(const struct perseas *p, const Perseas__Header *header);

/* ps_segment_map_at_recorded maps the segment's memory at its recorded address, never over another
 * mapping. Returns 0, or a code with its message set. ps_segment_unmap unmaps it, with its growth
 * range and its shadow. */
int ps_segment_map_at_recorded(struct perseas *p, struct ps_segment *segment);
void ps_segment_unmap(struct ps_segment *segment);

/* Moves the segment's memory and shadow to `hidden`, so that transactions that begin or end
 * meanwhile do not find it. The caller then unmaps `hidden` without the lock (ps_segment_unmap), or
 * moves it back. Caller holds p->lock. */
void ps_segment_move_memory(struct perseas *p, struct ps_segment *segment,
                            struct ps_segment *hidden);

/* Returns the address of the first byte of a mapped segment. */
static inline uint64_t ps_segment_start_address(const struct ps_segment *segment)
{
	return (uint64_t)(uintptr_t)segment->base;
}

/* Maps the segment's memory at `address`, where nothing may be mapped except a range reserved for
 * it. Returns 0 or an errno (EEXIST: something is mapped there), and sets no message. */
int ps_segment_map_at(struct perseas *p, struct ps_segment *segment, uint64_t address);
/* ps_segment_map_over maps the segment at its recorded address, over existing memory.
 * ps_segment_map_anywhere finds an address that no segment of the store records; EEXIST: every
 * address is taken. Both return 0 or an errno, and set no message. */
int ps_segment_map_over(struct ps_segment *segment);
int ps_segment_map_anywhere(struct perseas *p, struct ps_segment *segment);
/* Sets the message for a failure of ps_segment_map_anywhere. Returns the code. */
int ps_segment_fail_map(const struct perseas *p, const struct ps_segment *segment, int error);

/* Fails with ENOMEM, because the kernel refused the segment's memory with this errno. The message
 * names the limit to raise. Returns the code. */
int ps_segment_fail_memory(const struct perseas *p, const struct ps_segment *segment, int error);

/* Chooses an address for a new segment and maps it there. Reserves the addresses behind it, up to
 * `room` bytes from its start, for growth. Returns 0, or a code with its message set. */
int ps_segment_map_new(struct perseas *p, struct ps_segment *segment, uint64_t room);

/* Extends the addresses reserved for growth to `room` bytes from the start of a mapped segment,
 * which has `whole` bytes with its parts. Both are multiples of the page size. Returns 0 or an
 * errno (EEXIST: something is mapped there). */
int ps_segment_reserve_growth(struct ps_segment *head, uint64_t whole, uint64_t room);

/* Maps a part at the beginning of the segment's growth range, which must be large enough. Returns 0
 * or an errno. */
int ps_segment_map_part(struct ps_segment *head, struct ps_segment *part);

/* ps_segment_add adds an entry for a new segment; it returns NULL if the store has the maximum.
 * ps_segment_forget unmaps a segment and removes its entry. */
struct ps_segment *ps_segment_add(struct perseas *p, const char *name, uint64_t size);
void ps_segment_forget(struct perseas *p, struct ps_segment *segment);

/* Reserves the addresses of the header's published segments for later, and releases all others
 * reserved so far. If header is NULL, releases all. `warning` says what could not be reserved.
 * Called before the store is open. */
void ps_segments_reserve_addresses(struct perseas *p, const Perseas__Header *header, char *warning,
                                   size_t size);

#endif
