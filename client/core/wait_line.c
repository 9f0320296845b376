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
	CALLED,
	HEIR,
};

#define FROM(state) (1u << (state))

/* The states from which each state may be entered. */
static const unsigned entered_from[] = {
	[SPARE] = FROM(IN_LINE) | FROM(CALLED) | FROM(HEIR),
	[IN_LINE] = FROM(SPARE),
	[CALLED] = FROM(IN_LINE),
	[HEIR] = FROM(IN_LINE),
};

/* A place in the line, lent to a thread that waits. It lives as long as the handle, because a
 * broadcast may come after its thread has gone on: it then wakes the thread that has the place,
 * without need. */
struct ps_waiter {
	enum waiter_state state;
	/* Links of the line in IN_LINE; `next` links the spare list in SPARE. */
	struct ps_waiter *next, *previous;
	uint64_t seq;
	pthread_cond_t call;
};

/* Inserts the waiter behind those that wait for the same seq: nearly always at the end. */
static void link_waiter(struct ps_wait_line *line, struct ps_waiter *w)
{
	struct ps_waiter *before = line->last;

	while (before && before->seq > w->seq)
		before = before->previous;
	w->previous = before;
	w->next = before ? before->next : line->first;
	*(w->next ? &w->next->previous : &line->last) = w;
	*(before ? &before->next : &line->first) = w;
}

static void unlink_waiter(struct ps_wait_line *line, struct ps_waiter *w)
{
	*(w->next ? &w->next->previous : &line->last) = w->previous;
	*(w->previous ? &w->previous->next : &line->first) = w->next;
}

/* Moves a waiter to another state, and keeps the line, `called` and `heir` consistent with it. */
static void move_waiter(struct ps_wait_line *line, struct ps_waiter *w, enum waiter_state to)
{
	assert(entered_from[to] & FROM(w->state));
	assert((w->state == HEIR) == (line->heir == w));
	if (w->state == IN_LINE)
		unlink_waiter(line, w);
	if (w->state == HEIR)
		line->heir = NULL;
	if (to == SPARE && w->state != IN_LINE) {
		assert(line->called > 0);
		line->called--;
	}
	w->state = to;
	if (to == IN_LINE)
		link_waiter(line, w);
	if (to == CALLED || to == HEIR)
		line->called++;
	if (to == HEIR) {
		assert(!line->heir);
		line->heir = w;
	}
}

/* Wakes a waiter of the line. `to` is CALLED, or HEIR if the thread must lead. */
static void call_waiter(struct perseas *p, struct ps_waiter *w, enum waiter_state to)
{
	struct ps_wait_line *line = &p->commit.line;

	move_waiter(line, w, to);
	if (line->calls_later && line->uncalled < PS_CALLS_MAX)
		line->calls[line->uncalled++] = &w->call;
	else
		p->env->ops->broadcast(p->env, &w->call);
}

static struct ps_waiter *new_waiter(void)
{
	struct ps_waiter *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;

	if (!w)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->call, &attr);
	pthread_condattr_destroy(&attr);
	return w;
}

/* Returns a spare waiter, or NULL if out of memory. */
static struct ps_waiter *borrow_waiter(struct ps_wait_line *line)
{
	struct ps_waiter *w = line->spare;

	if (!w)
		return new_waiter();
	line->spare = w->next;
	return w;
}

static void return_waiter(struct ps_wait_line *line, struct ps_waiter *w)
{
	assert(w->state == SPARE);
	w->next = line->spare;
	line->spare = w;
}

void ps_line_free(struct perseas *p)
{
	struct ps_waiter *w = p->commit.line.spare;

	while (w) {
		struct ps_waiter *next = w->next;

		pthread_cond_destroy(&w->call);
		free(w);
		w = next;
	}
}

void ps_line_wait(struct perseas *p, uint64_t seq, uint64_t until_ns)
{
	struct ps_wait_line *line = &p->commit.line;
	struct ps_waiter *self = borrow_waiter(line);
	bool was_called;

	ps_assert_locked(p);
	assert(p->commit.line.leader || line->spins);
	/* Without a waiter, the thread is woken by every change. */
	if (!self) {
		p->env->ops->wait(p->env, &p->commit.line.changed, &p->lock, until_ns);
		return;
	}
	self->seq = seq;
	move_waiter(line, self, IN_LINE);
	p->env->ops->wait(p->env, &self->call, &p->lock, until_ns);
	was_called = self->state != IN_LINE;
	move_waiter(line, self, SPARE);
	if (was_called && !line->called)
		ps_mirrors_send(p);
	return_waiter(line, self);
}

/* Makes the deferred broadcasts, one at a time. If the first thread that is woken takes the
 * processor from this one, it makes the remaining ones when it polls the links. */
static void make_calls(struct perseas *p)
{
	struct ps_wait_line *line = &p->commit.line;

	while (line->uncalled) {
		pthread_cond_t *call = line->calls[--line->uncalled];

		pthread_mutex_unlock(&p->lock);
		p->env->ops->broadcast(p->env, call);
		ps_lock(p);
	}
}

void ps_line_poll(struct perseas *p)
{
	p->commit.line.calls_later = true;
	ps_mirrors_poll(p);
	p->commit.line.calls_later = false;
	make_calls(p);
}

void ps_line_leave(struct perseas *p)
{
	struct ps_wait_line *line = &p->commit.line;

	if (!p->commit.line.waiters || p->commit.line.leader || line->spins || line->heir)
		return;
	if (line->last)
		call_waiter(p, line->last, HEIR);
	else if (!line->called)
		p->env->ops->broadcast(p->env, &p->commit.line.changed);
	assert(!line->first || line->heir);
}

void ps_line_wake_leader(struct perseas *p)
{
	if (p->commit.line.leader)
		p->env->ops->wake(p->env, PS_COMMITTER);
}

void ps_line_call_held(struct perseas *p)
{
	struct ps_wait_line *line = &p->commit.line;

	while (line->first && ps_mirrors_hold(p, line->first->seq))
		call_waiter(p, line->first, CALLED);
	ps_line_wake_leader(p);
	p->env->ops->broadcast(p->env, &p->commit.line.changed);
}

void ps_line_call_all(struct perseas *p)
{
	while (p->commit.line.first)
		call_waiter(p, p->commit.line.first, CALLED);
}

void ps_progress(struct perseas *p)
{
	if (!p->commit.line.waiters)
		return;
	ps_assert_locked(p);
	/* The leader sleeps on links, whose events another thread may have consumed. */
	if (p->commit.line.leader)
		p->env->ops->wake(p->env, PS_COMMITTER);
	p->env->ops->broadcast(p->env, &p->commit.line.changed);
	ps_line_call_all(p);
}
