/*
 * locks.c - locks of transactions, with numeric keys that mean something only to the application. A
 * transaction waits for younger ones only (wait-die), and only if its thread holds up no other
 * thread through another transaction. So no cycle of waiting threads can form inside a store;
 * deadlock.h handles cycles over several stores. A transaction is not overtaken by younger ones in
 * what it waits for, and a retry keeps its age, so every transaction gets its locks in the end.
 */
#include "lock_table.h"

#include "gather.h"
#include "mirror.h"
#include "shadow.h"
#include "tx.h"

#include <stdlib.h>

enum verdict { GRANTED, MUST_WAIT, REFUSED };

/* --- who may have a lock --- */

/* Returns true if another transaction's hold on the lock excludes this transaction. */
static bool hold_excludes(const struct ps_lock_hold *hold, const struct perseas_tx *tx,
                          bool exclusive)
{
	return hold->tx != tx && (exclusive || hold->is_exclusive);
}

/* Returns true if an older transaction's want comes first. Without this rule, readers could
 * overtake a writer again and again. */
static bool want_goes_first(const struct ps_lock_want *want, const struct perseas_tx *tx,
                            bool exclusive)
{
	return want->tx->lock_age < tx->lock_age && (exclusive || want->is_exclusive);
}

/* Decides by the holds and wants of others whether the transaction may have the lock now, must
 * wait, or is refused. */
static enum verdict judge_request(const struct ps_lock *lock, const struct perseas_tx *tx,
                                  bool exclusive)
{
	enum verdict answer = GRANTED;

	for (const struct ps_lock_hold *hold = lock->holds; hold; hold = hold->next) {
		if (!hold_excludes(hold, tx, exclusive))
			continue;
		if (hold->tx->lock_age < tx->lock_age)
			return REFUSED;
		answer = MUST_WAIT;
	}
	for (const struct ps_lock_want *want = lock->wants; want; want = want->next)
		if (want_goes_first(want, tx, exclusive))
			return REFUSED;
	return answer;
}

static struct ps_lock_hold *find_hold(const struct ps_lock *lock, const struct perseas_tx *tx)
{
	struct ps_lock_hold *hold = lock->holds;

	while (hold && hold->tx != tx)
		hold = hold->next;
	return hold;
}

/* Returns true if the calling thread holds up others through another transaction than this one. */
static bool thread_holds_up_others(const struct perseas_tx *tx)
{
	struct perseas *p = tx->p;
	const uintptr_t me = ps_this_thread(p);
	const struct perseas_tx *other = p->commit.open_list;

	if (p->serialization.is_turn_taken && p->serialization.turn_thread == me)
		return true;
	while (other &&
	       (other == tx || !(other->lock_holds || other->lock_wants) || other->thread != me))
		other = other->next;
	return other != NULL;
}

/* Notes that the transaction wants the lock until it ends. Used if the transaction cannot wait when
 * it asks, because it is SERIAL or its wait would deadlock: without the want, younger transactions
 * would get the lock between its tries. It wants all locks that it was refused, not just the last:
 * otherwise the others would be gone when it gets the last. Returns 0 or ENOMEM. */
static int want_lock_until_tx_end(struct perseas_tx *tx, struct ps_lock *lock, bool exclusive)
{
	struct ps_lock_want *want = tx->lock_wants;

	while (want && want->lock != lock)
		want = want->next_of_tx;
	if (!want) {
		want = malloc(sizeof(*want));
		if (!want)
			return ps_fail(tx->p, PERSEAS_ENOMEM, "no memory for a lock");
		*want = (struct ps_lock_want){ NULL, tx->lock_wants, tx, lock, false };
		tx->lock_wants = want;
		ps_lock_add_want(want);
	}
	want->is_exclusive |= exclusive;
	return 0;
}

static int refuse_lock(struct perseas_tx *tx, struct ps_lock *lock, bool exclusive, const char *why)
{
	if (tx->traits & PS_TX_SERIAL && want_lock_until_tx_end(tx, lock, exclusive))
		return PERSEAS_ENOMEM;
	tx->refused_lock = (struct ps_refused){ lock->key, exclusive, true };
	return ps_fail(tx->p, PERSEAS_ECONFLICT,
	               "lock %llu is %s: call perseas_retry, or abort the transaction",
	               (unsigned long long)lock->key, why);
}

/* A transaction that waits for a lock, or, during a retry, until it may ask again. */
struct blocked_tx {
	struct ps_blocked blocked_thread;
	const struct perseas_tx *tx;
	const struct ps_lock_want *want;  /* while waiting for a lock: its want */
	const struct ps_refused *refused; /* during a retry: the lock that it was refused */
};

static const struct blocked_tx *blocked_tx_of(const struct ps_blocked *b)
{
	return (const struct blocked_tx *)b;
}

/* Visits the threads of transactions between these ages that exclude the transaction of `want`. */
static bool visit_holders(const struct ps_lock_want *want, uint64_t oldest, uint64_t youngest,
                          const struct ps_visit *visit)
{
	for (const struct ps_lock_hold *hold = want->lock->holds; hold; hold = hold->next)
		if (hold_excludes(hold, want->tx, want->is_exclusive) &&
		    hold->tx->lock_age >= oldest && hold->tx->lock_age <= youngest &&
		    visit->thread(visit->arg, hold->tx->thread))
			return true;
	return false;
}

static bool must_wait_for_lock(const struct ps_blocked *b)
{
	const struct ps_lock_want *want = blocked_tx_of(b)->want;

	return judge_request(want->lock, want->tx, want->is_exclusive) == MUST_WAIT;
}

/* Visits the younger transactions that hold the lock: the transaction waits only for these. If an
 * older one gets the lock meanwhile, the transaction sleeps on until a younger one releases it, and
 * is then refused. */
static bool visit_younger_holders(const struct ps_blocked *b, const struct ps_visit *visit)
{
	const struct ps_lock_want *want = blocked_tx_of(b)->want;

	return visit_holders(want, want->tx->lock_age, UINT64_MAX, visit);
}

/* Waits while younger transactions have the lock. Returns 0, or why the transaction must not
 * wait. */
static int wait_for_lock(struct perseas_tx *tx, struct ps_lock *lock, bool exclusive)
{
	static const struct ps_blocked_ops ops = { must_wait_for_lock, visit_younger_holders };
	struct ps_lock_want want = { .tx = tx, .lock = lock, .is_exclusive = exclusive };
	struct blocked_tx w = { .blocked_thread.ops = &ops, .tx = tx, .want = &want };
	int rc;

	ps_lock_add_want(&want);
	rc = ps_await_blocker(tx->p, &w.blocked_thread);
	if (rc == PERSEAS_ECONFLICT && want_lock_until_tx_end(tx, lock, exclusive))
		rc = PERSEAS_ENOMEM;
	tx->refused_lock = (struct ps_refused){ lock->key, exclusive, rc == PERSEAS_ECONFLICT };
	ps_lock_remove_want(&want);
	/* Transactions that were refused because this want came first must check again. */
	if (rc || judge_request(lock, tx, exclusive) != GRANTED)
		ps_wake_blocked(tx->p);
	return rc;
}

/* Waits until the transaction may have the lock. Returns 0, or why it may not. */
static int await_lock(struct perseas_tx *tx, struct ps_lock *lock, bool exclusive)
{
	enum verdict answer = judge_request(lock, tx, exclusive);
	int rc;

	if (answer == MUST_WAIT) {
		rc = ps_check_may_wait(tx->p);
		if (!rc && thread_holds_up_others(tx))
			rc = refuse_lock(
				tx, lock, exclusive,
				"held by another transaction, and others may wait for this thread");
		if (!rc)
			rc = wait_for_lock(tx, lock, exclusive);
		if (rc)
			return rc;
		answer = judge_request(lock, tx, exclusive);
	}
	if (answer == REFUSED)
		return refuse_lock(tx, lock, exclusive, "an older transaction's");
	/* All that the transaction can read under this lock was committed before: it is posted, or
	 * held in a group (gather.h). */
	tx->read_seq = ps_last_committed_seq(tx->p);
	return 0;
}

static int add_hold(struct perseas_tx *tx, struct ps_lock *lock, bool exclusive)
{
	struct ps_lock_hold *hold = calloc(1, sizeof(*hold));
	int rc;

	if (!hold)
		return ps_fail(tx->p, PERSEAS_ENOMEM, "no memory for a lock");
	rc = await_lock(tx, lock, exclusive);
	if (rc) {
		free(hold);
		return rc;
	}
	assert(!exclusive || !lock->holds);
	*hold = (struct ps_lock_hold){ lock->holds, tx->lock_holds, tx, lock, exclusive };
	lock->holds = tx->lock_holds = hold;
	return 0;
}

static int take_lock(struct perseas_tx *tx, struct ps_lock *lock, bool exclusive)
{
	struct ps_lock_hold *hold = find_hold(lock, tx);
	int rc;

	if (!hold)
		return add_hold(tx, lock, exclusive);
	if (hold->is_exclusive || !exclusive)
		return 0;
	rc = await_lock(tx, lock, exclusive);
	if (rc)
		return rc;
	assert(lock->holds == hold && !hold->next);
	hold->is_exclusive = true;
	return 0;
}

static int request_lock(struct perseas_tx *tx, uint64_t key, bool exclusive)
{
	struct perseas *p = tx->p;
	struct ps_lock *lock = ps_lock_find_or_make(p, key);
	int rc;

	if (!lock)
		return ps_fail(p, PERSEAS_ENOMEM, "no memory for a lock");
	if (!tx->lock_age)
		tx->lock_age = ++p->serialization.last_age;
	tx->traits |= PS_TX_LOCKS;
	tx->refused_lock.has_refused_lock = false;
	tx->thread = ps_this_thread(p);
	rc = take_lock(tx, lock, exclusive);
	ps_lock_drop_if_unused(p, lock);
	return rc;
}

int perseas_lock(perseas_tx_t *tx, uint64_t key, int mode)
{
	int rc;

	if (!tx)
		return ps_fail(NULL, PERSEAS_EINVAL, "tx is NULL");
	if (mode != PERSEAS_LOCK_SHARED && mode != PERSEAS_LOCK_EXCLUSIVE)
		return ps_fail(tx->p, PERSEAS_EINVAL, "lock mode %d is not known", mode);
	if (!tx->is_open)
		return ps_fail(tx->p, PERSEAS_EENDED,
		               "the transaction has been committed or aborted: begin another");
	ps_lock(tx->p);
	rc = request_lock(tx, key, mode == PERSEAS_LOCK_EXCLUSIVE);
	pthread_mutex_unlock(&tx->p->lock);
	return rc;
}

/* Returns true if a retried transaction may ask for its lock again. It asks even if it will then
 * wait, because younger transactions are refused only while it does. A SERIAL transaction is
 * refused rather than made to wait, so it asks only when it can have all that it wants. */
static bool may_request_locks_again(const struct perseas_tx *tx, const struct ps_refused *refused)
{
	const struct ps_lock *lock = refused->has_refused_lock ? ps_lock_find(tx->p, refused->key)
	                                                       : NULL;
	bool may = !lock || judge_request(lock, tx, refused->is_exclusive) != REFUSED;

	for (const struct ps_lock_want *want = tx->lock_wants; want && may; want = want->next_of_tx)
		may = judge_request(want->lock, tx, want->is_exclusive) == GRANTED;
	return may || thread_holds_up_others(tx);
}

static bool must_not_request_locks_again(const struct ps_blocked *b)
{
	return !may_request_locks_again(blocked_tx_of(b)->tx, blocked_tx_of(b)->refused);
}

static bool visit_older_wants(const struct ps_lock_want *own, const struct ps_visit *visit)
{
	for (const struct ps_lock_want *want = own->lock->wants; want; want = want->next)
		if (want_goes_first(want, own->tx, own->is_exclusive) &&
		    visit->thread(visit->arg, want->tx->thread))
			return true;
	return false;
}

/* Visits the threads because of which may_request_locks_again() returns false. */
static bool visit_threads_that_refuse_lock(const struct ps_blocked *b, const struct ps_visit *visit)
{
	const struct perseas_tx *tx = blocked_tx_of(b)->tx;
	const struct ps_refused *refused = blocked_tx_of(b)->refused;
	const struct ps_lock_want again = { .tx = tx,
		                            .lock = refused->has_refused_lock
		                                            ? ps_lock_find(b->p, refused->key)
		                                            : NULL,
		                            .is_exclusive = refused->is_exclusive };

	if (again.lock &&
	    (visit_holders(&again, 0, tx->lock_age, visit) || visit_older_wants(&again, visit)))
		return true;
	for (const struct ps_lock_want *want = tx->lock_wants; want; want = want->next_of_tx)
		if (visit_holders(want, 0, UINT64_MAX, visit) || visit_older_wants(want, visit))
			return true;
	return false;
}

/* Waits until a retried transaction, which holds nothing, may ask again for the lock that it was
 * refused. */
static int await_refused_lock(struct perseas_tx *tx, const struct ps_refused *refused)
{
	static const struct ps_blocked_ops ops = { must_not_request_locks_again,
		                                   visit_threads_that_refuse_lock };
	struct blocked_tx w = { .blocked_thread.ops = &ops, .tx = tx, .refused = refused };

	return may_request_locks_again(tx, refused) ? 0
	                                            : ps_await_blocker(tx->p, &w.blocked_thread);
}

/* Pauses. Other transactions may use the released locks in the meantime. */
static void pause_unlocked(struct perseas *p, uint64_t pause_ns)
{
	pthread_mutex_unlock(&p->lock);
	ps_sleep_for(p, pause_ns);
	ps_lock(p);
}

static int retry_locked(struct perseas_tx *tx, uint64_t pause_ns)
{
	struct perseas *p = tx->p;
	const struct ps_refused refused = tx->refused_lock;
	const bool serial = tx->traits & PS_TX_SERIAL;
	const uint64_t age = tx->lock_age;
	int rc;

	ps_tx_roll_back(tx);
	ps_tx_reset_open(tx);
	ps_locks_release(tx);
	tx->traits |= PS_TX_LOCKS;
	tx->lock_age = age;
	tx->thread = ps_this_thread(p);
	if (pause_ns)
		pause_unlocked(p, pause_ns);
	rc = await_refused_lock(tx, &refused);
	if (!rc)
		rc = serial ? ps_turn_await(p) : ps_check_may_transact(p);
	if (!rc && serial)
		ps_turn_give_to_tx(tx);
	if (rc && rc != PERSEAS_ECONFLICT)
		ps_tx_end(tx);
	return rc;
}

int ps_retry_tx_after_pause(struct perseas_tx *tx, uint64_t pause_ns)
{
	struct perseas *p = tx->p;
	int rc;

	if (!tx->is_open)
		return ps_fail(p, PERSEAS_EENDED, "the transaction has ended already");
	rc = ps_shadow_await_fill(p);
	if (rc)
		return rc;
	ps_lock(p);
	rc = retry_locked(tx, pause_ns);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int perseas_retry(perseas_tx_t *tx)
{
	int rc;

	if (!tx)
		return ps_fail(NULL, PERSEAS_EINVAL, "tx is NULL");
	rc = ps_retry_tx_after_pause(tx, 0);
	if (rc == PERSEAS_ECONFLICT) {
		ps_lock(tx->p);
		ps_tx_end(tx);
		pthread_mutex_unlock(&tx->p->lock);
	}
	return rc;
}
