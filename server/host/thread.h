/*
 * thread.h - starts threads for jobs.c and lanes.c.
 */
#ifndef PERSEAS_SERVER_THREAD_H
#define PERSEAS_SERVER_THREAD_H

#include <pthread.h>

/* Starts a thread like pthread_create(), with a small stack. Signals sent to the process go to the
 * loop's thread. */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
