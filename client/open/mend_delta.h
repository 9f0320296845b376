/*
 * mend_delta.h - makes a mirror's image equal to another one by copying only the ranges that the
 * logs of both mirrors name. adopt.c calls it.
 */
#ifndef PERSEAS_CLIENT_MEND_DELTA_H
#define PERSEAS_CLIENT_MEND_DELTA_H

#include "../core/handle.h"

/* A delta in place. 0; 1: the logs do not reach, or more changed than there is; -1: a session
 * broke. */
int ps_mend_delta(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m);

#endif
