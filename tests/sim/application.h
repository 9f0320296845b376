/*
 * application.h - what an owner does: it opens the store, checks what it is shown, and runs
 * transactions on it, until it closes it, is fenced, or is killed.
 */
#ifndef PERSEAS_SIM_APPLICATION_H
#define PERSEAS_SIM_APPLICATION_H

#include "process.h"

/* Starts a new process that runs the application. With `last` it starts after everything healed,
 * and expects every call to succeed. */
struct sim_owner *sim_application_start(struct sim_world *w, uint32_t flags, bool last);

#endif
