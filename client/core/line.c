/*
 * line.c - see line.h.
 */
#include "line.h"

#include "handle.h"
#include "mirror.h"

#include <time.h>

/* On the stack of the thread that waits. */
struct ps_waiter {
	struct ps_waiter *next, *previous;
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
	part(&p->commit.line, w);
	p->commit.line.called++;
	w->called = true;
	p->env->ops->broadcast(p->env, &w->call);
}

static void init(struct ps_waiter *w, uint64_t seq)
{
	pthread_condattr_t attr;

	w->seq = seq;
	w->called = false;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->call, &attr);
	pthread_condattr_destroy(&attr);
}

void ps_line_wait(struct perseas *p, uint64_t seq, uint64_t until_ns)
{
	struct ps_wait_line *line = &p->commit.line;
	struct ps_waiter self;

	assert(p->leader || line->spins);
	init(&self, seq);
	join(line, &self);
	p->env->ops->wait(p->env, &self.call, &p->lock, until_ns);
	if (line->heir == &self)
		line->heir = NULL;
	if (self.called)
		line->called--;
	else
		part(line, &self);
	pthread_cond_destroy(&self.call);
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
