/*
 * thread.c - starts the daemon's threads. They take no signals except faults: truncated memory
 * raises SIGBUS in the thread that touches it (proto/image/sigbus_guard.h).
 */
#include "thread.h"

#include <signal.h>

enum { STACK_SIZE = 512 << 10 };

int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	pthread_attr_t attributes;
	sigset_t most, before;
	int error;

	sigfillset(&most);
	sigdelset(&most, SIGBUS);
	sigdelset(&most, SIGSEGV);
	sigdelset(&most, SIGFPE);
	sigdelset(&most, SIGILL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	pthread_sigmask(SIG_SETMASK, &most, &before);
	error = pthread_create(thread, &attributes, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}
