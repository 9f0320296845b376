/*
 * wait_line.c - see wait_line.h.
 */
#include "wait_line.h"

#include "handle.h"
#include "mirror.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The states of a waiter; wait_line.h has the table. */
enum waiter_state {
	SPARE,
	IN_LINE,
	WOKEN,
	NEXT_LEADER,
};

#define FROM(state) (1u << (state))

/* The states from which each state may be entered. */
static const unsigned entered_from[] = {
	[SPARE] = FROM(IN_LINE) | FROM(WOKEN) | FROM(NEXT_LEADER),
	[IN_LINE] = FROM(SPARE),
	[WOKEN] = FROM(IN_LINE),
	[NEXT_LEADER] = FROM(IN_LINE),
};

/* A place in the line, lent to a thread that waits. It lives as long as the handle, because a
 * broadcast may come after its thread has gone on: the broadcast then wakes the thread that has the
 * place by now, without need. */
struct ps_waiter {
	enum waiter_state state;
	/* Links of the line in IN_LINE; `next` links the spare list in SPARE. */
	struct ps_waiter *next, *previous;
	uint64_t seq;
	pthread_cond_t wake;
};

/* Inserts the waiter behind those that wait for the same seq: nearly always at the end. */
static void link_waiter(struct ps_wait_line *line, struct ps_waiter *w)
{
	struct ps_waiter *before = line->last_waiter;

	while (before && before->seq > w->seq)
		before = before->previous;
	w->previous = before;
	w->next = before ? before->next : line->first_waiter;
	*(w->next ? &w->next->previous : &line->last_waiter) = w;
	*(before ? &before->next : &line->first_waiter) = w;
}

static void unlink_waiter(struct ps_wait_line *line, struct ps_waiter *w)
{
	*(w->next ? &w->next->previous : &line->last_waiter) = w->previous;
	*(w->previous ? &w->previous->next : &line->first_waiter) = w->next;
}

/* Moves a waiter to another state, and keeps the line, woken_count and next_leader consistent with
 * it. */
static void move_waiter(struct ps_wait_line *line, struct ps_waiter *w, enum waiter_state to)
{
	assert(entered_from[to] & FROM(w->state));
	assert((w->state == NEXT_LEADER) == (line->next_leader == w));
	if (w->state == IN_LINE)
		unlink_waiter(line, w);
	if (w->state == NEXT_LEADER)
		line->next_leader = NULL;
	if (to == SPARE && w->state != IN_LINE) {
		assert(line->woken_count > 0);
		line->woken_count--;
	}
	w->state = to;
	if (to == IN_LINE)
		link_waiter(line, w);
	if (to == WOKEN || to == NEXT_LEADER)
		line->woken_count++;
	if (to == NEXT_LEADER) {
		assert(!line->next_leader);
		line->next_leader = w;
	}
}

/* Wakes a waiter of the line. `to` is WOKEN, or NEXT_LEADER if the thread must lead. */
static void wake_waiter(struct perseas *p, struct ps_waiter *w, enum waiter_state to)
{
	struct ps_wait_line *line = &p->commit.wait_line;

	move_waiter(line, w, to);
	if (line->defers_broadcasts && line->deferred_broadcast_count < PS_DEFERRED_BROADCASTS_MAX)
		line->deferred_broadcasts[line->deferred_broadcast_count++] = &w->wake;
	else
		p->env->ops->broadcast(p->env, &w->wake);
}

static struct ps_waiter *new_waiter(void)
{
	struct ps_waiter *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;

	if (!w)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	return w;
}

/* Returns a spare waiter, or NULL if out of memory. */
static struct ps_waiter *borrow_waiter(struct ps_wait_line *line)
{
	struct ps_waiter *w = line->spare_waiters;

	if (!w)
		return new_waiter();
	line->spare_waiters = w->next;
	return w;
}

static void return_waiter(struct ps_wait_line *line, struct ps_waiter *w)
{
	assert(w->state == SPARE);
	w->next = line->spare_waiters;
	line->spare_waiters = w;
}

void ps_wait_line_free(struct perseas *p)
{
	struct ps_waiter *w = p->commit.wait_line.spare_waiters;

	while (w) {
		struct ps_waiter *next = w->next;

		pthread_cond_destroy(&w->wake);
		free(w);
		w = next;
	}
}

void ps_wait_line_sleep(struct perseas *p, uint64_t seq, uint64_t until_ns)
{
	struct ps_wait_line *line = &p->commit.wait_line;
	struct ps_waiter *self = borrow_waiter(line);
	bool was_woken;

	ps_assert_locked(p);
	assert(p->commit.wait_line.has_leader || line->is_spinning);
	/* Without a waiter, the thread is woken by every change. */
	if (!self) {
		p->env->ops->wait(p->env, &p->commit.wait_line.changed, &p->lock, until_ns);
		return;
	}
	self->seq = seq;
	move_waiter(line, self, IN_LINE);
	p->env->ops->wait(p->env, &self->wake, &p->lock, until_ns);
	was_woken = self->state != IN_LINE;
	move_waiter(line, self, SPARE);
	if (was_woken && !line->woken_count)
		ps_mirrors_post_from_ring(p);
	return_waiter(line, self);
}

/* Makes the deferred broadcasts, one at a time. If the first thread that is woken takes the
 * processor from this one, it makes the remaining ones when it polls the links. */
static void make_deferred_broadcasts(struct perseas *p)
{
	struct ps_wait_line *line = &p->commit.wait_line;

	while (line->deferred_broadcast_count) {
		pthread_cond_t *call = line->deferred_broadcasts[--line->deferred_broadcast_count];

		pthread_mutex_unlock(&p->lock);
		p->env->ops->broadcast(p->env, call);
		ps_lock(p);
	}
}

void ps_wait_line_poll(struct perseas *p)
{
	p->commit.wait_line.defers_broadcasts = true;
	ps_mirrors_poll(p);
	p->commit.wait_line.defers_broadcasts = false;
	make_deferred_broadcasts(p);
}

void ps_wait_line_leave(struct perseas *p)
{
	struct ps_wait_line *line = &p->commit.wait_line;

	if (!p->commit.wait_line.waiting_count || p->commit.wait_line.has_leader ||
	    line->is_spinning || line->next_leader)
		return;
	if (line->last_waiter)
		wake_waiter(p, line->last_waiter, NEXT_LEADER);
	else if (!line->woken_count)
		p->env->ops->broadcast(p->env, &p->commit.wait_line.changed);
	assert(!line->first_waiter || line->next_leader);
}

void ps_wait_line_wake_leader(struct perseas *p)
{
	if (p->commit.wait_line.has_leader)
		p->env->ops->wake(p->env, PS_COMMITTER);
}

void ps_wait_line_wake_durable(struct perseas *p)
{
	struct ps_wait_line *line = &p->commit.wait_line;

	while (line->first_waiter && ps_w_mirrors_hold(p, line->first_waiter->seq))
		wake_waiter(p, line->first_waiter, WOKEN);
	ps_wait_line_wake_leader(p);
	p->env->ops->broadcast(p->env, &p->commit.wait_line.changed);
}

void ps_wait_line_wake_all(struct perseas *p)
{
	while (p->commit.wait_line.first_waiter)
		wake_waiter(p, p->commit.wait_line.first_waiter, WOKEN);
}

void ps_wake_waiters(struct perseas *p)
{
	if (!p->commit.wait_line.waiting_count)
		return;
	ps_assert_locked(p);
	/* The leader sleeps on links, whose events another thread may have consumed. */
	if (p->commit.wait_line.has_leader)
		p->env->ops->wake(p->env, PS_COMMITTER);
	p->env->ops->broadcast(p->env, &p->commit.wait_line.changed);
	ps_wait_line_wake_all(p);
}
