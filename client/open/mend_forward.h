/*
 * mend_forward.h - sends a mirror the transactions that it missed, so that it reaches the chosen
 * state. adopt.c calls it.
 */
#ifndef PERSEAS_CLIENT_MEND_FORWARD_H
#define PERSEAS_CLIENT_MEND_FORWARD_H

#include "../core/handle.h"

/* Sends mirror `m` each transaction that it missed, read from mirror `from`. Returns 0; 1 if the
 * log does not reach back to the state of `m`, or that state is of another history; or -1 if a
 * session broke. */
int ps_mend_forward(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m);

#endif
