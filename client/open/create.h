/*
 * create.h - creates a store that no mirror has. A step of an attempt to open a store (attempt.h).
 */
#ifndef PERSEAS_CLIENT_CREATE_H
#define PERSEAS_CLIENT_CREATE_H

#include "../core/handle.h"

/* Creates the store on all given mirrors, which must have been probed. Returns 0, an error code, or
 * PS_AGAIN if another process creates the store at the same time, or if a new probe must show
 * whether this call succeeded. */
int ps_create_after_probe(struct perseas *p);

/* Withdraws unfinished creations of the store by other processes. Returns 0 if no mirror has an
 * unfinished creation any more. Returns PS_AGAIN if one was already decided, which this call then
 * completed; PERSEAS_EUNFINISHED if another process is filling the store; or another error code. */
int ps_create_withdraw_unfinished(struct perseas *p);

#endif
