/*
 * mend_delta.h - makes a mirror's image equal to another one by copying only the ranges that the
 * logs of both mirrors name. adopt.c calls it.
 */
#ifndef PERSEAS_CLIENT_MEND_DELTA_H
#define PERSEAS_CLIENT_MEND_DELTA_H

#include "../core/handle.h"

/* Copies the delta from mirror `from` to mirror `m` in place. Returns 0; 1 if the logs do not reach
 * back far enough or the delta is larger than the store, so that a whole copy is needed; or -1 if a
 * session broke. */
int ps_mend_delta(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m);

#endif
