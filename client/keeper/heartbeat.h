/*
 * heartbeat.h - the owner's heartbeat: twice a second, each mirror is asked to confirm this owner's
 * claim (Confirm). The request reports what the owner sees of its mirrors and what it counted. The
 * answer brings what operators order. No thread waits for it, so a stopped mirror never delays the
 * others. Callers hold admin.
 */
#ifndef PERSEAS_CLIENT_HEARTBEAT_H
#define PERSEAS_CLIENT_HEARTBEAT_H

#include "../core/handle.h"

/* Sends a heartbeat if one is due, asks for calls of perseas_confirm (confirm.h), and takes all
 * pending answers that have come (pending_answers.h). */
void ps_heartbeat_step(struct perseas *p, uint64_t now);

/* Breaks the mirror's link because the mirror refused to confirm this owner's claim. The next
 * session tells which owner has the claim. */
void ps_heartbeat_handle_refusal(struct perseas *p, struct ps_mirror *m);

#endif
