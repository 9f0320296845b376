/*
 * roster.h - the roster as this owner changes it. Every change is a newer roster, by (epoch,
 * version), on the mirrors before anything rests on it. Admin, or before open.
 */
#ifndef PERSEAS_CLIENT_ROSTER_H
#define PERSEAS_CLIENT_ROSTER_H

#include "handle.h"

/*
 * The mirror's image bears this id from now on: recorded on the mirrors of `on`, which must be W
 * together with those of `with` (they learn of it otherwise). False: they are fewer.
 */
bool ps_roster_rename(struct perseas *p, struct ps_mirror *m, const uint8_t *image_id,
                      uint32_t on, uint32_t with);

#endif
