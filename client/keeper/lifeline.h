/*
 * lifeline.h - a second connection to each mirror that ends at once when this process is killed.
 * The system may need long to free a large memory before it closes the session's own connection
 * (env.h, `give_to_lifeline_thread`). When its lifeline ends, the mirror ends the session, as it
 * would a moment later ("Lifelines" in PROTOCOL.md). session.c and keeper.c call this, and hold
 * admin.
 *
 * A lifeline is only a hint: if it cannot be had or is over, the session goes on. It must never
 * wait, nor end before the mirror has answered a Release. A session with shared memory has none: a
 * claimer of an image whose owner process still exists gets a copy of it.
 */
#ifndef PERSEAS_CLIENT_LIFELINE_H
#define PERSEAS_CLIENT_LIFELINE_H

#include "../core/handle.h"

/* Notes whether the grant allows a lifeline, and the session's token. */
void ps_lifeline_note_grant(struct ps_mirror *m, const Perseas__Grant *grant);

/* Schedules the request for a lifeline, the second connection, of a session that is up. */
void ps_lifeline_schedule(struct perseas *p, struct ps_mirror *m);

/* Asks for the lifelines that are due, and takes the mirrors' answers. */
void ps_lifelines_step(struct perseas *p);

/* Returns when the lifeline next needs attention if no answer comes, or PS_NEVER. */
uint64_t ps_lifeline_due_at(const struct ps_mirror *m);

/* Fills in *fd with what to poll until the mirror may have answered. Returns false if there is
 * nothing to poll. */
bool ps_lifeline_fill_pollfd(const struct perseas *p, const struct ps_mirror *m, struct pollfd *fd);

/* Ends the lifeline, after this end has ended the session. */
void ps_lifeline_disconnect(struct perseas *p, struct ps_mirror *m);

#endif
