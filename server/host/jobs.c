/*
 * jobs.c - threads for jobs, and which thread has the turn. The loop (jobs_loop.c) calls it, and
 * the store and memory logic through job_aside(). Two threads must never have the turn at once.
 */
#include "jobs.h"
#include "thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct worker {
	struct jobs *jobs;
	struct worker *next; /* in the list of idle workers, or of those that wait for their turn */
	struct job *job;     /* job that the worker runs; NULL: idle */
	pthread_cond_t woken; /* signaled when it gets the turn, or must end */
	pthread_t thread;
	clockid_t clock; /* clock of its processor time */
};

struct jobs {
	pthread_mutex_t lock;    /* guards the members below, and the workers */
	pthread_cond_t returned; /* signaled when the loop gets the turn back */
	struct worker *turn;     /* the worker that has the turn; NULL: the loop */
	struct worker *idle;
	struct worker *first, **last; /* workers that wait for their turn, in order */
	struct worker *workers[JOBS_MAX];
	/* Used by the loop only; `count` is the number of unfinished jobs. */
	unsigned threads, count;
	/* Used by the thread that has the turn: jobs that begin later. */
	struct job *queued, **queued_last;
	unsigned queued_count;
	bool ending;
	void (*wake)(void *arg);
	void *wake_arg;
};

static _Thread_local struct worker *own_worker;
static _Thread_local struct jobs *loop_pool; /* the pool of the loop that runs in this thread */

/* Gives the turn to the worker and waits until it comes back. Caller holds jobs->lock. */
static void give_turn(struct jobs *jobs, struct worker *worker)
{
	assert(!jobs->turn);
	jobs->turn = worker;
	pthread_cond_signal(&worker->woken);
	while (jobs->turn)
		pthread_cond_wait(&jobs->returned, &jobs->lock);
}

static void return_turn_to_loop(struct jobs *jobs)
{
	assert(jobs->turn == own_worker);
	jobs->turn = NULL;
	pthread_cond_signal(&jobs->returned);
}

static void wait_for_turn(struct worker *worker)
{
	struct jobs *jobs = worker->jobs;

	while (jobs->turn != worker && !(jobs->ending && !worker->job))
		pthread_cond_wait(&worker->woken, &jobs->lock);
}

static void *jobs_thread(void *arg)
{
	struct worker *worker = arg;
	struct jobs *jobs = worker->jobs;

	own_worker = worker;
	pthread_mutex_lock(&jobs->lock);
	for (;;) {
		wait_for_turn(worker);
		if (jobs->turn != worker)
			break;
		pthread_mutex_unlock(&jobs->lock);
		worker->job->run(worker->job);
		pthread_mutex_lock(&jobs->lock);
		worker->job->over = true;
		worker->job = NULL;
		worker->next = jobs->idle;
		jobs->idle = worker;
		return_turn_to_loop(jobs);
	}
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

static bool add_worker(struct jobs *jobs)
{
	struct worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return false;
	worker->jobs = jobs;
	pthread_cond_init(&worker->woken, NULL);
	if (thread_start(&worker->thread, jobs_thread, worker) ||
	    pthread_getcpuclockid(worker->thread, &worker->clock)) {
		pthread_cond_destroy(&worker->woken);
		free(worker);
		return false;
	}
	pthread_mutex_lock(&jobs->lock);
	assert(jobs->threads < JOBS_MAX);
	worker->next = jobs->idle;
	jobs->idle = worker;
	jobs->workers[jobs->threads++] = worker;
	pthread_mutex_unlock(&jobs->lock);
	return true;
}

struct jobs *jobs_new(void (*wake)(void *arg), void *arg)
{
	struct jobs *jobs = calloc(1, sizeof(*jobs));

	if (!jobs)
		return NULL;
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_cond_init(&jobs->returned, NULL);
	jobs->last = &jobs->first;
	jobs->queued_last = &jobs->queued;
	jobs->wake = wake;
	jobs->wake_arg = arg;
	loop_pool = jobs;
	return jobs;
}

void jobs_free(struct jobs *jobs)
{
	if (!jobs)
		return;
	jobs_drain(jobs);
	loop_pool = NULL;
	pthread_mutex_lock(&jobs->lock);
	jobs->ending = true;
	for (unsigned i = 0; i < jobs->threads; i++)
		pthread_cond_signal(&jobs->workers[i]->woken);
	pthread_mutex_unlock(&jobs->lock);
	for (unsigned i = 0; i < jobs->threads; i++) {
		pthread_join(jobs->workers[i]->thread, NULL);
		pthread_cond_destroy(&jobs->workers[i]->woken);
		free(jobs->workers[i]);
	}
	pthread_cond_destroy(&jobs->returned);
	pthread_mutex_destroy(&jobs->lock);
	free(jobs);
}

bool jobs_can_start(struct jobs *jobs)
{
	return jobs->idle || (jobs->threads < JOBS_MAX && add_worker(jobs));
}

static uint64_t spent_us(const struct worker *worker)
{
	struct timespec time;

	if (clock_gettime(worker->clock, &time))
		return 0;
	return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000;
}

uint64_t jobs_spent_us(const struct jobs *jobs, const struct job *job)
{
	uint64_t sum = 0;

	if (job)
		return spent_us(job->worker) - job->began_us;
	for (unsigned i = 0; i < jobs->threads; i++)
		sum += spent_us(jobs->workers[i]);
	return sum;
}

bool jobs_start(struct jobs *jobs, struct job *job)
{
	struct worker *worker;

	assert(!own_worker);
	job->over = false;
	atomic_store(&job->cancelled, false);
	pthread_mutex_lock(&jobs->lock);
	worker = jobs->idle;
	assert(worker && !worker->job);
	jobs->idle = worker->next;
	worker->job = job;
	job->worker = worker;
	job->began_us = spent_us(worker);
	jobs->count++;
	give_turn(jobs, worker);
	jobs->count -= job->over;
	pthread_mutex_unlock(&jobs->lock);
	return job->over;
}

/* Gives the turn to the first waiting worker. Returns its job if that has ended, else NULL. Caller
 * holds jobs->lock. */
static struct job *give_next_turn(struct jobs *jobs)
{
	struct worker *worker = jobs->first;
	struct job *job;

	assert(worker && worker->job);
	job = worker->job;
	jobs->first = worker->next;
	if (!jobs->first)
		jobs->last = &jobs->first;
	give_turn(jobs, worker);
	jobs->count -= job->over;
	return job->over ? job : NULL;
}

bool job_queue(struct job *job)
{
	struct jobs *jobs = own_worker ? own_worker->jobs : loop_pool;

	if (!jobs) {
		job->run(job);
		return true;
	}
	job->next = NULL;
	*jobs->queued_last = job;
	jobs->queued_last = &job->next;
	jobs->queued_count++;
	jobs->wake(jobs->wake_arg);
	return false;
}

/* Starts the queued jobs. If the host has no thread left, the loop runs them itself. */
static void start_queued(struct jobs *jobs)
{
	while (jobs->queued) {
		struct job *job = jobs->queued;
		const bool room = jobs_can_start(jobs);

		if (!room && jobs->count > 0)
			return;
		jobs->queued = job->next;
		if (!jobs->queued)
			jobs->queued_last = &jobs->queued;
		jobs->queued_count--;
		if (!room)
			job->run(job);
		if (!room || jobs_start(jobs, job))
			job->done(job);
	}
}

/* Gives at most JOBS_MAX turns; a job that asks for its turn in the meantime wakes the loop
 * again. */
void jobs_give_turns(struct jobs *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	for (unsigned i = 0; i < JOBS_MAX && jobs->first; i++) {
		struct job *job = give_next_turn(jobs);

		if (!job)
			continue;
		pthread_mutex_unlock(&jobs->lock);
		job->done(job);
		pthread_mutex_lock(&jobs->lock);
	}
	pthread_mutex_unlock(&jobs->lock);
	start_queued(jobs);
}

unsigned jobs_count(const struct jobs *jobs)
{
	return jobs->count + jobs->queued_count;
}

void job_cancel(struct job *job)
{
	atomic_store(&job->cancelled, true);
}

void job_aside(uint64_t bytes, void (*run)(void *arg), void *arg)
{
	struct worker *worker = own_worker;
	struct jobs *jobs;

	if (!worker || bytes < JOB_ASIDE_LEAST) {
		run(arg);
		return;
	}
	jobs = worker->jobs;
	pthread_mutex_lock(&jobs->lock);
	return_turn_to_loop(jobs);
	pthread_mutex_unlock(&jobs->lock);
	run(arg);
	pthread_mutex_lock(&jobs->lock);
	worker->next = NULL;
	*jobs->last = worker;
	jobs->last = &worker->next;
	pthread_cond_signal(&jobs->returned);
	jobs->wake(jobs->wake_arg);
	wait_for_turn(worker);
	pthread_mutex_unlock(&jobs->lock);
}

/* Waits until a job asks for its turn: job_aside() signals jobs->returned for that, too. */
void jobs_drain(struct jobs *jobs)
{
	for (start_queued(jobs); jobs_count(jobs) > 0; start_queued(jobs)) {
		pthread_mutex_lock(&jobs->lock);
		for (unsigned i = 0; i < jobs->threads; i++)
			if (jobs->workers[i]->job)
				job_cancel(jobs->workers[i]->job);
		while (!jobs->first)
			pthread_cond_wait(&jobs->returned, &jobs->lock);
		pthread_mutex_unlock(&jobs->lock);
		jobs_give_turns(jobs);
	}
}

struct job *job_current(void)
{
	return own_worker ? own_worker->job : NULL;
}

bool job_cancelled(void)
{
	return own_worker && atomic_load(&own_worker->job->cancelled);
}
