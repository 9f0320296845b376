/*
 * jobs.h - requests that may take long, each on a thread of its own, in turns with the loop.
 *
 * One thread at a time has the turn: the loop's, or that of one job. Its holder uses all of the
 * daemon's state as if there were no other thread, so that the store logic is written for one. A
 * job begins with the turn, and gives it up inside job_aside() alone: what runs there goes on
 * beside the loop and other jobs, and must touch nothing but what it was given: no store, no log,
 * no session. When it is over, the job waits until the loop gives it a turn again.
 *
 * Where there are no jobs (unit tests, the simulator, the start and the end of the daemon)
 * job_aside() is a plain call.
 */
#ifndef PERSEAS_SERVER_JOBS_H
#define PERSEAS_SERVER_JOBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct jobs;
struct worker;

/* Owned by whoever starts it, until done() was called, or jobs_start() returned true. */
struct job {
	void (*run)(struct job *job);  /* on a thread of its own, with the turn */
	void (*done)(struct job *job); /* on the loop's thread, after a run that was aside */
	/* The pool's: */
	struct worker *worker;
	bool over;
	atomic_bool cancelled;
	uint64_t began_us; /* of its thread's processor time */
	struct job *next;  /* of those that begin later */
};

/* Jobs under way at the same time, at most; beyond them who comes has to wait. */
enum { JOBS_MAX = 32 };

/* wake() is called by any thread, when jobs_turns() is due. NULL: out of memory. */
struct jobs *jobs_new(void (*wake)(void *arg), void *arg);
/* Cancels what is under way, and waits until it is over. NULL is allowed. */
void jobs_free(struct jobs *jobs);

/* May another job be started? False also when the host gives no thread. */
bool jobs_has_room(struct jobs *jobs);
/* Runs the job until it is over (true), or goes on aside (false): done() comes then. */
bool jobs_start(struct jobs *jobs, struct job *job);
/* Gives each job that waits for it a turn, and calls done() of those that are over. */
void jobs_turns(struct jobs *jobs);
/* How many jobs are under way, or begin later. */
unsigned jobs_count(const struct jobs *jobs);
/* Microseconds of processor time that the job has taken; NULL: all jobs since the pool began. They
 * grow while there is progress. */
uint64_t jobs_spent_us(const struct jobs *jobs, const struct job *job);
/* Cancels all jobs and gives turns until none is left; waits for what they do aside. */
void jobs_drain(struct jobs *jobs);

/* Nobody wants its result any more: what it does aside is to end soon, and to fail. */
void job_cancel(struct job *job);

/* --- for what has the turn --- */

/* The job begins when the loop comes to it and a thread is free. True: it was run at once, as there
 * are no jobs; done() does not come then. */
bool job_later(struct job *job);

/* Work on fewer bytes does not take long. */
#define JOB_ASIDE_LEAST ((uint64_t)1 << 20)
/* Gives up the turn while run(arg) goes on; outside of a job, and for few bytes, calls it. */
void job_aside(uint64_t bytes, void (*run)(void *arg), void *arg);
/* The job that runs this; NULL: none does. */
struct job *job_current(void);
/* Is the job that runs this cancelled? Outside of a job: no. Any thread's own job. */
bool job_cancelled(void);

#endif
