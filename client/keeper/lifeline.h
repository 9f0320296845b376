/*
 * lifeline.h - a second connection to each mirror, which ends at once when this process is killed:
 * the system may take long to free a large memory before it closes the session's own connection
 * (env.h, `entrust`). The mirror then ends the session, as it would a moment later ("Lifelines" in
 * PROTOCOL.md). session.c and keeper.c call it, with admin.
 *
 * It is a hint, and nothing depends on it: where it cannot be had, or is over, the session goes on.
 * It must never wait, nor end before the mirror has answered a Release. There is none where memory
 * is shared, since who claims the image of a process that is not yet gone gets a copy of it.
 */
#ifndef PERSEAS_CLIENT_LIFELINE_H
#define PERSEAS_CLIENT_LIFELINE_H

#include "../core/handle.h"

/* Notes what a grant says of the session. */
void ps_lifeline_note(struct ps_mirror *m, const Perseas__Grant *grant);

/* The session is up. */
void ps_lifeline_begin(struct perseas *p, struct ps_mirror *m);

/* Takes the answers that are there. */
void ps_lifelines_step(struct perseas *p);

/* Until when there is nothing to do for it, if no answer comes. */
uint64_t ps_lifeline_due(const struct ps_mirror *m);

/* What to wait for until an answer may be there. False: nothing. */
bool ps_lifeline_waits(const struct perseas *p, const struct ps_mirror *m, struct pollfd *fd);

/* The session is over at this end. */
void ps_lifeline_end(struct perseas *p, struct ps_mirror *m);

#endif
