/*
 * mend.h - makes a mirror's image that of another in place, by what the logs of both changed. For
 * adopt.c.
 */
#ifndef PERSEAS_CLIENT_MEND_H
#define PERSEAS_CLIENT_MEND_H

#include "../core/handle.h"

/* A delta in place. 0; 1: the logs do not reach, or more changed than there is; -1: a session
 * broke. */
int ps_mend_delta(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m);

#endif
