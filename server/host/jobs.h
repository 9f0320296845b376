/*
 * jobs.h - long requests, each in a thread of its own that takes turns with the loop.
 *
 * One thread at a time has the turn: the loop's, or that of one job. It uses all state of the
 * daemon as if there were no other thread, so the store logic is written for one thread. A job
 * begins with the turn and gives it up only inside job_aside(). What runs there is concurrent with
 * the loop and other jobs, and must use only its arguments: no store, no log, no session.
 * Afterwards the job waits until the loop gives it the turn again.
 *
 * Without jobs (unit tests, the simulator, the start and end of the daemon) job_aside() is a plain
 * call.
 */
#ifndef PERSEAS_SERVER_JOBS_H
#define PERSEAS_SERVER_JOBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct jobs;
struct worker;

/* A job. Its creator owns it until done() was called or jobs_start() returned true. */
struct job {
	void (*run)(struct job *job); /* runs in a thread of its own, with the turn */
	/* Called in the loop's thread when the job has ended, if jobs_start() returned false. */
	void (*done)(struct job *job);
	/* The following members are private to jobs.c. */
	struct worker *worker; /* thread that runs the job */
	bool over;             /* run() has returned */
	atomic_bool cancelled;
	uint64_t began_us; /* processor time of the thread when the job began */
	struct job *next;  /* next job in the queue (job_queue()) */
};

/* Maximum number of jobs in progress; further requests wait. */
enum { JOBS_MAX = 32 };

/* Creates a pool. Any thread calls wake() when jobs_give_turns() must be called. Returns NULL if
 * memory is out. */
struct jobs *jobs_new(void (*wake)(void *arg), void *arg);
/* Cancels all jobs and waits until they have ended. Accepts NULL. */
void jobs_free(struct jobs *jobs);

/* Returns true if another job can be started. Returns false if there are too many or no thread can
 * be created. */
bool jobs_can_start(struct jobs *jobs);
/* Runs the job until it ends or gives up the turn. Returns true if it has ended. Otherwise done()
 * is called later. */
bool jobs_start(struct jobs *jobs, struct job *job);
/* Gives each waiting job a turn, and calls done() for those that have ended. */
void jobs_give_turns(struct jobs *jobs);
/* Returns the number of jobs that are in progress or queued. */
unsigned jobs_count(const struct jobs *jobs);
/* Returns the processor time that the job has used, in microseconds; NULL: that of all jobs since
 * the pool was created. It grows while jobs make progress. */
uint64_t jobs_spent_us(const struct jobs *jobs, const struct job *job);
/* Cancels all jobs and gives them turns until none is left. */
void jobs_drain(struct jobs *jobs);

/* Cancels a job whose result is no longer wanted: functions that it runs in job_aside() should end
 * soon and fail (job_cancelled()). */
void job_cancel(struct job *job);

/* --- for the thread that has the turn --- */

/* Queues a job that begins when a thread is free. Returns true if there is no pool and it was run
 * at once; done() is not called then. */
bool job_queue(struct job *job);

/* Work on fewer bytes is too short to give up the turn for it. */
#define JOB_ASIDE_LEAST ((uint64_t)1 << 20)
/* Gives up the turn, calls run(arg), and waits for the turn again. `bytes` says how much data run()
 * works on. Outside of a job, and for less than JOB_ASIDE_LEAST bytes, just calls run(arg). */
void job_aside(uint64_t bytes, void (*run)(void *arg), void *arg);
/* Returns the job that runs in this thread, or NULL. */
struct job *job_current(void);
/* Returns true if the job that runs in this thread was cancelled. Returns false outside of a
 * job. */
bool job_cancelled(void);

#endif
