/*
 * keeper.h - the keeper: the thread of each open handle that takes up broken sessions, copies
 * images and changes the roster while the application commits (keeper.c).
 */
#ifndef PERSEAS_CLIENT_KEEPER_H
#define PERSEAS_CLIENT_KEEPER_H

struct perseas;

/* Runs the keeper of the handle `arg` until p->is_stopping is set. For the env's `spawn`. */
void ps_keeper_run(void *arg);

/* Takes the answers that have come, and breaks the links of mirrors whose session is over or that
 * have been silent for mirror_timeout_ms. A message that no caller takes counts as a sign of life.
 * Caller holds admin, but not p->lock. */
void ps_sessions_break_ended(struct perseas *p);

#endif
