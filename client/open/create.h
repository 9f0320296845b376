/*
 * create.h - makes a store where there is none. A step of an attempt (attempt.h).
 */
#ifndef PERSEAS_CLIENT_CREATE_H
#define PERSEAS_CLIENT_CREATE_H

#include "../core/handle.h"

/* With the mirrors probed: makes the store on all of them. PS_AGAIN: another create was in the way,
 * or how it ended must be asked. */
int ps_create_probed(struct perseas *p);

/* Withdraws creates that other processes began and did not finish. Returns 0; PS_AGAIN if one was
 * decided, and is completed; EUNFINISHED if another process fills the store. */
int ps_create_clear(struct perseas *p);

#endif
