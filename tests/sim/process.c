/*
 * process.c - runs, stops, wakes and kills the coroutines of an owner. The world's events and
 * env_sim.c call it. It decides when a thread runs, and nothing of what it does.
 */
#include "process.h"

#include "../../client/core/handle.h"
#include "env_sim.h"
#include "fabric_sim.h"
#include "pager_sim.h"
#include "written_sim.h"

#define SCHEDULING SIM_US         /* from a wake-up to running */
#define DEAD_STEP (1000 * SIM_MS) /* what each look at the clock costs the dead */

static bool is_ready(const struct sim_task *task)
{
	const struct sim_owner *o = task->owner;
	const struct sim_wait *wait = &task->wait;

	if (o->dead || task->signalled)
		return true;
	if (wait->sleeper >= 0 && o->woken[wait->sleeper])
		return true;
	if (wait->flag && *wait->flag)
		return true;
	for (unsigned i = 0; i < wait->count; i++) {
		const struct sim_endpoint *endpoint = sim_endpoint(o->world, wait->fds[i].fd);

		if (endpoint->ready(endpoint, wait->fds[i].events))
			return true;
	}
	return false;
}

static void run(struct sim_task *task)
{
	struct sim_owner *o = task->owner;
	struct sim_task *before = o->running;

	o->running = task;
	coroutine_resume(task->coroutine);
	o->running = before;
	if (coroutine_ended(task->coroutine)) {
		coroutine_free(task->coroutine);
		task->coroutine = NULL;
		task->ended = true;
		sim_owner_poke(o);
	}
}

/* Returns true if the task would wait for the handle's lock. Fetching takes no lock. */
static bool is_locked_out(const struct sim_task *task)
{
	const struct sim_owner *o = task->owner;

	const bool fetches = (task >= &o->tasks[SIM_FETCHER] && task < &o->tasks[SIM_COLLECTOR]) ||
	                     task >= &o->tasks[SIM_READER];

	return o->locks && o->locks != task && !fetches;
}

static void resume(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_task *task = arg;

	(void)w;
	if (!task->blocked || task->ticket != ticket)
		return;
	if (task->owner->stopped || is_locked_out(task)) {
		task->deferred = true;
		return;
	}
	task->blocked = false;
	run(task);
}

static void schedule(struct sim_task *task)
{
	struct sim_world *w = task->owner->world;

	if (task->scheduled)
		return;
	task->scheduled = true;
	sim_at(w, w->now + SCHEDULING, resume, task, task->ticket);
}

static void poke(struct sim_task *task)
{
	if (task->blocked && is_ready(task))
		schedule(task);
}

void sim_owner_poke(struct sim_owner *o)
{
	for (int i = 0; i < SIM_TASKS; i++)
		poke(&o->tasks[i]);
}

void sim_task_block(struct sim_owner *o, const struct sim_wait *wait)
{
	struct sim_task *task = o->running;

	task->wait = *wait;
	task->blocked = true;
	task->scheduled = false;
	task->signalled = false;
	task->ticket++;
	if (is_ready(task) || wait->until <= sim_owner_now(o))
		schedule(task);
	else if (wait->until != PS_NEVER)
		sim_at(o->world, wait->until, resume, task, task->ticket);
	coroutine_yield(task->coroutine);
	if (wait->sleeper >= 0)
		o->woken[wait->sleeper] = false;
}

static void go_on(struct sim_task *task)
{
	if (!task->deferred)
		return;
	task->deferred = false;
	task->scheduled = false;
	schedule(task);
}

static bool has_lock(const struct sim_owner *o)
{
	if (!o->handle || pthread_mutex_trylock(&o->handle->lock))
		return o->handle != NULL;
	pthread_mutex_unlock(&o->handle->lock);
	return false;
}

bool sim_task_wait(struct sim_owner *o, const struct sim_wait *wait)
{
	const bool locks = has_lock(o);

	if (locks) {
		sim_count(o->world, SIM_PARTED, 1);
		o->locks = o->running;
	}
	sim_task_block(o, wait);
	if (!locks)
		return false;
	o->locks = NULL;
	for (int i = 0; i < SIM_TASKS; i++)
		go_on(&o->tasks[i]);
	return true;
}

void sim_owner_sleep(struct sim_owner *o, uint64_t ns)
{
	struct sim_wait wait = { .until = sim_owner_now(o) + ns, .sleeper = -1 };

	sim_task_block(o, &wait);
}

uint64_t sim_owner_now(struct sim_owner *o)
{
	if (o->dead)
		o->dead_ns += DEAD_STEP;
	return o->world->now + o->dead_ns;
}

void sim_task_join(struct sim_owner *o, int which)
{
	struct sim_wait wait = { .until = PS_NEVER, .sleeper = -1, .flag = &o->tasks[which].ended };

	while (!o->tasks[which].ended)
		sim_task_block(o, &wait);
}

void sim_task_begin(struct sim_owner *o, int which, void (*fn)(void *arg), void *arg)
{
	struct sim_task *task = &o->tasks[which];

	task->ended = false;
	task->coroutine = coroutine_new(fn, arg);
	task->blocked = true;
	task->scheduled = false;
	task->ticket++;
	schedule(task);
}

struct sim_owner *sim_owner_new(struct sim_world *w, void (*fn)(void *arg), void *arg)
{
	struct sim_owner *o = sim_alloc(w, sizeof(*o));

	o->world = w;
	o->index = w->owner_count;
	o->stop_after = UINT64_MAX;
	o->env.ops = &sim_env_ops;
	o->env.pager = &sim_pager_ops;
	for (int i = 0; i < SIM_TASKS; i++) {
		o->tasks[i].owner = o;
		o->tasks[i].ended = true;
	}
	o->env.written = sim_written(o);
	w->owners[w->owner_count++] = o;
	sim_task_begin(o, SIM_APP, fn, arg);
	return o;
}

bool sim_owner_ended(const struct sim_owner *o)
{
	for (int i = 0; i < SIM_TASKS; i++)
		if (!o->tasks[i].ended)
			return false;
	return true;
}

static void wake(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_owner *o = arg;
	struct sim_task *inside = o->inside;

	(void)ticket;
	if (!o->stopped)
		return;
	sim_trace(w, "owner %u is woken", o->index);
	o->stopped = false;
	o->inside = NULL;
	if (inside)
		run(inside);
	for (int i = 0; i < SIM_TASKS; i++)
		go_on(&o->tasks[i]);
}

void sim_owner_stop(struct sim_owner *o, uint64_t ns)
{
	struct sim_world *w = o->world;

	if (o->dead || o->stopped)
		return;
	sim_trace(w, "owner %u is stopped for %llu us", o->index, (unsigned long long)ns / 1000);
	sim_count(w, SIM_OWNER_STOPS, 1);
	o->stopped = true;
	sim_at(w, w->now + ns, wake, o, 0);
}

bool sim_owners_opened(const struct sim_world *w)
{
	for (unsigned i = 0; i < w->owner_count; i++)
		if (w->owners[i]->opened)
			return true;
	return false;
}

void sim_owner_kill(struct sim_owner *o, bool silent)
{
	if (o->dead)
		return;
	sim_trace(o->world, "owner %u dies%s", o->index, silent ? ", and its host" : "");
	o->dead = true;
	sim_links_died(o, silent);
	sim_controls_died(o, silent);
	if (o->stopped)
		wake(o->world, o, 0);
	sim_owner_poke(o);
}

uint64_t sim_owner_stores(struct sim_owner *o, uint64_t len)
{
	if (o->dead)
		return 0;
	if (o->stop_after == UINT64_MAX)
		return len;
	if (len > o->stop_after)
		len = o->stop_after;
	o->stop_after -= len;
	return len;
}

bool sim_owner_halt(struct sim_owner *o)
{
	struct sim_task *task = o->running;

	if (o->dead)
		return false;
	o->stop_after = UINT64_MAX;
	sim_count(o->world, SIM_TORN, 1);
	if (o->stop_how == SIM_CRASH) {
		sim_owner_kill(o, false);
		return false;
	}
	if (!o->stopped)
		sim_owner_stop(o, o->stop_ns);
	o->inside = task;
	coroutine_yield(task->coroutine);
	return !o->dead;
}

void sim_owner_lurch(struct sim_owner *o, uint64_t bytes)
{
	struct sim_task *inside = o->inside;

	if (!inside || o->dead)
		return;
	sim_trace(o->world, "owner %u goes on for %llu bytes", o->index, (unsigned long long)bytes);
	o->inside = NULL;
	o->stop_after = bytes;
	o->stop_how = SIM_STOP;
	run(inside);
	if (!o->inside)
		o->stop_after = UINT64_MAX;
}
