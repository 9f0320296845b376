/*
 * choose.h - chooses the state that an attempt to open a store adopts (I6; attempt.h).
 */
#ifndef PERSEAS_CLIENT_CHOOSE_H
#define PERSEAS_CLIENT_CHOOSE_H

#include "../core/handle.h"

/* Sets *chosen to the newest state of the claimed images. Returns 0, PS_AGAIN, or an error code:
 * PERSEAS_EQUORUM if fewer than R of them count. */
int ps_choose_state(struct perseas *p, struct ps_image_position *chosen);

#endif
