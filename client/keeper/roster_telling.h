/*
 * roster_telling.h - the mirrors are told the rosters as they are now, and nobody waits for their
 * answers: these are taken when they come (due.h), and the keeper looks again. One that hangs holds
 * up what needs it, and nothing else. Admin.
 */
#ifndef PERSEAS_CLIENT_ROSTER_TELLING_H
#define PERSEAS_CLIENT_ROSTER_TELLING_H

#include "../core/handle.h"

/* Tells those of a set that have not been told the present rosters, now and then again. Those that
 * have recorded them, on a session that lasts. */
uint32_t ps_tell(struct perseas *p, uint32_t set);

/* Its session ended. */
void ps_telling_ended(struct perseas *p, struct ps_mirror *m);

/* When there is something to tell again. */
uint64_t ps_telling_due(const struct perseas *p);

#endif
