/*
 * place.h - where in this process a segment is to lie.
 */
#ifndef PERSEAS_CLIENT_PLACE_H
#define PERSEAS_CLIENT_PLACE_H

#include "../core/handle.h"

enum ps_where {
	PS_WHERE_RECORDED, /* where the store has recorded it; one that is made: anywhere */
	PS_WHERE_AT,       /* there, wherever it is recorded; one that is made is recorded there */
	PS_WHERE_OVER,     /* there, over memory of the caller's, if it is recorded there */
	PS_WHERE_ANY,      /* where it is recorded, or else elsewhere; one that is made: anywhere */
};

struct ps_wish {
	enum ps_where where;
	uint64_t address; /* AT, OVER: a multiple of PS_PAGE */
	bool held;        /* it is not unmapped from then on (struct ps_segment) */
};

/* May a segment that is mapped be handed out for this wish? 0 or EADDRESS. */
int ps_place_is_good(const struct perseas *p, const struct ps_segment *segment,
                     const struct ps_wish *wish);

/* Reserves memory for a segment that exists. 0, ENOMEM or EADDRESS. */
int ps_place_old(struct perseas *p, struct ps_segment *segment, const struct ps_wish *wish);

/* The same for one that is being made, whose address is set. */
int ps_place_new(struct perseas *p, struct ps_segment *segment, const struct ps_wish *wish);

#endif
