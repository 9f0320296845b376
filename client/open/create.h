/*
 * create.h - makes a store where there is none. A step of an attempt (attempt.h).
 */
#ifndef PERSEAS_CLIENT_CREATE_H
#define PERSEAS_CLIENT_CREATE_H

#include "../core/handle.h"

/* With the mirrors probed: makes the store on all of them. PS_AGAIN: another create was in the way,
 * or how it ended must be asked. */
int ps_create_probed(struct perseas *p);

/* Withdraws the makings that others began and did not finish, or are still at. PS_AGAIN: one was
 * decided, and is completed. EUNFINISHED: one is of a store that another process fills. */
int ps_create_clear(struct perseas *p);

#endif
