/*
 * exclusive.h - decides which thread may use a handle's mirrors outside of commits. Threads that
 * talk to mirrors outside the data path take turns (admin). A thread that also needs the links
 * waits for its turn, holds commits back (gate), and waits until nothing is in flight.
 *
 * Nothing in client/core calls this: a commit must never wait for admin.
 */
#ifndef PERSEAS_CLIENT_EXCLUSIVE_H
#define PERSEAS_CLIENT_EXCLUSIVE_H

struct perseas;

/* Takes admin. Sleeps while another thread has it. Caller does not hold p->lock. */
void ps_admin_enter(struct perseas *p);
void ps_admin_leave(struct perseas *p);

/* Takes admin, holds commits back, and waits until each active mirror has completed all that was
 * posted. A mirror that takes longer than commit_timeout_ms is disconnected. */
void ps_exclusive_enter(struct perseas *p);
void ps_exclusive_leave(struct perseas *p);

#endif
