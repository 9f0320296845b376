/*
 * change.h - changes of the roster while transactions go on, one mirror at a time: the owner's, by
 * perseas_roster, or by an order that a mirror passes on. The keeper carries them out.
 *
 *   NONE -> COPYING -> JOINT -> MARKED -> SETTLING -> NONE
 *              |         |
 *              |         +----> CANCELLING -> NONE
 *              +----> NONE
 *
 * COPYING has no vote and changes nothing for anybody. While it is JOINT, commits need W of both
 * rosters. The new one counts alone once every open of the old one would see the change, and W of
 * the new one hold all that was acknowledged; this needs no W of the old one, so that a dead
 * mirror of three can be replaced where W is three. Of two, the one that is left cannot be seen by
 * an open through the other: the operator must say that it is gone.
 *
 * All of it is done with admin, and a stage is left with the lock, too.
 */
#ifndef PERSEAS_CLIENT_CHANGE_H
#define PERSEAS_CLIENT_CHANGE_H

#include "../core/handle.h"
#include "../core/states.h"

extern const struct ps_states ps_change_stages;

/* Are the handle's rosters what they are in the stage of its change? */
bool ps_change_is_sound(const struct perseas *p);

/* Begins a change, where none goes on; id is that of the order, or NULL. 0, or a code with its text
 * in p->upkeep.change. */
int ps_change_begin(struct perseas *p, const struct perseas_roster_change *wanted,
                    const uint8_t *id);

/* Takes the change back that goes on. 0; or EBUSY (it is decided), EQUORUM (too few mirrors of the
 * roster as it was are connected to record that) or EINVAL (there is none), with a text. */
int ps_change_cancel(struct perseas *p, char *text, size_t size);

/* The same, by an order; its result is that of the change. One for another change waits, and so
 * does one that is refused with EQUORUM: the text of the change says why. */
void ps_change_obey_cancel(struct perseas *p, const uint8_t *id);

/* Goes on, as far as it goes without waiting. */
void ps_change_step(struct perseas *p, uint64_t now);

/* As perseas_roster(), which waits until then, and no longer than stop() is false (NULL: always).
 * ETIMEOUT: the change is not over. It goes on; of a handle that is closed, the next open of the
 * store completes it, or knows nothing of it. */
int ps_roster_until(struct perseas *p, const struct perseas_roster_change *change, uint64_t until,
                    bool (*stop)(void));

/* Does a thread of the application wait for the end of its change, or has not yet seen it? No other
 * change begins before. */
bool ps_change_is_awaited(struct perseas *p);

/* Until when there is nothing to do for it: PS_NEVER when none goes on. */
uint64_t ps_change_due(const struct perseas *p, uint64_t now);

#endif
