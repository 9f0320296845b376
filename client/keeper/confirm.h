/*
 * confirm.h - asks mirrors for perseas_confirm whether they still hold this owner's claim. Each
 * question is sent after the call that it answers. session.c, keeper.c and heartbeat.c call this;
 * callers hold admin.
 */
#ifndef PERSEAS_CLIENT_CONFIRM_H
#define PERSEAS_CLIENT_CONFIRM_H

#include "../core/handle.h"

/* Asks the mirrors whose answers can count whether they still hold this owner's claim, if a call of
 * perseas_confirm needs that. Never waits. */
void ps_confirm_step(struct perseas *p);

/* Forgets what the mirror confirmed, because its session has ended. */
void ps_confirm_forget_mirror(struct perseas *p, struct ps_mirror *m);

#endif
