/*
 * forward.h - brings a mirror that is behind to the chosen state by what it missed. For adopt.c.
 */
#ifndef PERSEAS_CLIENT_FORWARD_H
#define PERSEAS_CLIENT_FORWARD_H

#include "../core/handle.h"

/* Transaction by transaction. 0; 1: the log does not reach, or it stands in another history; -1: a
 * session broke. */
int ps_mend_forward(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m);

#endif
