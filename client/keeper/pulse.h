/*
 * pulse.h - the owner's sign of life. Now and then every mirror is asked whether this owner still
 * holds its claim there; it hears with that what the owner sees of its mirrors and what it counted,
 * and answers with what an operator asks of the owner. Nobody waits for the answers: a mirror that
 * is stopped must not hold up the others. Admin.
 */
#ifndef PERSEAS_CLIENT_PULSE_H
#define PERSEAS_CLIENT_PULSE_H

#include "../core/handle.h"

/* Asks, when it is time, and takes the answers that are there, also those to other requests
 * (due.h). */
void ps_pulse(struct perseas *p, uint64_t now);

#endif
