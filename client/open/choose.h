/*
 * choose.h - which state an attempt to open a store adopts (I6; attempt.h).
 */
#ifndef PERSEAS_CLIENT_CHOOSE_H
#define PERSEAS_CLIENT_CHOOSE_H

#include "../core/handle.h"

/* Examines what is claimed; *chosen is the newest state of it. EQUORUM: too few can tell. */
int ps_choose(struct perseas *p, struct ps_standing *chosen);

#endif
