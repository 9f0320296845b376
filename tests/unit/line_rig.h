/*
 * line_rig.h - threads that wait until a mirror holds their transactions (line.h), for test_line.c
 * and test_together.c. The threads are real, and take the steps that a test says. They sleep until
 * somebody wakes them, however long that takes: a wake that is left out is a step that never comes.
 */
#ifndef PERSEAS_TESTS_LINE_RIG_H
#define PERSEAS_TESTS_LINE_RIG_H

#include "owner.h"
#include "../../client/core/commit.h"
#include "../../client/core/mirror.h"

#include <sched.h>

enum { WAITERS = 5, CROWD = 2 * PS_DEFERRED_BROADCASTS_MAX, BOUND_S = 20 };

/* A thread that waits for one transaction. */
struct waiter {
	pthread_t thread;
	uint64_t seq; /* 0: for any event */
	int rc;
	bool over; /* with the lock */
};

static struct owner *o;
static struct ps_env_ops ops; /* with which they wait for each other indeed */
static const struct ps_env_ops *before;
static pthread_cond_t leader_woken;
static bool is_leader_woken; /* with the lock, as what follows */
static unsigned woken;       /* waiters that have left the line */
static bool is_time_over;    /* from now on no waiter is called in time */
static struct waiter waiters[CROWD];
static uint64_t first;             /* transaction of waiter 0 */
static _Thread_local uint64_t own; /* of this thread, when it is a waiter */
static uint64_t led;               /* transaction of the leader that sleeps; with the lock */
static unsigned pauses;            /* so often has a leader gone to sleep; with the lock */
static bool slow[WAITERS];         /* these are called, and do not run; with the lock */
static pthread_cond_t goes_on;
static bool is_slow_to_call; /* who calls one has to wait until all others were woken */
static bool calls_outside;   /* from now on waiters must be called without the lock */

/* --- the env --- */

/* The leader sleeps until it is woken: its links never have anything for it. */
static void pause_for_wake(struct ps_env *env, enum ps_sleeper who, struct pollfd *fds,
                           unsigned count, uint64_t until_ns)
{
	(void)env;
	(void)fds;
	(void)count;
	(void)until_ns;
	assert_int_equal(who, PS_COMMITTER);
	pthread_mutex_lock(&o->p->lock);
	pauses++;
	led = own;
	while (!is_leader_woken)
		pthread_cond_wait(&leader_woken, &o->p->lock);
	is_leader_woken = false;
	led = 0;
	pthread_mutex_unlock(&o->p->lock);
}

static void wake_leader(struct ps_env *env, enum ps_sleeper who)
{
	(void)env;
	if (who != PS_COMMITTER)
		return;
	is_leader_woken = true;
	pthread_cond_signal(&leader_woken);
}

static void wait_for_call(struct ps_env *env, pthread_cond_t *cond, pthread_mutex_t *lock,
                          uint64_t until_ns)
{
	(void)env;
	if (is_time_over) {
		o->d->now = until_ns;
		return;
	}
	pthread_cond_wait(cond, lock);
	woken++;
	while (own && slow[own - first])
		pthread_cond_wait(&goes_on, lock);
}

/* Lets the others run until `what`. There is no way on for the threads when it does not come. */
#define UNTIL(what)                                                                       \
	do {                                                                              \
		const time_t bound = time(NULL) + BOUND_S;                                \
		bool came = false;                                                        \
		while (!came && time(NULL) < bound) {                                     \
			sched_yield();                                                    \
			pthread_mutex_lock(&o->p->lock);                                  \
			came = (what);                                                    \
			pthread_mutex_unlock(&o->p->lock);                                \
		}                                                                         \
		if (!came) {                                                              \
			fprintf(stderr, "%s:%d: never: %s\n", __FILE__, __LINE__, #what); \
			_exit(1);                                                         \
		}                                                                         \
	} while (0)

static void call_all(struct ps_env *env, pthread_cond_t *cond)
{
	(void)env;
	if (calls_outside && cond != &o->p->commit.wait_line.changed) {
		const struct timespec bound = { .tv_sec = time(NULL) + BOUND_S };

		assert_int_equal(pthread_mutex_timedlock(&o->p->lock, &bound), 0);
		pthread_mutex_unlock(&o->p->lock);
	}
	pthread_cond_broadcast(cond);
	if (is_slow_to_call && own == first && cond != &o->p->commit.wait_line.changed)
		UNTIL(woken == WAITERS - 1);
}

/* --- steps --- */

static bool is_led(void)
{
	return o->p->commit.wait_line.has_leader;
}

static uint64_t led_for(void)
{
	return o->p->commit.wait_line.has_leader ? led : 0;
}

/* Returns the number of waiters in the line. */
static unsigned asleep(void)
{
	return o->p->commit.wait_line.waiting_count - o->p->commit.wait_line.has_leader;
}

static bool is_over(const struct waiter *w)
{
	return w->over;
}

static void *run_waiter(void *arg)
{
	struct waiter *w = arg;
	uint64_t since = 0;

	own = w->seq;
	pthread_mutex_lock(&o->p->lock);
	if (w->seq)
		w->rc = ps_commit_await_w_mirrors(o->p, w->seq, &since);
	else
		ps_commit_sleep_on_links(o->p, PS_NEVER);
	w->over = true;
	pthread_mutex_unlock(&o->p->lock);
	return NULL;
}

static void begin(unsigned which, uint64_t seq)
{
	struct waiter *w = &waiters[which];

	*w = (struct waiter){ .seq = seq };
	assert_int_equal(pthread_create(&w->thread, NULL, run_waiter, w), 0);
}

/* Waiter 0 leads, and the others are in the line: each for a transaction of its own. */
static void begin_all(void)
{
	begin(0, first);
	UNTIL(is_led());
	/* The order is mixed. */
	for (unsigned i = 0; i < WAITERS - 1; i++) {
		const unsigned which = 1 + (i * 3 + 1) % (WAITERS - 1);

		begin(which, first + which);
		UNTIL(asleep() == i + 1);
	}
}

static int end(unsigned which)
{
	UNTIL(is_over(&waiters[which]));
	assert_int_equal(pthread_join(waiters[which].thread, NULL), 0);
	return waiters[which].rc;
}

/* The mirror has completed so many more, and another thread sees it. */
static void complete(unsigned count)
{
	pthread_mutex_lock(&o->p->lock);
	direct_release(o->d, 0, count);
	ps_mirrors_poll(o->p);
	pthread_mutex_unlock(&o->p->lock);
}

/* The mirror has completed so many more, by which this waiter ends. */
static inline void complete_to_end(unsigned count, unsigned which)
{
	complete(count);
	assert_int_equal(end(which), 0);
}

static void post(uint8_t value)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, o->bytes, 8), 0);
	memset(o->bytes, value, 8);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
}

/* Transactions that the mirror has not completed, one for each waiter. */
static int setup(void **state)
{
	o = owner_new(1);
	o->d->staged = true;
	owner_begin(o);
	*state = o;
	o->d->mirrors[0].hold = DIRECT_HOLD_COMPLETIONS;
	first = o->p->commit.seq + 1;
	for (unsigned i = 0; i < WAITERS; i++)
		post((uint8_t)i);
	before = o->p->env->ops;
	ops = *before;
	ops.pause = pause_for_wake;
	ops.wake = wake_leader;
	ops.wait = wait_for_call;
	ops.broadcast = call_all;
	o->p->env->ops = &ops;
	pthread_cond_init(&leader_woken, NULL);
	pthread_cond_init(&goes_on, NULL);
	is_leader_woken = is_time_over = false;
	woken = pauses = 0;
	calls_outside = is_slow_to_call = false;
	led = 0;
	memset(slow, 0, sizeof(slow));
	return 0;
}

static int teardown(void **state)
{
	const struct ps_wait_line *line = &o->p->commit.wait_line;

	assert_int_equal(o->p->commit.wait_line.waiting_count, 0);
	assert_true(!line->first_waiter && !line->last_waiter && !line->woken_count &&
	            !line->next_leader);
	assert_false(line->is_spinning);
	pthread_cond_destroy(&leader_woken);
	pthread_cond_destroy(&goes_on);
	o->p->env->ops = before;
	o->d->mirrors[0].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 0, UINT32_MAX);
	owner_free(*state);
	return 0;
}

static void run_again(unsigned from, unsigned to)
{
	pthread_mutex_lock(&o->p->lock);
	for (unsigned i = from; i <= to; i++)
		slow[i] = false;
	pthread_cond_broadcast(&goes_on);
	pthread_mutex_unlock(&o->p->lock);
}

#endif
