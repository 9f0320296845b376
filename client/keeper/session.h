/*
 * session.h - the session of an open owner with each mirror: its states, and how the owner takes up
 * a broken session again.
 *
 *          connected           told              granted            path up             ready
 *    NONE ----------> ASKING ------> CLAIMING --------> ATTACHING ---------> PREPARING ------> UP
 *     ^                 | \             | \                 |                  ^ |             |
 *     |                 |  `-- no image +--`----------------+------------------' |             |
 *     +--- hung up -----+---------------+-------------------+--------------------+-------------+
 *
 * The session with a mirror that must be copied to moves from ASKING to QUEUING and back: the
 * daemon is asked whether a copy may begin. The session ends if not (PROTOCOL.md, "Turns").
 *
 * ASKING learns which daemon answers at the address now, and which image it has, before a claim
 * could cut another member's session (member_address.h).
 *
 * No step waits for a silent mirror. A session moves on when its answer has come or its time is
 * over, and the keeper sleeps on all sessions at once, so a mirror that hangs delays only its own
 * session. While its session is PREPARING, a mirror takes no transactions: it gets room for a whole
 * copy (resync.h), or the segments that are mapped and not yet published. Whether the image counts
 * once the session is UP depends on the mirror's state (mirror.h).
 *
 * An open makes sessions that are UP from the beginning. Callers hold admin.
 */
#ifndef PERSEAS_CLIENT_SESSION_H
#define PERSEAS_CLIENT_SESSION_H

#include "../core/handle.h"
#include "../core/states.h"

/* The delay between the first and the second try to take up a broken session. Later delays are
 * longer. */
#define PS_RETRY_MIN ps_ms(10)

extern const struct ps_states ps_session_states;

/* Moves the session to state `to`, which the table must allow from the present state. */
void ps_session_move(struct perseas *p, struct ps_mirror *m, enum ps_session_state to);

/* Notes the mirror's place in its daemon's line of those that wait for a copy's turn; 0: it does
 * not wait. */
void ps_session_note_copy_place(struct perseas *p, struct ps_mirror *m, uint32_t place);

/* Moves the session of every connected mirror to UP. The caller has just opened the store or
 * renewed its claims, so every connected mirror has granted its claim. */
void ps_sessions_move_to_up(struct perseas *p);

/* Begins the sessions that are due, and moves on those in progress as far as possible without
 * waiting. */
void ps_sessions_step(struct perseas *p);

/* Returns when the session next needs attention if nothing arrives, or PS_NEVER. */
uint64_t ps_session_due_at(const struct perseas *p, const struct ps_mirror *m);

/* Disconnects every mirror whose session is in progress. The store is being closed. */
void ps_sessions_close(struct perseas *p);

/* Ends the session with mirror `m`, if it has one: the data path, the control connection, and the
 * requests that still await an answer there. The mirror must not be active. Caller holds admin, or
 * is the only thread that uses the handle. */
void ps_mirror_disconnect(struct perseas *p, struct ps_mirror *m);

#endif
