/*
 * placement.h - at which addresses of this process a segment is mapped.
 */
#ifndef PERSEAS_CLIENT_PLACEMENT_H
#define PERSEAS_CLIENT_PLACEMENT_H

#include "../core/handle.h"

enum ps_place_where {
	PS_PLACE_RECORDED, /* at the recorded address; a new segment: anywhere */
	PS_PLACE_AT,       /* at `address`; a new segment is also recorded there */
	/* At `address`, replacing memory that perseas_retain left; must be the recorded address. */
	PS_PLACE_OVER,
	PS_PLACE_ANY,    /* at the recorded address if it is free, else anywhere */
	PS_PLACE_BEHIND, /* a new segment only: behind the segment `head_id`, as its next part */
};

struct ps_placement {
	enum ps_place_where where;
	uint64_t address;      /* for PS_PLACE_AT and PS_PLACE_OVER; a multiple of PS_PAGE */
	bool is_for_heap;      /* increments the segment's heap_count: it cannot be unmapped */
	bool accepts_any_size; /* accepts an existing segment of a size other than the caller's */
	/* Bytes of address space to reserve from the segment's start on, to grow into; 0: its
	 * size. */
	uint64_t reserve_size;
	uint32_t head_id; /* for PS_PLACE_BEHIND: id of the segment that grows */
};

/* Checks that a segment that is already mapped satisfies the placement, and extends its reserved
 * addresses. Returns 0, PERSEAS_EADDRESS, PERSEAS_EINVAL or PERSEAS_ENOMEM. */
int ps_place_check_mapped(struct perseas *p, struct ps_segment *segment,
                          const struct ps_placement *placement);

/* Reserves memory for an existing segment and all of its parts. Returns 0, or PERSEAS_EADDRESS,
 * PERSEAS_EINVAL or PERSEAS_ENOMEM, after which nothing is reserved. */
int ps_place_existing_segment(struct perseas *p, struct ps_segment *segment,
                              const struct ps_placement *placement);

/* Frees the memory that ps_place_existing_segment reserved for a segment and its parts. */
void ps_place_undo(struct perseas *p, struct ps_segment *segment);

/* Reserves memory for a new segment, and sets the address at which the store records it. Returns 0
 * or an error code. */
int ps_place_new_segment(struct perseas *p, struct ps_segment *segment,
                         const struct ps_placement *placement);

#endif
