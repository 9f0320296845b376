/*
 * wait_line.h - the line of threads that wait until W mirrors hold a transaction, ordered by seq.
 * commit_wait.c and token_wait.c join the line, and mirror.c reports completions
 * (ps_wait_line_wake_durable). Any other change that may end a wait wakes all waiters
 * (ps_wake_waiters). Of the functions here only ps_wait_line_poll polls links, and only the last
 * woken waiter posts to them.
 *
 * One thread leads: it sleeps on the links for all threads (has_leader), or spins while no other
 * thread waits (is_spinning). The others sleep, each on a condition of its own, and are woken once,
 * when their transaction is held. So an acknowledgement wakes only the threads that it concerns.
 *
 * The states of a waiter, all changed under p->lock (move_waiter):
 *
 *     state        its thread               entered when                      left when
 *     SPARE        none                     its thread has looked             a thread waits
 *     IN_LINE      sleeps                   the seq is not held, and a        woken, or timed
 *                                           thread leads                      out
 *     WOKEN        has not looked yet       the seq is held, or all are       it has looked
 *                                           woken
 *     NEXT_LEADER  is woken to lead, and    no thread leads (one at a time)   it has looked
 *                  has not looked yet
 *
 * No wake is lost, because these invariants hold whenever the lock is free:
 *
 *   A  No waiter IN_LINE waits for a seq that is held. Acknowledgements change in one place, which
 *      calls ps_wait_line_wake_durable. If a mirror's state, a roster or another owner makes a
 *      transaction held, or makes waiting pointless, ps_wake_waiters wakes all waiters.
 *   B  If a waiter is IN_LINE, a thread leads or there is a NEXT_LEADER. A thread that stops
 *      leading makes the last waiter of the line the next leader, because it has the longest to
 *      wait; ps_wait_line_leave asserts this. The next leader looks under the lock: it leads, or
 *      another thread already does, or it leaves, too. A WOKEN waiter cannot be the next leader,
 *      because its thread may run much later.
 *   C  A thread that polls while another one leads wakes the leader (ps_wait_line_wake_leader),
 *      because the leader's sleep covers only events after the last poll (fabric.h, F15).
 *   D  A thread that polls for itself broadcasts after it has released the lock, which each woken
 *      thread needs first (ps_wait_line_poll). The waiters left the line under the lock;
 *      `deferred_broadcasts` lists the broadcasts still to make. A broadcast may come late, when
 *      another thread already uses the waiter: that thread wakes without need, looks, and waits
 *      again.
 *
 * Woken threads arrive here at about the same time, and most of them commit again. Therefore new
 * transactions stay in the ring while some woken threads have not looked yet, and the last of these
 * sends them all with one system call (ps_mirrors_post_from_ring). This applies to fabrics where
 * several chains cost no more than one, and only while the mirror owes an answer: the thread that
 * gets the answer sends the rest, too. A thread that commits alone never waits for others.
 *
 * A thread that waits for something other than a transaction sleeps on `changed`. It may lead, too.
 * Each completion wakes it, and so does a leader that leaves an empty line.
 */
#ifndef PERSEAS_CLIENT_WAIT_LINE_H
#define PERSEAS_CLIENT_WAIT_LINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct perseas;
struct ps_waiter;

/* How many broadcasts can be deferred. Further ones are made at once. */
enum { PS_DEFERRED_BROADCASTS_MAX = 16 };

/* The threads that wait until W mirrors hold a transaction. Guarded by p->lock. */
struct ps_wait_line {
	/* Broadcast when anything that a waiting thread looks at has changed. */
	pthread_cond_t changed;
	unsigned waiting_count; /* threads that wait, in the line or for `changed` */
	bool has_leader;        /* a thread sleeps on the links for all threads */
	struct ps_waiter *first_waiter, *last_waiter; /* waiters IN_LINE, by seq */
	struct ps_waiter *next_leader;                /* the waiter in state NEXT_LEADER, or NULL */
	unsigned woken_count;                         /* waiters in state WOKEN or NEXT_LEADER */
	bool is_spinning; /* a thread spins: it polls the links again and again */
	/* A thread is polling: broadcasts go to `deferred_broadcasts`, for later. */
	bool defers_broadcasts;
	unsigned deferred_broadcast_count; /* number of broadcasts in `deferred_broadcasts` */
	pthread_cond_t *deferred_broadcasts[PS_DEFERRED_BROADCASTS_MAX];
	struct ps_waiter *spare_waiters; /* list of waiters in state SPARE */
};

/* Sleeps in the line until the thread is woken, because W mirrors hold transaction `seq` or a wait
 * is pointless, or until until_ns. Another thread must lead. Caller holds p->lock, which is
 * released meanwhile. */
void ps_wait_line_sleep(struct perseas *p, uint64_t seq, uint64_t until_ns);

/* Polls the links (ps_mirrors_poll), then wakes the waiters whose transactions are held. Caller
 * holds p->lock, which is released for each broadcast. */
void ps_wait_line_poll(struct perseas *p);

/* Frees the waiters, when the handle is freed. */
void ps_wait_line_free(struct perseas *p);

/* Called by a thread that waited or led, and stops: wakes the next leader if waiters are left and
 * no thread leads. Caller holds p->lock. */
void ps_wait_line_leave(struct perseas *p);

/* Wakes the leader, after a poll that reported nothing but may have consumed the event that the
 * leader sleeps on. Caller holds p->lock. */
void ps_wait_line_wake_leader(struct perseas *p);

/* Wakes the waiters whose transactions W mirrors hold now, after a mirror completed something.
 * Caller holds p->lock. */
void ps_wait_line_wake_durable(struct perseas *p);

/* Wakes all waiters. Caller holds p->lock. */
void ps_wait_line_wake_all(struct perseas *p);

#endif
