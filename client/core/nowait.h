/*
 * nowait.h - commits that nobody waits for (PERSEAS_NOWAIT): how far W mirrors have come, who is
 * told of it, and when such a commit is in doubt.
 *
 * Somebody must take what mirrors complete although no thread waits for it: the collector, a thread
 * that begins with the first commit of that kind. It sleeps until there is one, looks every few
 * milliseconds while there are some, and on every completion where perseas_fd is used. A handle
 * without such commits has no such thread.
 */
#ifndef PERSEAS_CLIENT_NOWAIT_H
#define PERSEAS_CLIENT_NOWAIT_H

#include "handle.h"

/* The last transaction that W mirrors hold, or held: it never falls, although those that hold it
 * may lose what they have, and what W is may change. To be called before either can happen, so that
 * nothing is missed. Whoever wants to know is told when it has risen. Locked. */
uint64_t ps_durable(struct perseas *p);

/* The first transaction that W mirrors do not hold, as far as is known, or that is to come. The
 * ring has it, unless it was begun anew since. Locked. */
static inline uint64_t ps_oldest_unheld(const struct perseas *p)
{
	const uint64_t next = p->commit.durable + 1;

	return next > p->commit.ring.first ? next : p->commit.ring.first;
}

/* From now on transactions are sealed with the handle's epoch: their tokens have it. Locked, or
 * before the handle is used. */
void ps_tokens_begin(struct perseas *p);

/* Of the last transaction that was posted. Locked. */
struct perseas_token ps_token(const struct perseas *p);

/* Is it a token of this handle, of a transaction that was posted? 0, EEPOCH or EINVAL. Locked. */
int ps_token_check(const struct perseas *p, const struct perseas_token *token);

/* The collector runs from now on. 0 or ESYSTEM; EINVAL: the handle is being closed. Locked. */
int ps_collector_start(struct perseas *p);

/* Ends it, where it runs, and the descriptor; the handle is being closed. The keeper may still run.
 * Not locked. */
void ps_collector_end(struct perseas *p);

/* The transaction posted last is waited for by nobody. Locked. */
void ps_unwaited_add(struct perseas *p);

/* A transaction that nobody waits for is in doubt when W mirrors have come to hold no more of
 * these for commit_timeout_ms. Then so are all after it. Locked. */
void ps_unwaited_look(struct perseas *p);

/* Is one of them not held by W so long after it was posted that no other may be (flush_within_ms)?
 * Locked. */
bool ps_unwaited_overdue(struct perseas *p);

/* Before a handle is closed: 0, W hold all that nobody waited for; EINDOUBT, EFENCED. Not locked;
 * waits for the mirrors as perseas_flush does, but not for what is in doubt already. */
int ps_unwaited_finish(struct perseas *p);

/* Who waits on the descriptor of perseas_fd is to look: W hold more, or another has the store.
 * Locked. */
void ps_unwaited_tell(struct perseas *p);

/* Commits are in doubt from now on, up to this one. Locked. */
void ps_doubt(struct perseas *p, uint64_t seq, uint64_t now);

#endif
