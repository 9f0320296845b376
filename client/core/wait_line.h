/*
 * wait_line.h - threads that wait until W mirrors hold a transaction, in the order of the
 * transactions. await.c and wait.c join the line, and mirror.c says when mirrors have completed
 * something. Every other change that may concern a waiter calls all of them (ps_progress). Only
 * ps_line_poll polls links, and only the last waiter that was called posts to them.
 *
 * One thread leads: it sleeps on the links for all (`leader`), or spins while no other thread
 * waits (line.spins). The others sleep, each on a condition of its own. Each is woken once, when
 * its transaction is held, so that an acknowledgement wakes the threads that it concerns and no
 * others.
 *
 * The states of a waiter, all of which change under p->lock (move_waiter):
 *
 *     state    its thread                   entered when                      left when
 *     SPARE    none                         its thread has looked             a thread waits
 *     IN_LINE  sleeps                       the seq is not held, and a        called, or its
 *                                           thread leads                      time is over
 *     CALLED   woken, has not looked yet    the seq is held, or all are       it has looked
 *                                           called
 *     HEIR     woken to lead, has not       no thread leads (one at a time)   it has looked
 *              looked yet
 *
 * No wake is lost, since these hold whenever the lock is free:
 *   A  No waiter IN_LINE waits for a seq that is held. Acknowledgements change in one place, which
 *      calls ps_line_held. A mirror's state, a roster or another owner can also let a transaction
 *      be held, or make waiting vain: there ps_progress calls all.
 *   B  If a waiter is IN_LINE, a thread leads or there is an HEIR. A thread that stops leading
 *      calls the last waiter of the line, which has the longest to wait, as the heir: see
 *      ps_line_leave, which asserts this. The heir looks under the lock: it leads, another thread
 *      does, or it leaves, too. A CALLED waiter is no heir: nobody knows when its thread will run.
 *   C  A thread that polls next to the leader wakes it (ps_line_polled), since the leader's sleep
 *      covers only what came after the last poll (fabric.h, F15).
 *   D  A thread that polls for itself makes the calls after it has released the lock, which each
 *      called thread needs first (ps_line_poll). The waiters left the line under the lock; the
 *      calls to make are noted in `calls`. A call can come late, when another thread has the place:
 *      that thread wakes for nothing, looks, and waits again.
 *
 * Called threads all come here at about the same time, and most commit again. So what is committed
 * while some of them have not looked yet stays in the ring, and the last of them sends all of it by
 * one system call (ps_mirrors_send). This is for fabrics where several chains cost no more than
 * one, while an answer is due from the mirror: when that comes, it sends the rest as well. A thread
 * that commits alone never waits for others.
 *
 * A thread that waits for something other than a transaction sleeps on `changed`. It may lead,
 * too; each completion wakes it, and so does a leader that leaves an empty line.
 */
#ifndef PERSEAS_CLIENT_WAIT_LINE_H
#define PERSEAS_CLIENT_WAIT_LINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct perseas;
struct ps_waiter;

enum { PS_CALLS_MAX = 16 }; /* calls that can be put off; more are made at once */

/* Guarded by p->lock. */
struct ps_wait_line {
	pthread_cond_t changed;         /* something that a waiting thread looks at has changed */
	unsigned waiters;               /* threads that wait, in the line or for `changed` */
	bool leader;                    /* a thread sleeps on the links for all */
	struct ps_waiter *first, *last; /* IN_LINE, by seq */
	struct ps_waiter *heir;         /* the waiter in state HEIR, or NULL */
	unsigned called;                /* waiters in state CALLED or HEIR */
	bool spins;                     /* a thread polls the links again and again */
	bool calls_later;               /* a thread polls, and makes the calls afterwards: */
	unsigned uncalled;              /* calls to make */
	pthread_cond_t *calls[PS_CALLS_MAX];
	struct ps_waiter *spare; /* SPARE */
};

/* Sleeps until the calling thread is called, or until_ns. Another thread must lead. Caller holds
 * p->lock, which is released meanwhile. */
void ps_line_wait(struct perseas *p, uint64_t seq, uint64_t until_ns);

/* Polls the links (ps_mirrors_poll), and then calls the waiters whose transactions are held. Caller
 * holds p->lock, which is released for each call. */
void ps_line_poll(struct perseas *p);

/* Frees the waiters, with the handle. */
void ps_line_free(struct perseas *p);

/* Called by a thread that waited or led, and goes: calls an heir if a waiter is left and no thread
 * leads. Caller holds p->lock. */
void ps_line_leave(struct perseas *p);

/* Called after a poll that took nothing, but may have consumed the event that the leader sleeps on:
 * wakes the leader. Caller holds p->lock. */
void ps_line_polled(struct perseas *p);

/* Called when a mirror has completed something: calls the waiters whose transactions are held now.
 * Caller holds p->lock. */
void ps_line_held(struct perseas *p);

/* Calls all waiters. Caller holds p->lock. */
void ps_line_call_all(struct perseas *p);

#endif
