/*
 * change.h - changes the roster while transactions go on, one mirror at a time. perseas_roster
 * begins a change, or an order that a mirror passes on, and the keeper carries it out.
 *
 *   NONE -> COPYING <-> ASKING -> JOINT -> MARKED -> SETTLING -> RELEASING -> NONE
 *              |          |         |                    |
 *              |          |         +-> CANCELLING       +-> NONE, if no mirror of the
 *              |          |                 |                handle leaves
 *              |          +-> NONE          +-> NONE
 *              +-> NONE, or SETTLING if only an address changes
 *
 * While the change is COPYING, the new mirror has no vote, and nothing changes for other processes.
 * While it is JOINT, commits need W of both rosters. The new roster counts alone once every open of
 * the old roster would see the change, and W of the new roster hold all that was acknowledged. That
 * needs no W of the old roster, so a dead mirror of three can be replaced where W is three. If the
 * old roster has two mirrors, an open through the mirror that left could miss the change: the
 * operator must say that this mirror is gone for good.
 *
 * Callers hold admin. A stage is left under p->lock, too.
 */
#ifndef PERSEAS_CLIENT_CHANGE_H
#define PERSEAS_CLIENT_CHANGE_H

#include "../core/handle.h"
#include "../core/states.h"

extern const struct ps_states ps_change_stages;

/* Returns true if the handle's rosters are those that the stage of its change allows. */
bool ps_change_matches_rosters(const struct perseas *p);

/* Begins a change if none is in progress. `id` is the id of the order, or NULL. Returns 0, or an
 * error code whose sentence is in p->upkeep.change.text. */
int ps_change_begin(struct perseas *p, const struct perseas_roster_change *wanted,
                    const uint8_t *id);

/* Takes back the change in progress. Returns 0; EBUSY if the change is decided; EQUORUM if too few
 * mirrors of the old roster are connected to record the cancellation; or EINVAL if no change is in
 * progress. A sentence is in `text` on failure. */
int ps_change_cancel(struct perseas *p, char *text, size_t size);

/* Takes back the change in progress by an order with this id, whose result is then that of the
 * change. If the order is for another change, or is refused with EQUORUM, it waits, and the
 * change's text says why. */
void ps_change_cancel_by_order(struct perseas *p, const uint8_t *id);

/* Moves the change on as far as possible without waiting. */
void ps_change_step(struct perseas *p, uint64_t now);

/* Does what perseas_roster() does, but returns ETIMEOUT at the time `until`, or when stop() returns
 * true. `stop` may be NULL. The change continues after ETIMEOUT. If the handle is closed, the next
 * open of the store completes the change or does not see it. */
int ps_roster_change_until(struct perseas *p, const struct perseas_roster_change *change,
                           uint64_t until, bool (*stop)(void));

/* Returns true while a thread of the application waits for the end of its change, or has not
 * returned with the result yet. No other change begins meanwhile. */
bool ps_change_has_waiter(struct perseas *p);

/* Returns when the change next needs attention if nothing arrives, or PS_NEVER. */
uint64_t ps_change_due_at(const struct perseas *p, uint64_t now);

#endif
