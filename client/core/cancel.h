/*
 * cancel.h - keeps pthread_cancel from ending a thread inside the library, where it would leave
 * locks held and work half done. Every function that may reach a cancellation point (a sleep, a
 * system call) begins with PS_UNCANCELLED. In the path of a commit only the functions that sleep or
 * make the system call do, since a pair of calls to pthread_setcancelstate costs 27 ns.
 */
#ifndef PERSEAS_CLIENT_CANCEL_H
#define PERSEAS_CLIENT_CANCEL_H

#include <pthread.h>

static inline int ps_cancel_disable(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void ps_cancel_restore(const int *before)
{
	int ignored;

	pthread_setcancelstate(*before, &ignored);
}

/* Used as a declaration: disables cancellation until the end of the block, then restores it. */
#define PS_UNCANCELLED          \
	const int cancel_before \
		__attribute__((cleanup(ps_cancel_restore), unused)) = ps_cancel_disable()

#endif
