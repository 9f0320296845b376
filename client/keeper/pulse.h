/*
 * pulse.h - the owner's sign of life. Now and then every mirror is asked whether this owner still
 * holds its claim there; it hears with that what the owner sees of its mirrors and what it counted,
 * and answers with what an operator asks of the owner. Nobody waits for the answers: a mirror that
 * is stopped must not hold up the others. Admin.
 */
#ifndef PERSEAS_CLIENT_PULSE_H
#define PERSEAS_CLIENT_PULSE_H

#include "../core/handle.h"

/* Asks, when it is time, and takes the answers that are there. */
void ps_pulse(struct perseas *p, uint64_t now);

/* Takes the answer that is due before any other from this mirror. 0 or a code. */
int ps_pulse_take(struct perseas *p, struct ps_mirror *m, uint64_t until_ns,
                  struct ps_error *error);

/* Sends a request whose answer is taken in like that to a sign of life; tells: it tells the rosters
 * (telling.h). False: not to this mirror, or not now. */
bool ps_pulse_ask(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
                  bool tells);

/*
 * As ps_ask, for a request that may take the mirror long, as one that makes memory does: signs of
 * life go on while it is waited for. The mirror is not active. Once the store is open, the keeper.
 */
int ps_ask_patiently(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
                     Perseas__Reply **reply, int *fds, struct ps_error *error);

/* Has it left a sign of life unanswered for so long that nothing should wait for it? It is not
 * asked what others are asked; when the time of that request is over, its session ends. Not
 * under the lock. */
bool ps_silent(struct perseas *p, const struct ps_mirror *m);

/* Are these enough, of those that were asked? */
typedef bool ps_enough(struct perseas *p, uint32_t granted, const void *arg);

/*
 * The same request, whose answer holds nothing that is wanted, to the mirrors of a set at the same
 * time. Those that granted it. It waits for all of them for a moment, and then only until they are
 * enough: one that hangs must not hold that up. What the others answer later counts for nothing but
 * a sign of life. The keeper calls it, with admin; it sleeps.
 */
uint32_t ps_ask_enough(struct perseas *p, uint32_t set, const Perseas__Request *request,
                       ps_enough *enough, const void *arg);

/* Those that say, asked so, that they are still claimed by this owner; and enough for mirror `but`
 * to be made anew (I9). */
uint32_t ps_confirmed_enough(struct perseas *p, uint32_t set, ps_enough *enough, const void *arg);
uint32_t ps_confirmed_anew(struct perseas *p, uint32_t set, const struct ps_mirror *but);

#endif
