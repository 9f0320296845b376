/*
 * confirm.h - perseas_confirm's questions: whether mirrors still hold this owner's claim, asked
 * after the call. session.c, keeper.c and heartbeat.c call this.
 */
#ifndef PERSEAS_CLIENT_CONFIRM_H
#define PERSEAS_CLIENT_CONFIRM_H

#include "../core/handle.h"

/* Asks the mirrors that may count, if a call waits for their answers. It does not wait. Admin. */
void ps_confirm_step(struct perseas *p);

/* The mirror's session is over: what was confirmed over it no longer counts. Admin. */
void ps_confirm_forget(struct perseas *p, struct ps_mirror *m);

#endif
