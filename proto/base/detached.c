/*
 * detached.c - starts detached threads (see detached.h).
 */
#include "detached.h"

#include <pthread.h>
#include <signal.h>

int ps_detached_thread_start(void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		pthread_detach(thread);
	return error;
}
