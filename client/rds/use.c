/*
 * use.c - serializes changes of the heap: one transaction at a time may have changed it, until it
 * ends (rds.h). A thread has ps_rds.lock only during a call.
 */
#include "fail.h"
#include "heap.h"

#include <stdarg.h>

struct ps_rds ps_rds = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Returns true if another transaction than `tid` has changed the heap and is still open. Declaring
 * a range of length 0 changes nothing, and tells whether a transaction is open. */
static bool is_changed_by_other(const rvm_tid_t *tid)
{
	if (ps_rds.user.struct_id != rvm_tid_id ||
	    (tid && tid->tid == ps_rds.user.tid && tid->reserved == ps_rds.user.reserved))
		return false;
	return rvm_set_range(&ps_rds.user, ps_rds.base, 0) == RVM_SUCCESS;
}

static int check_transaction(rvm_tid_t *tid)
{
	rvm_return_t code;

	if (!ps_rds.base)
		return ps_rds_fail(EHEAP_INIT, "no heap is started: call rds_load_heap or "
		                               "rds_start_heap first");
	if (is_changed_by_other(tid))
		return ps_rds_fail(RVM_EUNCOMMIT,
		                   "another transaction has changed the heap, and is open: end it "
		                   "first");
	code = tid ? rvm_set_range(tid, ps_rds.base, 0) : RVM_SUCCESS;
	return code == RVM_SUCCESS ? SUCCESS : ps_rds_fail_rvm(code, "the heap cannot be changed");
}

int ps_rds_begin_change(rvm_tid_t **tid, rvm_tid_t *own)
{
	rvm_return_t begun;
	int code;

	pthread_mutex_lock(&ps_rds.lock);
	code = check_transaction(*tid);
	if (code == SUCCESS && !*tid) {
		rvm_init_tid(own);
		begun = rvm_begin_transaction(own, restore);
		if (begun != RVM_SUCCESS)
			code = ps_rds_fail_rvm(begun, "the heap cannot be changed");
		*tid = own;
	}
	if (code == SUCCESS)
		ps_rds.user = **tid;
	else
		pthread_mutex_unlock(&ps_rds.lock);
	return code;
}

int ps_rds_end_change(rvm_tid_t *tid, rvm_tid_t *own, int code)
{
	rvm_return_t ended = RVM_SUCCESS;

	if (tid == own && code == SUCCESS)
		ended = rvm_end_transaction(own, no_flush);
	if (ended != RVM_SUCCESS)
		code = ps_rds_fail_rvm(ended, "a change of the heap is not committed");
	/* After some errors the transaction has ended already. */
	if (tid == own && code != SUCCESS)
		rvm_abort_transaction(own);
	pthread_mutex_unlock(&ps_rds.lock);
	return code;
}

void ps_rds_trace(const char *format, ...)
{
	va_list arguments;

	if (!ps_rds.trace)
		return;
	va_start(arguments, format);
	vfprintf(ps_rds.trace, format, arguments);
	va_end(arguments);
	fflush(ps_rds.trace);
}
