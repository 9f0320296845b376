/*
 * turn.c - the turns of SERIAL transactions: one transaction at a time, in the order in which their
 * threads asked. A thread that waits for its turn has nothing of the library's but its place in the
 * queue, and gives that up when no transaction can begin any more.
 */
#include "serialization.h"

#include "gather.h"
#include "mirror.h"

#include <unistd.h>

void ps_serial_init(struct perseas *p)
{
	p->apart.last = &p->apart.first;
	p->apart.process = getpid();
}

int ps_apart_may_wait(struct perseas *p)
{
	const int rc = ps_ready(p);

	return rc ? rc : ps_apart_here(p);
}

int ps_apart_await(struct perseas *p, struct ps_blocked *b)
{
	int rc = 0;

	ps_deadlock_enter(p, b);
	if (ps_deadlock_closes(b))
		rc = ps_fail_deadlock(p);
	while (!rc && b->ops->must_wait(b)) {
		rc = ps_apart_may_wait(p);
		if (!rc)
			p->env->ops->wait(p->env, &p->apart.changed, &p->lock, PS_NEVER);
	}
	ps_deadlock_leave(b);
	return rc;
}

/* Behind those who came before. */
static void queue(struct ps_apart *apart, struct ps_queued *turn)
{
	*apart->last = turn;
	apart->last = &turn->next;
}

static void leave_queue(struct ps_apart *apart, const struct ps_queued *turn)
{
	struct ps_queued **link = &apart->first;

	while (*link != turn)
		link = &(*link)->next;
	*link = turn->next;
	if (!*link)
		apart->last = link;
}

void ps_serial_pass(struct perseas *p)
{
	struct ps_apart *apart = &p->apart;
	struct ps_queued *next = apart->first;

	ps_assert_locked(p);
	assert(apart->taken);
	apart->taken = next != NULL;
	if (!next)
		return;
	leave_queue(apart, next);
	apart->thread = next->blocked.thread;
	next->came = true;
	ps_apart_wake(p);
}

static const struct ps_queued *turn_of(const struct ps_blocked *b)
{
	return (const struct ps_queued *)b;
}

static bool must_queue(const struct ps_blocked *b)
{
	return !turn_of(b)->came;
}

/* Threads before it in the queue need not be visited: they wait for the same thread. Once the turn
 * has come, that is the thread itself, and leads nowhere. */
static bool visit_turn(const struct ps_blocked *b, const struct ps_visit *visit)
{
	return visit->thread(visit->arg, b->p->apart.thread);
}

static int await_turn(struct perseas *p)
{
	static const struct ps_blocked_ops ops = { must_queue, visit_turn };
	struct ps_queued turn = { .blocked.ops = &ops };
	int rc = ps_apart_may_wait(p);

	if (rc)
		return rc;
	queue(&p->apart, &turn);
	rc = ps_apart_await(p, &turn.blocked);
	if (rc)
		leave_queue(&p->apart, &turn);
	return rc;
}

int ps_serial_await(struct perseas *p)
{
	struct ps_apart *apart = &p->apart;
	const uintptr_t me = ps_thread(p);
	const int rc = ps_ready(p);

	if (rc)
		return rc;
	if (!apart->taken) {
		assert(!apart->first);
		apart->taken = true;
		apart->thread = me;
		return 0;
	}
	if (apart->thread == me)
		return ps_fail(p, PERSEAS_EINVAL,
		               "this thread's SERIAL transaction is open: commit or abort it "
		               "before another begins");
	return await_turn(p);
}

void ps_serial_take(struct perseas_tx *tx)
{
	tx->more |= PS_MORE_SERIAL;
	tx->thread = tx->p->apart.thread;
	/* Whatever it reads was posted by now, or is held: nobody else is at it. */
	tx->saw = ps_last(tx->p);
}
