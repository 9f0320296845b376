/*
 * placement.h - at which addresses of this process a segment is mapped.
 */
#ifndef PERSEAS_CLIENT_PLACEMENT_H
#define PERSEAS_CLIENT_PLACEMENT_H

#include "../core/handle.h"

enum ps_where {
	PS_WHERE_RECORDED, /* where the store has recorded it; one that is made: anywhere */
	PS_WHERE_AT,       /* there, wherever it is recorded; one that is made is recorded there */
	PS_WHERE_OVER,     /* there, over memory of the caller's, if it is recorded there */
	PS_WHERE_ANY,      /* where it is recorded, or else elsewhere; one that is made: anywhere */
	PS_WHERE_BEHIND,   /* one that is made: it is the next part of the segment `of` */
};

struct ps_wish {
	enum ps_where where;
	uint64_t address; /* AT, OVER: a multiple of PS_PAGE */
	bool held;        /* it is not unmapped from then on (struct ps_segment) */
	bool grows;       /* as perseas_map_reserve: of any size, if it exists */
	uint64_t room;    /* addresses from its first byte on that are kept for it; 0: its own */
	uint32_t of;      /* BEHIND: id */
};

/* May a segment that is mapped be handed out for this wish? 0 or EADDRESS. */
int ps_place_is_good(struct perseas *p, struct ps_segment *segment, const struct ps_wish *wish);

/* Reserves memory for a segment that exists, and for its parts. 0, ENOMEM or EADDRESS. */
int ps_place_old(struct perseas *p, struct ps_segment *segment, const struct ps_wish *wish);

/* The memory of a segment and its parts, which ps_place_old reserved, is given back. */
void ps_place_undo(struct perseas *p, struct ps_segment *segment);

/* The same for one that is being made, whose address is set. */
int ps_place_new(struct perseas *p, struct ps_segment *segment, const struct ps_wish *wish);

#endif
