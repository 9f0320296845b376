/*
 * cancel.h - keeps pthread_cancel from ending a thread inside the library, where it would leave
 * locks taken and work half done. A function that may reach a cancellation point (a sleep, a system
 * call) begins with PS_UNCANCELLED. On the path of a commit only the functions that sleep or make
 * the call have it, since a pair of pthread_setcancelstate costs 27 ns.
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

/* Among the declarations: cancellation is off until the block ends, and is then as it was. */
#define PS_UNCANCELLED          \
	const int cancel_before \
		__attribute__((cleanup(ps_cancel_restore), unused)) = ps_cancel_disable()

#endif
