/*
 * test_deadlock_threads.c - threads that wait for each other over two and three stores, of a daemon
 * in a process of its own: what the calls return to a thread that would close a cycle, and that
 * work which is begun again gets done. test_deadlock.c tries all interleavings.
 */
#include "tellers.h"

enum { STORES = 3, WORKERS = 4, ROUNDS = 200, EXCLUSIVE = PERSEAS_LOCK_EXCLUSIVE };

struct stores {
	struct place place;
	perseas_t *p[STORES];
	uint64_t *sums[STORES]; /* one number in each */
};

static int setup(void **state)
{
	static struct stores stores;
	struct perseas_options options = PERSEAS_OPTIONS_INIT;

	*state = &stores;
	if (place_start(&stores.place))
		return -1;
	options.flags = PERSEAS_CREATE;
	options.log_size = 65536;
	options.ring_size = 1 << 20;
	for (unsigned i = 0; i < STORES; i++) {
		const char *names[] = { "a", "b", "c" };
		void *base;

		if (perseas_open(names[i], stores.place.local, &options, &stores.p[i]) ||
		    perseas_map(stores.p[i], "sum", sizeof(uint64_t), &base) ||
		    perseas_publish(stores.p[i]))
			return -1;
		stores.sums[i] = base;
	}
	return 0;
}

static int teardown(void **state)
{
	struct stores *stores = *state;

	for (unsigned i = 0; i < STORES; i++) {
		if (count_blocked(stores->p[i]))
			exit(1); /* the test has failed, and its other thread sleeps for ever */
		perseas_close(stores->p[i]);
	}
	return place_end(&stores->place);
}

struct unit_fixture unit_fixture = { setup, teardown };
struct unit_fixture unit_group = { unit_limit_time, NULL }; /* who is not refused waits for ever */

static void await_blocked(perseas_t *p)
{
	while (!count_blocked(p))
		sched_yield();
}

/* Another thread, which has something in b, and then waits for the first thread's in a. */
struct other {
	struct stores *stores;
	bool turns; /* rather than locks */
	bool waits; /* it ends its transactions when the first thread is blocked in b */
	perseas_tx_t *txs[2];
	int rc;
	pthread_t thread;
};

static int take(struct other *other, unsigned store)
{
	perseas_t *p = other->stores->p[store];

	if (other->turns)
		return perseas_begin(p, PERSEAS_SERIAL, &other->txs[store]);
	return perseas_lock(other->txs[store], 1, EXCLUSIVE);
}

static void *run_other(void *arg)
{
	struct other *other = arg;

	other->rc = take(other, 1);
	other->rc = other->rc ? other->rc : take(other, 0);
	if (other->waits)
		await_blocked(other->stores->p[1]);
	for (unsigned i = 0; i < 2; i++)
		perseas_abort(other->txs[i]);
	return NULL;
}

static void start_other(struct other *other)
{
	assert_int_equal(pthread_create(&other->thread, NULL, run_other, other), 0);
	await_blocked(other->stores->p[0]);
}

static void join_other(struct other *other)
{
	pthread_join(other->thread, NULL);
	assert_int_equal(other->rc, 0);
}

static void assert_says_deadlock(perseas_t *p)
{
	assert_non_null(strstr(perseas_message(p), "would deadlock"));
	assert_non_null(strstr(perseas_message(p), "abort its transactions in all stores"));
}

/* The fault that this began with: the turn in a, then that in b, against b, then a. */
TEST(a_turn_that_would_deadlock_is_refused, struct stores *stores)
{
	struct other other = { .stores = stores, .turns = true };
	perseas_tx_t *a, *b;
	unsigned tries = 0;

	assert_int_equal(perseas_begin(stores->p[0], PERSEAS_SERIAL, &a), 0);
	start_other(&other);
	assert_int_equal(perseas_begin(stores->p[1], PERSEAS_SERIAL, &b), PERSEAS_ECONFLICT);
	assert_null(b);
	assert_says_deadlock(stores->p[1]);
	/* No pause would help. */
	assert_int_equal(perseas_retry_conflict(stores->p[1], NULL, &tries), PERSEAS_ECONFLICT);
	assert_int_equal(tries, 0);
	assert_int_equal(perseas_abort(a), 0);
	join_other(&other);
	assert_int_equal(perseas_begin(stores->p[1], PERSEAS_SERIAL, &b), 0);
	assert_int_equal(perseas_abort(b), 0);
}

struct locker {
	struct other other;
	perseas_tx_t *a, *b;
};

static void begin_with_lock(perseas_t *p, uint64_t key, perseas_tx_t **tx)
{
	assert_int_equal(perseas_begin(p, 0, tx), 0);
	assert_int_equal(perseas_lock(*tx, key, EXCLUSIVE), 0);
}

/* The first thread has lock 1 in a, where the other one is older and waits for it. In b, where the
 * other one has lock 1, the first one is older, and would wait. */
static void be_refused(struct locker *l, struct stores *stores, bool waits)
{
	*l = (struct locker){ .other = { .stores = stores, .waits = waits } };
	begin_with_lock(stores->p[1], 3, &l->b);
	begin_with_lock(stores->p[0], 2, &l->other.txs[0]);
	begin_with_lock(stores->p[1], 2, &l->other.txs[1]);
	begin_with_lock(stores->p[0], 1, &l->a);
	start_other(&l->other);
	assert_int_equal(perseas_lock(l->b, 1, EXCLUSIVE), PERSEAS_ECONFLICT);
	assert_says_deadlock(stores->p[1]);
}

/* A loop as that of the guide ends: the retry is refused as well, while the first thread has what
 * the other one waits for. */
TEST(a_lock_that_would_deadlock_is_refused, struct stores *stores)
{
	struct locker l;

	be_refused(&l, stores, false);
	/* Everything is as before. */
	assert_int_equal(perseas_lock(l.b, 3, EXCLUSIVE), 0);
	assert_int_equal(perseas_lock(l.b, 1, EXCLUSIVE), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_retry(l.b), PERSEAS_ECONFLICT);
	assert_says_deadlock(stores->p[1]);
	assert_int_equal(perseas_abort(l.b), PERSEAS_EENDED);
	assert_int_equal(perseas_abort(l.a), 0);
	join_other(&l.other);
}

/* The call for bindings leaves the transaction open, so that the binding ends it. */
TEST(a_conflict_that_would_deadlock_is_not_tried_again, struct stores *stores)
{
	unsigned tries = 0;
	struct locker l;

	be_refused(&l, stores, false);
	assert_int_equal(perseas_retry_conflict(stores->p[1], l.b, &tries), PERSEAS_ECONFLICT);
	assert_int_equal(tries, 0);
	assert_int_equal(perseas_abort(l.b), 0);
	assert_int_equal(perseas_abort(l.a), 0);
	join_other(&l.other);
}

/* Once it has let go in a, its retry in b waits, and it gets the lock. */
TEST(a_retry_waits_when_the_cycle_is_gone, struct stores *stores)
{
	struct locker l;

	be_refused(&l, stores, true);
	assert_int_equal(perseas_abort(l.a), 0);
	assert_int_equal(perseas_retry(l.b), 0);
	assert_int_equal(perseas_lock(l.b, 1, EXCLUSIVE), 0);
	join_other(&l.other);
	assert_int_equal(perseas_abort(l.b), 0);
}

/* The refused one still wants the lock: a younger one is not given it in the meantime. */
TEST(who_was_refused_is_not_overtaken, struct stores *stores)
{
	perseas_tx_t *young;
	struct locker l;

	be_refused(&l, stores, false);
	assert_int_equal(perseas_abort(l.a), 0);
	join_other(&l.other);
	assert_int_equal(perseas_begin(stores->p[1], 0, &young), 0);
	assert_int_equal(perseas_lock(young, 1, EXCLUSIVE), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_abort(young), 0);
	assert_int_equal(perseas_lock(l.b, 1, EXCLUSIVE), 0);
	assert_int_equal(perseas_abort(l.b), 0);
}

struct worker {
	struct stores *stores;
	uint64_t random;
	uint64_t added[STORES];
	unsigned refusals;
	int rc;
	pthread_t thread;
};

static int add(perseas_tx_t *tx, uint64_t *number)
{
	int rc = perseas_set_range(tx, number, sizeof(*number));

	if (!rc)
		++*number;
	return rc;
}

/* Begins one with a turn or a lock, as it happens, and adds 1. NULL in *tx: it has ended. */
static int add_in(struct worker *w, unsigned store, bool by_turn, perseas_tx_t **tx)
{
	perseas_t *p = w->stores->p[store];
	int rc = perseas_begin(p, by_turn ? PERSEAS_SERIAL : 0, tx);

	/* Turns and locks are of the same number here: a thread that has the turn has the lock. */
	while (!rc && (rc = perseas_lock(*tx, 7, EXCLUSIVE)) == PERSEAS_ECONFLICT) {
		rc = perseas_retry(*tx);
		if (rc)
			*tx = NULL;
	}
	return rc ? rc : add(*tx, w->stores->sums[store]);
}

/* In two stores, in any order. ECONFLICT: nothing was done. */
static int add_in_two(struct worker *w)
{
	const unsigned stores[2] = { (unsigned)(unit_draw(&w->random) % STORES),
		                     (unsigned)(unit_draw(&w->random) % STORES) };
	const unsigned count = stores[0] == stores[1] ? 1 : 2;
	perseas_tx_t *txs[2] = { NULL, NULL };
	int rc = 0;

	for (unsigned i = 0; i < count && !rc; i++)
		rc = add_in(w, stores[i], unit_draw(&w->random) % 2, &txs[i]);
	for (unsigned i = 0; i < count; i++) {
		if (!rc)
			rc = perseas_commit(txs[i], 0);
		else if (txs[i])
			perseas_abort(txs[i]);
		w->added[stores[i]] += !rc;
	}
	return rc;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < ROUNDS && !w->rc; i++) {
		while ((w->rc = add_in_two(w)) == PERSEAS_ECONFLICT)
			w->refusals++;
	}
	return NULL;
}

/* Threads use stores in any order, and begin again what is refused: all of it gets done. */
TEST(all_work_gets_done, struct stores *stores)
{
	static struct worker workers[WORKERS];
	uint64_t added[STORES] = { 0 };

	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){ .stores = stores,
			                      .random = 0x9e3779b97f4a7c15u * (i + 1) };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].rc, 0);
		for (unsigned k = 0; k < STORES; k++)
			added[k] += workers[i].added[k];
	}
	for (unsigned k = 0; k < STORES; k++)
		assert_int_equal(*stores->sums[k], added[k]);
}

/* --- fork --- */

static bool visit_itself(const struct ps_blocked *b, const struct ps_visit *visit)
{
	return visit->thread(visit->arg, b->thread);
}

static bool waits(const struct ps_blocked *b)
{
	(void)b;
	return true;
}

/* In the child: a search over two handles that were opened there. */
static bool search_again(const struct ps_blocked *parents)
{
	static const struct ps_blocked_ops ops = { waits, visit_itself };
	static struct perseas handles[2];
	struct ps_blocked b = { .ops = &ops, .p = &handles[0], .thread = parents->thread };

	alarm(60);
	for (unsigned i = 0; i < 2; i++) {
		pthread_mutex_init(&handles[i].lock, NULL);
		ps_deadlock_add_handle(&handles[i]);
	}
	pthread_mutex_lock(&handles[0].lock);
	return ps_deadlock_closes_cycle(&b);
}

static int status_of_child;

/* The process forks while a thread searches, which has all locks. */
static bool fork_meanwhile(const struct ps_blocked *b)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(!search_again(b));
	waitpid(child, &status_of_child, 0);
	return false;
}

TEST(a_child_forgets_the_handles_of_its_parent, struct stores *stores)
{
	const struct ps_blocked_ops ops = { fork_meanwhile, visit_itself };
	struct ps_blocked b = { .ops = &ops };
	perseas_t *p = stores->p[0];

	status_of_child = -1;
	pthread_mutex_lock(&p->lock);
	ps_deadlock_add_thread(p, &b);
	assert_false(ps_deadlock_closes_cycle(&b));
	ps_deadlock_remove_thread(&b);
	pthread_mutex_unlock(&p->lock);
	assert_int_equal(status_of_child, 0);
}
