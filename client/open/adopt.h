/*
 * adopt.h - the chosen state becomes this owner's (I7 to I9). A step of an attempt (attempt.h).
 */
#ifndef PERSEAS_CLIENT_ADOPT_H
#define PERSEAS_CLIENT_ADOPT_H

#include "../core/handle.h"

/* On W mirrors at least, and on those that can be mended; with PERSEAS_SALVAGE on none. */
int ps_adopt(struct perseas *p, const struct ps_standing *chosen);

#endif
