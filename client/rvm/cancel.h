/*
 * cancel.h - keeps pthread_cancel from ending a thread inside a function of RVM or RDS, where it
 * would leave locks held and files half written. The public functions that may reach a cancellation
 * point begin with PS_RVM_UNCANCELLED: those that wait, read or write files, or print. The
 * functions of an RVM transaction reach none, since those of the store see to it themselves.
 */
#ifndef PERSEAS_RVM_CANCEL_H
#define PERSEAS_RVM_CANCEL_H

#include <pthread.h>

static inline int ps_rvm_cancel_disable(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void ps_rvm_cancel_restore(const int *before)
{
	int ignored;

	pthread_setcancelstate(*before, &ignored);
}

/* Used as a declaration: disables cancellation until the function returns, then restores it. */
#define PS_RVM_UNCANCELLED      \
	const int cancel_before \
		__attribute__((cleanup(ps_rvm_cancel_restore), unused)) = ps_rvm_cancel_disable()

#endif
