/*
 * session.h - how an owner that is open takes up its session with a mirror again.
 *
 *          connected           told              granted            path up             ready
 *    NONE ----------> ASKING ------> CLAIMING --------> ATTACHING ---------> PREPARING ------> UP
 *     ^                 | \             | \                 |                  ^ |             |
 *     |                 |  `-- no image +--`----------------+------------------' |             |
 *     +--- hung up -----+---------------+-------------------+--------------------+-------------+
 *
 * ASKING learns which daemon the address leads to by now, and which image it has, before a claim
 * could cut another member's session (member_address.h).
 *
 * Nothing here waits for a mirror that is silent: each session is moved on when its answer is
 * there, or when its time is over, and the keeper sleeps on all of them at once. So a mirror
 * that hangs holds up nothing but its own session. What the mirror's image then takes part in is
 * its state (mirror.h). While the session is PREPARING the mirror gets room for a copy of the image
 * (resync.h), or the segments that are not published, and takes no transactions.
 *
 * Sessions that an open made are UP from the beginning. All of it is done with admin.
 */
#ifndef PERSEAS_CLIENT_SESSION_H
#define PERSEAS_CLIENT_SESSION_H

#include "../core/handle.h"
#include "../core/states.h"

extern const struct ps_states ps_session_states;

/* The store is open, or this owner claimed it again: every mirror that is connected has a session
 * with its claim. */
void ps_sessions_opened(struct perseas *p);

/* Begins the sessions that are due, and moves on those under way, as far as that goes without
 * waiting. */
void ps_sessions_step(struct perseas *p);

/* Until when there is nothing to do for a session, if nothing comes. */
uint64_t ps_session_due(const struct perseas *p, const struct ps_mirror *m);

/* Those under way are given up: the store is being closed. */
void ps_sessions_close(struct perseas *p);

/* Ends the session with mirror `m`, if there is one: the link, the control connection, and the
 * requests whose answers are still due on it. The mirror must not be active. Caller has admin. */
void ps_mirror_disconnect(struct perseas *p, struct ps_mirror *m);

#endif
