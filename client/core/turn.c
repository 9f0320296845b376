/*
 * turn.c - the turns of SERIAL transactions: one at a time, in the order in which their threads
 * asked. A thread that waits for its turn holds nothing but its place in the queue, and leaves the
 * queue when no transaction can begin any more.
 */
#include "serialization.h"

#include "gather.h"
#include "mirror.h"

#include <unistd.h>

void ps_serialization_init(struct perseas *p)
{
	p->serialization.last_waiter = &p->serialization.first_waiter;
	p->serialization.opener_pid = getpid();
}

int ps_check_may_wait(struct perseas *p)
{
	const int rc = ps_check_may_transact(p);

	ps_assert_locked(p);
	return rc ? rc : ps_check_same_process(p);
}

int ps_await_blocker(struct perseas *p, struct ps_blocked *b)
{
	int rc = 0;

	ps_deadlock_add_thread(p, b);
	if (ps_deadlock_closes_cycle(b))
		rc = ps_fail_deadlock(p);
	while (!rc && b->ops->must_wait(b)) {
		rc = ps_check_may_wait(p);
		if (!rc)
			p->env->ops->wait(p->env, &p->serialization.recheck, &p->lock, PS_NEVER);
	}
	ps_deadlock_remove_thread(b);
	return rc;
}

/* Appends a thread to the queue. */
static void join_queue(struct ps_serialization *s, struct ps_turn_waiter *turn)
{
	assert(!*s->last_waiter && !turn->has_turn);
	*s->last_waiter = turn;
	s->last_waiter = &turn->next;
}

static void leave_queue(struct ps_serialization *s, const struct ps_turn_waiter *turn)
{
	struct ps_turn_waiter **link = &s->first_waiter;

	while (*link != turn)
		link = &(*link)->next;
	*link = turn->next;
	if (!*link)
		s->last_waiter = link;
}

void ps_turn_give_to_next(struct perseas *p)
{
	struct ps_serialization *s = &p->serialization;
	struct ps_turn_waiter *next = s->first_waiter;

	ps_assert_locked(p);
	assert(s->is_turn_taken);
	s->is_turn_taken = next != NULL;
	if (!next)
		return;
	leave_queue(s, next);
	s->turn_thread = next->blocked_thread.thread;
	next->has_turn = true;
	ps_wake_blocked(p);
}

static const struct ps_turn_waiter *turn_waiter_of(const struct ps_blocked *b)
{
	return (const struct ps_turn_waiter *)b;
}

static bool must_wait_for_serial_turn(const struct ps_blocked *b)
{
	return !turn_waiter_of(b)->has_turn;
}

/* Visits the thread that has the turn. The threads ahead in the queue need no visit: they wait for
 * the same thread. Once the turn has come, that is the waiting thread itself, which waits for
 * nothing. */
static bool visit_turn_thread(const struct ps_blocked *b, const struct ps_visit *visit)
{
	return visit->thread(visit->arg, b->p->serialization.turn_thread);
}

static int queue_for_turn(struct perseas *p)
{
	static const struct ps_blocked_ops ops = { must_wait_for_serial_turn, visit_turn_thread };
	struct ps_turn_waiter turn = { .blocked_thread.ops = &ops };
	int rc = ps_check_may_wait(p);

	if (rc)
		return rc;
	join_queue(&p->serialization, &turn);
	rc = ps_await_blocker(p, &turn.blocked_thread);
	if (rc)
		leave_queue(&p->serialization, &turn);
	return rc;
}

int ps_turn_await(struct perseas *p)
{
	struct ps_serialization *s = &p->serialization;
	const uintptr_t me = ps_this_thread(p);
	const int rc = ps_check_may_transact(p);

	if (rc)
		return rc;
	if (!s->is_turn_taken) {
		assert(!s->first_waiter);
		s->is_turn_taken = true;
		s->turn_thread = me;
		return 0;
	}
	if (s->turn_thread == me)
		return ps_fail(p, PERSEAS_EINVAL,
		               "this thread has a SERIAL transaction open: commit or abort it "
		               "before another begins");
	return queue_for_turn(p);
}

void ps_turn_give_to_tx(struct perseas_tx *tx)
{
	assert(tx->p->serialization.is_turn_taken && !(tx->traits & PS_TX_SERIAL));
	tx->traits |= PS_TX_SERIAL;
	tx->thread = tx->p->serialization.turn_thread;
	/* All that the transaction can read was committed before (posted, or held in a group),
	 * since no other SERIAL transaction runs. */
	tx->read_seq = ps_last_committed_seq(tx->p);
}
