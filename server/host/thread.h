/*
 * thread.h - how each thread of the daemon begins, for jobs.c and lanes.c.
 */
#ifndef PERSEAS_SERVER_THREAD_H
#define PERSEAS_SERVER_THREAD_H

#include <pthread.h>

/* As pthread_create(), on a small stack. Signals that are sent to the process go to the loop's
 * thread. */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
