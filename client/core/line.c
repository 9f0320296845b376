/*
 * line.c - see line.h.
 */
#include "line.h"

#include "handle.h"
#include "mirror.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The handle's, lent to a thread that waits. It lives as long as the handle does, since a call may
 * come when its thread has gone on: then whoever has it by now wakes for nothing. */
struct ps_waiter {
	struct ps_waiter *next, *previous; /* in the line; `next` also among those that are spare */
	uint64_t seq;
	bool called;
	pthread_cond_t call;
};

/* Behind those that wait for the same: nearly always at the end. */
static void join(struct ps_wait_line *line, struct ps_waiter *w)
{
	struct ps_waiter *before = line->last;

	while (before && before->seq > w->seq)
		before = before->previous;
	w->previous = before;
	w->next = before ? before->next : line->first;
	*(w->next ? &w->next->previous : &line->last) = w;
	*(before ? &before->next : &line->first) = w;
}

static void part(struct ps_wait_line *line, struct ps_waiter *w)
{
	*(w->next ? &w->next->previous : &line->last) = w->previous;
	*(w->previous ? &w->previous->next : &line->first) = w->next;
}

static void call(struct perseas *p, struct ps_waiter *w)
{
	struct ps_wait_line *line = &p->commit.line;

	part(line, w);
	line->called++;
	w->called = true;
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

/* NULL: there is no memory for one more. */
static struct ps_waiter *borrow(struct ps_wait_line *line)
{
	struct ps_waiter *w = line->spare;

	if (!w)
		return new_waiter();
	line->spare = w->next;
	return w;
}

static void give_back(struct ps_wait_line *line, struct ps_waiter *w)
{
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
	struct ps_waiter *self = borrow(line);

	assert(p->leader || line->spins);
	/* Without a place in the line it is woken by whatever happens. */
	if (!self) {
		p->env->ops->wait(p->env, &p->progress, &p->lock, until_ns);
		return;
	}
	self->seq = seq;
	self->called = false;
	join(line, self);
	p->env->ops->wait(p->env, &self->call, &p->lock, until_ns);
	if (line->heir == self)
		line->heir = NULL;
	if (!self->called)
		part(line, self);
	else if (!--line->called)
		ps_mirrors_send(p);
	give_back(line, self);
}

/* One at a time: whoever is woken first may take the processor from this thread, and makes those
 * that are left, when it looks at the links. */
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

	if (!p->waiters || p->leader || line->spins || line->heir)
		return;
	line->heir = line->last;
	if (line->heir)
		call(p, line->heir);
	else if (!line->called)
		p->env->ops->broadcast(p->env, &p->progress);
}

void ps_line_polled(struct perseas *p)
{
	if (p->leader)
		p->env->ops->wake(p->env, PS_COMMITTER);
}

void ps_line_held(struct perseas *p)
{
	struct ps_wait_line *line = &p->commit.line;

	while (line->first && ps_mirrors_hold(p, line->first->seq))
		call(p, line->first);
	ps_line_polled(p);
	p->env->ops->broadcast(p->env, &p->progress);
}

void ps_line_call_all(struct perseas *p)
{
	while (p->commit.line.first)
		call(p, p->commit.line.first);
}

void ps_progress(struct perseas *p)
{
	if (!p->waiters)
		return;
	/* The leader sleeps on links, which another thread may have emptied. */
	if (p->leader)
		p->env->ops->wake(p->env, PS_COMMITTER);
	p->env->ops->broadcast(p->env, &p->progress);
	ps_line_call_all(p);
}
