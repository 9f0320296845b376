/*
 * detached.h - threads that nobody waits for. Lookups of names call it. Such a thread may still run
 * after all handles are closed, and while the process exits, so it must only use what it owns.
 */
#ifndef PERSEAS_PROTO_DETACHED_H
#define PERSEAS_PROTO_DETACHED_H

/* Starts a detached thread, which gets no signals: these are for the application's threads. Returns
 * 0 or an errno. */
int ps_detached_start(void *(*run)(void *arg), void *arg);

#endif
