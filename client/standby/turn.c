/*
 * turn.c - see turn.h.
 */
#include "turn.h"

#include <string.h>

#define MS_NS ((uint64_t)1000000)

bool ps_turn_is_due(struct ps_turn *turn, enum ps_ownership ownership, uint64_t now_ns,
                    uint64_t *until_ns)
{
	*until_ns = PS_NEVER;
	if (ownership != PS_OWNER_NONE) {
		turn->is_free = false;
		if (ownership == PS_OWNER_UNKNOWN)
			*until_ns = now_ns + PS_TURN_LOOK_MS * MS_NS;
		/* An owner has the store: earlier failed opens say nothing about the next one. */
		else
			ps_turn_reset(turn);
		return false;
	}
	if (!turn->is_free)
		turn->turn_at_ns = now_ns + (uint64_t)turn->order * PS_TURN_STEP_MS * MS_NS;
	turn->is_free = true;
	/* A standby that rests has also waited for those before it. */
	if (turn->turn_at_ns < turn->rest_until_ns)
		turn->turn_at_ns = turn->rest_until_ns;
	if (now_ns >= turn->turn_at_ns)
		return true;
	*until_ns = turn->turn_at_ns;
	return false;
}

static bool is_for_mark(const struct ps_handover_state *handing, const uint8_t *mark)
{
	return mark && !memcmp(handing->to, mark, PS_OWNER_MARK);
}

bool ps_turn_is_named(const struct ps_turn *turn, const struct ps_follow_result *now,
                      const uint8_t *mark, uint64_t now_ns)
{
	return now->ownership == PS_OWNER_NONE && now->handover.exists &&
	       is_for_mark(&now->handover, mark) && now_ns >= turn->rest_until_ns;
}

/* Notes a handover, and since when the store is free under it. Claims that do not end in an open do
 * not extend the time that the named standby gets. */
static void note_handover(struct ps_turn *turn, const struct ps_follow_result *now, uint64_t now_ns)
{
	const struct ps_handover_state *handing = &now->handover;

	if (!handing->exists)
		return;
	if (now->ownership != PS_OWNER_NONE ||
	    memcmp(turn->last_handover_id, handing->id, PS_ID_SIZE) != 0)
		turn->yield_since_ns = 0;
	memcpy(turn->last_handover_id, handing->id, PS_ID_SIZE);
	if (now->ownership == PS_OWNER_NONE && !turn->yield_since_ns)
		turn->yield_since_ns = now_ns;
}

bool ps_turn_must_yield(struct ps_turn *turn, const struct ps_follow_result *now,
                        const uint8_t *mark, uint64_t now_ns, uint64_t *until_ns)
{
	note_handover(turn, now, now_ns);
	if (now->ownership != PS_OWNER_NONE || !now->handover.is_present ||
	    is_for_mark(&now->handover, mark) ||
	    now_ns >= turn->yield_since_ns + PS_TURN_YIELD_MS * MS_NS)
		return false;
	*until_ns = now_ns + PS_TURN_YIELD_LOOK_MS * MS_NS;
	return true;
}

void ps_turn_note_failure(struct ps_turn *turn, uint64_t now_ns)
{
	uint64_t ms = PS_TURN_REST_MS;

	for (uint32_t i = 0; i < turn->failed_open_count && ms < PS_TURN_REST_MAX_MS; i++)
		ms *= 2;
	if (ms > PS_TURN_REST_MAX_MS)
		ms = PS_TURN_REST_MAX_MS;
	turn->failed_open_count++;
	turn->rest_until_ns = now_ns + ms * MS_NS;
	turn->is_free = false;
}

void ps_turn_reset(struct ps_turn *turn)
{
	turn->is_free = false;
	turn->failed_open_count = 0;
	turn->rest_until_ns = 0;
}
