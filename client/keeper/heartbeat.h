/*
 * heartbeat.h - the owner's sign of life. Now and then every mirror is asked whether this owner
 * still holds its claim there; it hears with that what the owner sees of its mirrors and what it
 * counted, and answers with what an operator asks of the owner. Nobody waits for the answers: a
 * mirror that is stopped must not hold up the others. Admin.
 */
#ifndef PERSEAS_CLIENT_HEARTBEAT_H
#define PERSEAS_CLIENT_HEARTBEAT_H

#include "../core/handle.h"

/* Asks, when it is time, or when a thread waits in perseas_confirm (confirm.h), and takes the
 * answers that are there, also those to other requests (due.h). */
void ps_pulse(struct perseas *p, uint64_t now);

/* The mirror refused to confirm this owner's claim: its session is of no more use. Taking it up
 * again tells whose claim it has. */
void ps_pulse_refused(struct perseas *p, struct ps_mirror *m);

#endif
