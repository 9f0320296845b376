/*
 * detached.h - threads that are never joined. Name lookups use them, because getaddrinfo() cannot
 * be canceled. Such a thread may still run after all handles are closed and while the process
 * exits, so it must use only memory that it owns.
 */
#ifndef PERSEAS_PROTO_DETACHED_H
#define PERSEAS_PROTO_DETACHED_H

/* Starts a detached thread with all signals blocked, so that signals go to the application's
 * threads. Returns 0 or an errno. */
int ps_detached_thread_start(void *(*run)(void *arg), void *arg);

#endif
