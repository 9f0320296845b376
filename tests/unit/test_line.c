/*
 * test_line.c - threads that wait until a mirror holds their transactions (line.h): who is woken by
 * what, and who leads. The threads are real, and take the steps that a test says. They sleep until
 * somebody wakes them, however long that takes: a wake that is left out is a step that never comes.
 */
#include "owner.h"
#include "../../client/core/commit.h"
#include "../../client/core/mirror.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

enum { WAITERS = 5, CROWD = 2 * PS_CALLS_MAX, BOUND_S = 20 };

/* A thread that waits for one transaction. */
struct waiter {
	pthread_t thread;
	uint64_t seq; /* 0: for whatever happens */
	int rc;
	bool over; /* with the lock */
};

static struct owner *o;
static struct ps_env_ops ops; /* with which they wait for each other indeed */
static const struct ps_env_ops *before;
static pthread_cond_t leader_woken;
static bool is_leader_woken; /* with the lock, as what follows */
static unsigned woken;       /* those that were in the line, and are not */
static bool is_time_over;    /* nobody is called in time from now on */
static struct waiter waiters[CROWD];
static uint64_t first;             /* transaction of waiter 0 */
static _Thread_local uint64_t own; /* of this thread, when it is a waiter */
static uint64_t led;               /* transaction of the leader that sleeps; with the lock */
static unsigned pauses;            /* so often has a leader gone to sleep; with the lock */
static bool slow[WAITERS];         /* these are called, and do not run; with the lock */
static pthread_cond_t goes_on;
static bool calls_outside; /* whoever calls others from now on must not have the lock */

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

static void call_all(struct ps_env *env, pthread_cond_t *cond)
{
	(void)env;
	if (calls_outside && cond != &o->p->progress) {
		const struct timespec bound = { .tv_sec = time(NULL) + BOUND_S };

		assert_int_equal(pthread_mutex_timedlock(&o->p->lock, &bound), 0);
		pthread_mutex_unlock(&o->p->lock);
	}
	pthread_cond_broadcast(cond);
}

/* --- steps --- */

static bool is_led(void)
{
	return o->p->leader;
}

static uint64_t led_for(void)
{
	return o->p->leader ? led : 0;
}

/* Those in the line. */
static unsigned asleep(void)
{
	return o->p->waiters - o->p->leader;
}

static bool is_over(const struct waiter *w)
{
	return w->over;
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

static void *run_waiter(void *arg)
{
	struct waiter *w = arg;
	uint64_t since = 0;

	own = w->seq;
	pthread_mutex_lock(&o->p->lock);
	if (w->seq)
		w->rc = ps_commit_await(o->p, w->seq, &since);
	else
		ps_commit_sleep(o->p, PS_NEVER);
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
	/* In no order. */
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

/* The same, and the leader sees it. */
static void complete_for_leader(unsigned count)
{
	pthread_mutex_lock(&o->p->lock);
	direct_release(o->d, 0, count);
	wake_leader(o->p->env, PS_COMMITTER);
	pthread_mutex_unlock(&o->p->lock);
}

/* The mirror has completed so many more, and another thread sees it. */
static void complete(unsigned count)
{
	pthread_mutex_lock(&o->p->lock);
	direct_release(o->d, 0, count);
	ps_mirrors_poll(o->p);
	pthread_mutex_unlock(&o->p->lock);
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
	calls_outside = false;
	led = 0;
	memset(slow, 0, sizeof(slow));
	return 0;
}

static int teardown(void **state)
{
	const struct ps_wait_line *line = &o->p->commit.line;

	assert_int_equal(o->p->waiters, 0);
	assert_true(!line->first && !line->last && !line->called && !line->heir);
	assert_false(line->spins);
	pthread_cond_destroy(&leader_woken);
	pthread_cond_destroy(&goes_on);
	o->p->env->ops = before;
	o->d->mirrors[0].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 0, UINT32_MAX);
	owner_free(*state);
	return 0;
}

/* --- the tests --- */

/* Another thread sees that the mirror has completed transactions in the order of posting. */
static void a_completion_wakes_those_whose_transactions_are_held(void **state)
{
	(void)state;
	begin_all();
	complete(1);
	assert_int_equal(end(0), 0);
	/* The one that has the longest to wait leads from then on. */
	UNTIL(led_for() == first + WAITERS - 1);
	assert_int_equal(woken, 1);
	complete(2);
	assert_int_equal(end(1), 0);
	assert_int_equal(end(2), 0);
	UNTIL(woken == 3 && asleep() == 1);
	complete(1);
	assert_int_equal(end(3), 0);
	UNTIL(led_for() == first + WAITERS - 1);
	complete(1);
	assert_int_equal(end(4), 0);
	assert_int_equal(woken, 4);
}

/* The leader's own is held last, and whoever waits for it was called before. */
static void one_completion_of_all_wakes_all(void **state)
{
	(void)state;
	begin_all();
	complete(WAITERS);
	for (unsigned i = 0; i < WAITERS; i++)
		assert_int_equal(end(i), 0);
	assert_int_equal(woken, WAITERS - 1);
}

/* Each needs the lock first of all. */
static void the_leader_calls_the_others_when_it_has_let_go_of_the_lock(void **state)
{
	(void)state;
	begin_all();
	calls_outside = true;
	complete_for_leader(WAITERS);
	for (unsigned i = 0; i < WAITERS; i++)
		assert_int_equal(end(i), 0);
	assert_int_equal(woken, WAITERS - 1);
}

/* More than it keeps calls of. */
static void the_leader_calls_all_of_a_crowd(void **state)
{
	(void)state;
	begin(0, first);
	UNTIL(is_led());
	for (unsigned i = 1; i < CROWD; i++) {
		begin(i, first);
		UNTIL(asleep() == i);
	}
	complete_for_leader(1);
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(end(i), 0);
	assert_int_equal(woken, CROWD - 1);
	complete(WAITERS - 1);
}

/* Those that were called leave before there is a leader: the last of them sees to it. */
static void there_is_a_leader_while_anybody_waits(void **state)
{
	(void)state;
	begin_all();
	complete(3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(end(i), 0);
	UNTIL(led_for() == first + WAITERS - 1 && asleep() == 1);
	complete(1);
	assert_int_equal(end(3), 0);
	complete(1);
	assert_int_equal(end(4), 0);
}

/* One for whom any progress counts, as for room in the ring, sleeps beside the leader. */
static void a_completion_wakes_who_waits_for_any(void **state)
{
	(void)state;
	begin(0, first + 1);
	UNTIL(is_led());
	begin(1, 0);
	UNTIL(asleep() == 1);
	complete(1);
	end(1);
	UNTIL(led_for() == first + 1);
	complete(1);
	assert_int_equal(end(0), 0);
}

/* It leads itself, and lets the next one lead. */
static void who_waits_for_any_leads_too(void **state)
{
	(void)state;
	begin(0, 0);
	UNTIL(is_led());
	begin(1, first + 1);
	UNTIL(asleep() == 1);
	complete(1);
	end(0);
	UNTIL(led_for() == first + 1);
	complete(1);
	assert_int_equal(end(1), 0);
}

/* Nobody is in the line, and the leader leaves: nobody else would see completions. */
static void who_waits_for_any_is_woken_when_the_leader_leaves(void **state)
{
	(void)state;
	begin(0, first);
	UNTIL(is_led());
	begin(1, 0);
	UNTIL(asleep() == 1);
	pthread_mutex_lock(&o->p->lock);
	o->p->superseded = true;
	wake_leader(o->p->env, PS_COMMITTER);
	pthread_mutex_unlock(&o->p->lock);
	assert_int_equal(end(0), PERSEAS_EFENCED);
	end(1);
	o->p->superseded = false;
	complete(WAITERS);
}

/* Who leads for others sleeps on the links, however long a commit may spin. */
static void nobody_spins_beside_others(void **state)
{
	(void)state;
	begin_all();
	pthread_mutex_lock(&o->p->lock);
	o->p->options.spin_us = UINT32_MAX;
	o->p->options.commit_timeout_ms = UINT32_MAX;
	pthread_mutex_unlock(&o->p->lock);
	complete(1);
	assert_int_equal(end(0), 0);
	UNTIL(led_for() == first + WAITERS - 1);
	complete(WAITERS - 1);
	for (unsigned i = 1; i < WAITERS; i++)
		assert_int_equal(end(i), 0);
}

/* Another owner has the store: nobody waits any longer. */
static void all_are_woken_when_another_owner_has_the_store(void **state)
{
	(void)state;
	begin_all();
	pthread_mutex_lock(&o->p->lock);
	o->p->superseded = true;
	ps_progress(o->p);
	pthread_mutex_unlock(&o->p->lock);
	for (unsigned i = 0; i < WAITERS; i++)
		assert_int_equal(end(i), PERSEAS_EFENCED);
	o->p->superseded = false;
	complete(WAITERS);
}

/* Before it says that its time is over, it looks at the links itself, although another leads. */
static void who_gives_up_looks_before(void **state)
{
	struct perseas_token token = { o->p->commit.unwaited.epoch, first };

	(void)state;
	begin(0, first + 1);
	UNTIL(is_led());
	assert_int_equal(perseas_wait(o->p, &token, 0), PERSEAS_ETIMEOUT);
	pthread_mutex_lock(&o->p->lock);
	direct_release(o->d, 0, 1);
	pthread_mutex_unlock(&o->p->lock);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
	complete(1);
	assert_int_equal(end(0), 0);
}

/* The same of a commit, which would be in doubt. */
static void a_commit_looks_before_it_is_in_doubt(void **state)
{
	uint64_t since = 0;

	(void)state;
	begin(0, first + 1);
	UNTIL(is_led());
	pthread_mutex_lock(&o->p->lock);
	direct_release(o->d, 0, 1);
	is_time_over = true;
	assert_int_equal(ps_commit_await(o->p, first, &since), 0);
	pthread_mutex_unlock(&o->p->lock);
	complete(1);
	assert_int_equal(end(0), 0);
}

/* While another leads, a commit that waits does not look at the links: that one does. */
static void nobody_looks_beside_the_leader(void **state)
{
	(void)state;
	begin(0, first);
	UNTIL(is_led());
	pthread_mutex_lock(&o->p->lock);
	direct_release(o->d, 0, 1);
	pthread_mutex_unlock(&o->p->lock);
	begin(1, first + 1);
	UNTIL(asleep() == 1);
	assert_int_equal(o->p->mirrors[0].acked, first - 1);
	complete(1);
	assert_int_equal(end(0), 0);
	assert_int_equal(end(1), 0);
}

/* What the leader sleeps on holds until somebody polls, whatever that brings. */
static void the_leader_sleeps_anew_when_another_has_taken_completions(void **state)
{
	(void)state;
	begin(0, first + 1);
	UNTIL(pauses == 1);
	complete(1);
	UNTIL(pauses == 2);
	complete(1);
	assert_int_equal(end(0), 0);
}

/* A poll that had nothing takes the event of a part of a chain, on fabrics that have such. */
static void the_leader_sleeps_anew_when_another_has_taken_an_event(void **state)
{
	const struct ps_fabric *fabric = o->p->mirrors[0].fabric;
	struct ps_fabric arming = *fabric;

	(void)state;
	arming.arms = true;
	begin(0, first);
	UNTIL(pauses == 1);
	complete(0);
	assert_int_equal(pauses, 1);
	o->p->mirrors[0].fabric = &arming;
	complete(0);
	UNTIL(pauses == 2);
	o->p->mirrors[0].fabric = fabric;
	complete(1);
	assert_int_equal(end(0), 0);
}

static void run_again(unsigned from, unsigned to)
{
	pthread_mutex_lock(&o->p->lock);
	for (unsigned i = from; i <= to; i++)
		slow[i] = false;
	pthread_cond_broadcast(&goes_on);
	pthread_mutex_unlock(&o->p->lock);
}

/* One whose transaction is held was called, and has not run: others are led all the same. */
static void nobody_waits_for_who_was_called_to_lead(void **state)
{
	(void)state;
	slow[1] = true;
	begin_all();
	complete(2);
	assert_int_equal(end(0), 0);
	UNTIL(led_for() == first + WAITERS - 1);
	run_again(1, 1);
	assert_int_equal(end(1), 0);
	complete(3);
	for (unsigned i = 2; i < WAITERS; i++)
		assert_int_equal(end(i), 0);
}

/* Of several who leave before the heir has run, the first one has called it. */
static void one_heir_is_called(void **state)
{
	(void)state;
	for (unsigned i = 1; i < WAITERS; i++)
		slow[i] = true;
	begin_all();
	complete(3);
	assert_int_equal(end(0), 0);
	run_again(1, 2);
	assert_int_equal(end(1), 0);
	assert_int_equal(end(2), 0);
	UNTIL(woken == 3);
	pthread_mutex_lock(&o->p->lock);
	assert_ptr_equal(o->p->commit.line.first, o->p->commit.line.last);
	assert_non_null(o->p->commit.line.first);
	pthread_mutex_unlock(&o->p->lock);
	run_again(3, 4);
	UNTIL(led_for() == first + WAITERS - 1);
	complete(2);
	assert_int_equal(end(3), 0);
	assert_int_equal(end(4), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_completion_wakes_those_whose_transactions_are_held),
		TEST(one_completion_of_all_wakes_all),
		TEST(the_leader_calls_the_others_when_it_has_let_go_of_the_lock),
		TEST(the_leader_calls_all_of_a_crowd),
		TEST(there_is_a_leader_while_anybody_waits),
		TEST(a_completion_wakes_who_waits_for_any),
		TEST(who_waits_for_any_leads_too),
		TEST(who_waits_for_any_is_woken_when_the_leader_leaves),
		TEST(nobody_spins_beside_others),
		TEST(all_are_woken_when_another_owner_has_the_store),
		TEST(who_gives_up_looks_before),
		TEST(a_commit_looks_before_it_is_in_doubt),
		TEST(nobody_looks_beside_the_leader),
		TEST(the_leader_sleeps_anew_when_another_has_taken_completions),
		TEST(the_leader_sleeps_anew_when_another_has_taken_an_event),
		TEST(nobody_waits_for_who_was_called_to_lead),
		TEST(one_heir_is_called),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
