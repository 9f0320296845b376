/*
 * mend_forward.h - sends a mirror the transactions that it missed, so that it reaches the chosen
 * state. adopt.c calls it.
 */
#ifndef PERSEAS_CLIENT_MEND_FORWARD_H
#define PERSEAS_CLIENT_MEND_FORWARD_H

#include "../core/handle.h"

/* Transaction by transaction. 0; 1: the log does not reach, or it stands in another history; -1: a
 * session broke. */
int ps_mend_forward(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m);

#endif
