/*
 * handles.c - keeps the handles of simulated processes apart. The library looks for a deadlock
 * among all handles of its process (core/deadlock.c). Here that is the simulator's only process, in
 * which another owner may be stopped while it holds the lock of its handle. Each simulated process
 * has one handle at a time, which needs no such search.
 */
#include "../../client/core/deadlock.h"

void __wrap_ps_deadlock_add_handle(struct perseas *p);
void __wrap_ps_deadlock_remove_handle(struct perseas *p);

void __wrap_ps_deadlock_add_handle(struct perseas *p)
{
	(void)p;
}

void __wrap_ps_deadlock_remove_handle(struct perseas *p)
{
	(void)p;
}
