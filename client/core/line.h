/*
 * line.h - who waits until W mirrors hold a transaction, in the order of the transactions. await.c
 * and wait.c join the line, mirror.c tells it what mirrors have completed, and whatever else may
 * change wakes all of it (ps_progress). Nothing here polls a link, or posts to one.
 *
 * One of those who wait leads: it sleeps on the links for all, or spins while nobody else waits.
 * The others sleep, each on a condition of its own, and do not look at the links meanwhile. Each is
 * woken once, when its transaction is held, so that an acknowledgement wakes those whom it concerns
 * and nobody else.
 *
 * Those that were called all come here at about the same time, and most commit again. So what is
 * committed while some of them have not looked stays in the ring, and the last of them sends all of
 * it, by one system call (ps_mirrors_send). That is for fabrics where several chains cost no more
 * than one, and while an answer is due from the mirror: when it comes, it sends the rest as well.
 * Whoever commits alone never waits.
 *
 * No wake is lost. All of this happens under the handle's lock:
 *
 *     a waiter                               others
 *     sees that its seq is not held     A    a completion makes it held, and calls the waiter
 *     sees that somebody leads          B    the leader stops leading, and leaves
 *     is in the line, and sleeps
 *
 * The left column is one piece under the lock, so that A and B come before it, and it sees them; or
 * behind it, and find the waiter in the line.
 *   A  Acknowledgements change in one place, which goes through the line (ps_line_held). What else
 *      lets a transaction be held, or makes waiting vain, is a mirror's state, a roster, or another
 *      owner: there ps_progress calls everybody.
 *   B  Nobody needs to take completions in but who leads, so somebody must. While the line is not
 *      empty one leads, or an heir was called and has not looked yet. It looks under the lock: it
 *      leads, or another does, or it leaves. And who leaves calls the last in the line, which has
 *      the longest to wait, as the heir, unless one leads, or there is an heir (ps_line_leave).
 *      Those that were called because they are held do not count: when they run is anybody's guess.
 *   C  Other threads may poll the links as well, and what the leader sleeps on holds until the next
 *      poll only (fabric.h, F15). So who polls beside it wakes it (ps_line_polled), and it looks,
 *      and sleeps on the links anew.
 *   D  Who polls to wait itself calls the others when it has let go of the lock, which each of them
 *      needs first of all (ps_line_poll). They left the line under the lock, and the calls that are
 *      to be made are noted there. The first that is woken may take the processor from this thread:
 *      so who looks next makes those that are left. A call can come late: its thread may have
 *      looked by itself, since its time was over, and somebody else may wait in its place. So the
 *      places are the handle's, and who is woken for nothing looks, and waits again.
 * Who waits for something else than a transaction sleeps on p->progress. It may lead, too, and it
 * is woken by each completion, and when who led leaves and nobody is in the line.
 */
#ifndef PERSEAS_CLIENT_LINE_H
#define PERSEAS_CLIENT_LINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct perseas;
struct ps_waiter;

enum { PS_CALLS_MAX = 16 }; /* that are put off; more are made at once */

/* With the lock. */
struct ps_wait_line {
	struct ps_waiter *first, *last; /* those that sleep and were not called, by seq */
	struct ps_waiter *heir;         /* was called to lead, and has not looked yet */
	unsigned called;                /* so many were, and have not looked yet */
	bool spins;                     /* one looks at the links again and again */
	bool calls_later;               /* while one polls: calls are made without the lock */
	unsigned uncalled;              /* so many are to be made: */
	pthread_cond_t *calls[PS_CALLS_MAX];
	struct ps_waiter *spare; /* places that nobody waits in */
};

/* Sleeps until it is called, or until_ns. Somebody leads. Locked; lets go of the lock. */
void ps_line_wait(struct perseas *p, uint64_t seq, uint64_t until_ns);

/* Looks at the links (ps_mirrors_poll), and then calls those whose transactions are held. Locked;
 * lets go of the lock where it calls somebody. */
void ps_line_poll(struct perseas *p);

/* With the handle. */
void ps_line_free(struct perseas *p);

/* Whoever waited, or led, goes: somebody else is to lead where one must. Locked. */
void ps_line_leave(struct perseas *p);

/* A poll had nothing, but may have ended what the leader's sleep depends on. Locked. */
void ps_line_polled(struct perseas *p);

/* A mirror has completed something, and there are waiters: calls those whose transactions are held
 * now. Locked. */
void ps_line_held(struct perseas *p);

/* Calls all. Locked. */
void ps_line_call_all(struct perseas *p);

#endif
