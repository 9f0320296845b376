/*
 * turn.h - decides when a standby may open a store that has no owner, both for perseas run and for
 * standbys inside a process (standby.c). It reads no clock and asks no mirror. A wrong decision
 * does no harm, because the open detects it.
 */
#ifndef PERSEAS_CLIENT_TURN_H
#define PERSEAS_CLIENT_TURN_H

#include "follow.h"

enum {
	PS_TURN_STEP_MS = 250,  /* how much longer a standby waits for each step of its order */
	PS_TURN_LOOK_MS = 1000, /* time until the next look while the owner is unknown */
	/* How long the store is left to the standby that a handover names. */
	PS_TURN_YIELD_MS = 5000,
	PS_TURN_YIELD_LOOK_MS = 100, /* time between looks meanwhile */
	/* Rest after an open that failed; doubled by each further failure. */
	PS_TURN_REST_MS = 100,
	PS_TURN_REST_MAX_MS = 10000, /* longest rest */
};

/* When the next open of one standby is due. Set order and zero the rest for a new standby. */
struct ps_turn {
	uint32_t order;
	bool is_free;                         /* the last look found no owner */
	uint32_t failed_open_count;           /* opens that failed in succession */
	uint64_t turn_at_ns;                  /* with is_free: when this standby may open */
	uint64_t rest_until_ns;               /* no open before this time */
	uint8_t last_handover_id[PS_ID_SIZE]; /* id of the handover that was seen last */
	/* Since when the store is free under that handover; 0: it is not. */
	uint64_t yield_since_ns;
};

/* Takes the result of a look. Returns true if this standby may open the store now. Otherwise sets
 * *until_ns to when another look is due without news, or to PS_NEVER. */
bool ps_turn_is_due(struct ps_turn *turn, enum ps_ownership ownership, uint64_t now_ns,
                    uint64_t *until_ns);

/* Takes the result of a look, before ps_turn_is_due. Returns true, with *until_ns set to the time
 * of the next look, if the store must be left to another standby that a handover names and that
 * follows the store. mark: the mark of this standby, by which a handover names it; NULL: none
 * can. */
bool ps_turn_must_yield(struct ps_turn *turn, const struct ps_follow_result *now,
                        const uint8_t *mark, uint64_t now_ns, uint64_t *until_ns);

/* Returns true if the store has no owner and a handover names this standby. It then waits for no
 * turn, but still rests after a failure. mark: the mark of this standby, by which a handover names
 * it; NULL: none can. */
bool ps_turn_is_named(const struct ps_turn *turn, const struct ps_follow_result *now,
                      const uint8_t *mark, uint64_t now_ns);

/* Notes that an open failed although no other owner was seen, so that this standby rests. */
void ps_turn_note_failure(struct ps_turn *turn, uint64_t now_ns);

/* Notes that this standby, or another owner, has opened the store: earlier failures no longer
 * count. */
void ps_turn_reset(struct ps_turn *turn);

#endif
