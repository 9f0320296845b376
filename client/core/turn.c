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
	p->serialization.last = &p->serialization.first;
	p->serialization.process = getpid();
}

int ps_check_may_wait(struct perseas *p)
{
	const int rc = ps_ready(p);

	ps_assert_locked(p);
	return rc ? rc : ps_check_same_process(p);
}

int ps_await_blocker(struct perseas *p, struct ps_blocked *b)
{
	int rc = 0;

	ps_deadlock_enter(p, b);
	if (ps_deadlock_closes(b))
		rc = ps_fail_deadlock(p);
	while (!rc && b->ops->must_wait(b)) {
		rc = ps_check_may_wait(p);
		if (!rc)
			p->env->ops->wait(p->env, &p->serialization.changed, &p->lock, PS_NEVER);
	}
	ps_deadlock_leave(b);
	return rc;
}

/* Appends a thread to the queue. */
static void join_queue(struct ps_serialization *s, struct ps_turn_waiter *turn)
{
	*s->last = turn;
	s->last = &turn->next;
}

static void leave_queue(struct ps_serialization *s, const struct ps_turn_waiter *turn)
{
	struct ps_turn_waiter **link = &s->first;

	while (*link != turn)
		link = &(*link)->next;
	*link = turn->next;
	if (!*link)
		s->last = link;
}

void ps_turn_pass(struct perseas *p)
{
	struct ps_serialization *s = &p->serialization;
	struct ps_turn_waiter *next = s->first;

	ps_assert_locked(p);
	assert(s->taken);
	s->taken = next != NULL;
	if (!next)
		return;
	leave_queue(s, next);
	s->thread = next->blocked.thread;
	next->came = true;
	ps_wake_blocked(p);
}

static const struct ps_turn_waiter *turn_of(const struct ps_blocked *b)
{
	return (const struct ps_turn_waiter *)b;
}

static bool must_queue(const struct ps_blocked *b)
{
	return !turn_of(b)->came;
}

/* Visits the thread that has the turn. The threads ahead in the queue need no visit: they wait for
 * the same thread. Once the turn has come, that is the waiting thread itself, which waits for
 * nothing. */
static bool visit_turn(const struct ps_blocked *b, const struct ps_visit *visit)
{
	return visit->thread(visit->arg, b->p->serialization.thread);
}

static int await_turn(struct perseas *p)
{
	static const struct ps_blocked_ops ops = { must_queue, visit_turn };
	struct ps_turn_waiter turn = { .blocked.ops = &ops };
	int rc = ps_check_may_wait(p);

	if (rc)
		return rc;
	join_queue(&p->serialization, &turn);
	rc = ps_await_blocker(p, &turn.blocked);
	if (rc)
		leave_queue(&p->serialization, &turn);
	return rc;
}

int ps_turn_await(struct perseas *p)
{
	struct ps_serialization *s = &p->serialization;
	const uintptr_t me = ps_thread(p);
	const int rc = ps_ready(p);

	if (rc)
		return rc;
	if (!s->taken) {
		assert(!s->first);
		s->taken = true;
		s->thread = me;
		return 0;
	}
	if (s->thread == me)
		return ps_fail(p, PERSEAS_EINVAL,
		               "this thread has a SERIAL transaction open: commit or abort it "
		               "before another begins");
	return await_turn(p);
}

void ps_turn_take(struct perseas_tx *tx)
{
	tx->traits |= PS_TX_SERIAL;
	tx->thread = tx->p->serialization.thread;
	/* What the transaction reads is posted by now, or gathered: no other SERIAL one runs. */
	tx->read_up_to = ps_last_committed(tx->p);
}
