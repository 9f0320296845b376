/*
 * turn.h - whose turn it is to open a store that has no owner: the decision of every standby, for
 * a process of its own (perseas run) and inside a process (standby.c). It looks at no clock and
 * asks nobody. A wrong decision does no harm: the open that follows finds out.
 */
#ifndef PERSEAS_CLIENT_TURN_H
#define PERSEAS_CLIENT_TURN_H

#include "follow.h"

enum {
	PS_TURN_STEP_MS = 250,   /* that each step of the order waits */
	PS_TURN_LOOK_MS = 1000,  /* until the next look while it is not known who the owner is */
	PS_TURN_YIELD_MS = 5000, /* that the store is left to one that is to be next */
	PS_TURN_HELD_MS = 100,   /* between two looks meanwhile */
	PS_TURN_REST_MS = 100,   /* after an open that failed; twice as long after each other */
	PS_TURN_REST_MAX_MS = 10000, /* but no longer than this */
};

/* Zeroed, but for the first, for a new standby. */
struct ps_turn {
	uint32_t order;
	bool free;                /* at the last look it had no owner */
	uint32_t failures;        /* opens in succession */
	uint64_t at_ns;           /* free: then it is this one's turn */
	uint64_t rested_ns;       /* not before */
	uint8_t held[PS_ID_SIZE]; /* the handover that was seen last */
	uint64_t held_ns; /* since when the store is left to who is meant by it; 0: it is not */
};

/* A look found this. Is it this standby's turn now? *until_ns: when another look is due although
 * there is no news; PS_NEVER: none is. */
bool ps_turn_comes(struct ps_turn *turn, enum ps_ownership ownership, uint64_t now_ns,
                   uint64_t *until_ns);

/* A look found that another standby is to be next, and is there: is it left the time to open the
 * store? Then *until_ns is when another look is due. mark: this one's, by which it is asked for;
 * NULL: it never is. Before ps_turn_comes. */
bool ps_turn_is_held(struct ps_turn *turn, const struct ps_standing_now *now, const uint8_t *mark,
                     uint64_t now_ns, uint64_t *until_ns);

/* A look found that the store has no owner, and is to be this standby's: it waits for no turn, but
 * rests after a failure like any other. mark: as above. */
bool ps_turn_is_heir(const struct ps_turn *turn, const struct ps_standing_now *now,
                     const uint8_t *mark, uint64_t now_ns);

/* It was its turn, and the open failed though no other owner was seen: it rests. */
void ps_turn_failed(struct ps_turn *turn, uint64_t now_ns);

/* It had its turn, or another owner has: what failed before no longer counts. */
void ps_turn_over(struct ps_turn *turn);

#endif
