/*
 * adopt.h - makes the chosen state the current state of this owner (I7 to I9). The last step of an
 * attempt to open a store (attempt.h).
 */
#ifndef PERSEAS_CLIENT_ADOPT_H
#define PERSEAS_CLIENT_ADOPT_H

#include "../core/handle.h"

/* Writes the chosen state, under this owner's epoch, to at least W mirrors and to every other
 * mirror that can be mended. With PERSEAS_SALVAGE, writes to no mirror and only loads the segment
 * table. Returns 0, PS_AGAIN, or an error code. */
int ps_adopt_state(struct perseas *p, const struct ps_image_position *chosen);

#endif
