/*
 * nowait.h - unawaited commits (PERSEAS_NOWAIT): how far W mirrors have come, how the application
 * learns of it, and when such a commit is in doubt.
 *
 * Completions must be collected even though no thread waits for them. A thread does that, the
 * collector, which starts with the first unawaited commit. It sleeps until there is such a commit,
 * then looks every few milliseconds, or at every completion if perseas_fd is used. A handle without
 * unawaited commits has no collector.
 */
#ifndef PERSEAS_CLIENT_NOWAIT_H
#define PERSEAS_CLIENT_NOWAIT_H

#include "handle.h"

/* Updates and returns the last transaction that W mirrors are known to have held, and notifies the
 * application if it rose. It never falls, although mirrors may lose what they hold and W may
 * change; so call this before either happens, or an advance is missed. Caller holds p->lock. */
uint64_t ps_update_durable_seq(struct perseas *p);

/* Returns the oldest transaction that W mirrors are not known to hold and that the ring may have;
 * past the last one if W hold all. Caller holds p->lock. */
static inline uint64_t ps_oldest_nondurable_seq(const struct perseas *p)
{
	const uint64_t next = p->commit.durable_seq + 1;

	return next > p->commit.ring.first_seq ? next : p->commit.ring.first_seq;
}

/* Makes new tokens carry the handle's present epoch, with which transactions are sealed from now
 * on. Caller holds p->lock, or no other thread uses the handle yet. */
void ps_tokens_set_epoch(struct perseas *p);

/* Returns the token of the last committed transaction. Caller holds p->lock. */
struct perseas_token ps_last_token(const struct perseas *p);

/* Returns 0 if the token is of this handle and of a committed transaction, otherwise EEPOCH or
 * EINVAL. Caller holds p->lock. */
int ps_token_check(const struct perseas *p, const struct perseas_token *token);

/* Starts the collector if it does not run. Returns 0, ESYSTEM, or EINVAL if the handle is being
 * closed. Caller holds p->lock. */
int ps_collector_start(struct perseas *p);

/* Ends the collector, and closes perseas_fd's descriptor, when the handle is closed. The keeper may
 * still run. Caller does not hold p->lock. */
void ps_collector_end(struct perseas *p);

/* Notes that no thread waits for the transaction that was committed last. Caller holds p->lock. */
void ps_unwaited_note_commit(struct perseas *p);

/* Puts the unawaited transactions in doubt if W mirrors made no progress on them for
 * commit_timeout_ms. Caller holds p->lock. */
void ps_unwaited_check_doubt(struct perseas *p);

/* Returns true if an unawaited commit is older than flush_within_ms and W mirrors do not hold it,
 * so that no further one may be posted. Caller holds p->lock. */
bool ps_unwaited_is_flush_overdue(struct perseas *p);

/* Waits until W mirrors hold all unawaited commits, before a handle is closed. Does not wait for
 * commits that are already in doubt. Returns 0, EINDOUBT or EFENCED. Caller does not hold
 * p->lock. */
int ps_unwaited_await_all(struct perseas *p);

/* Raises perseas_fd's flag, because W mirrors hold more than before or another owner has the store.
 * Caller holds p->lock. */
void ps_unwaited_raise_flag(struct perseas *p);

/* Puts all commits up to `seq` in doubt, at time `now`: W mirrors did not hold them in time. No
 * transaction begins until they do. Caller holds p->lock. */
void ps_put_commits_in_doubt(struct perseas *p, uint64_t seq, uint64_t now);

#endif
