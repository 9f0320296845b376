/*
 * roster_telling.h - tells mirrors the present rosters without waiting for their answers. The
 * answers are taken when they come (pending_answers.h), and the keeper checks again. A mirror that
 * hangs delays only the work that needs its answer. Callers hold admin.
 */
#ifndef PERSEAS_CLIENT_ROSTER_TELLING_H
#define PERSEAS_CLIENT_ROSTER_TELLING_H

#include "../core/handle.h"

/* Tells the present rosters to the mirrors of `set` that have not been told yet, and again to those
 * that did not record them. Returns all mirrors that have recorded them in a session that is still
 * up. */
uint32_t ps_roster_tell_mirrors(struct perseas *p, uint32_t set);

/* Forgets what mirror `m` has recorded, because its session has ended. */
void ps_roster_forget_what_mirror_recorded(struct perseas *p, struct ps_mirror *m);

/* Returns when mirrors must be told again. */
uint64_t ps_roster_tell_due_at(const struct perseas *p);

#endif
