/*
 * test_apart_threads.c - SERIAL transactions and locks of real threads, over a daemon in a process
 * of its own. test_apart.c says what each call does.
 */
#include "tellers.h"

enum { THREADS = 6, ROUNDS = 300, NUMBERS = 8, SUM = 1000 };

struct unit_fixture unit_fixture = { place_setup, place_teardown };
struct unit_fixture unit_group = { unit_limit_time, NULL }; /* who is not woken waits for ever */

/* Numbers whose sum never changes, unless transactions come between each other. */
struct numbers {
	int64_t values[NUMBERS];
	uint64_t changes;
};

struct worker {
	perseas_t *p;
	struct numbers *numbers;
	uint64_t random;
	unsigned changes, refusals;
	int rc; /* the first error */
	pthread_t thread;
};

static unsigned draw(struct worker *w, unsigned below)
{
	return (unsigned)(unit_draw(&w->random) % below);
}

static int add(perseas_tx_t *tx, int64_t *number, int64_t by)
{
	int rc = perseas_set_range(tx, number, sizeof(*number));

	if (!rc)
		*number += by;
	return rc;
}

/* Checks the sum, which is right unless a SERIAL transaction is in the middle of its work. */
static int check_sum(const struct numbers *numbers)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < NUMBERS; i++)
		sum += numbers->values[i];
	return sum == SUM ? 0 : PERSEAS_EDAMAGED;
}

static int move_serially(struct worker *w)
{
	unsigned from = draw(w, NUMBERS), to = draw(w, NUMBERS);
	uint64_t savepoint;
	perseas_tx_t *tx;
	int rc = perseas_begin(w->p, PERSEAS_SERIAL, &tx);

	if (rc)
		return rc;
	rc = check_sum(w->numbers);
	if (draw(w, 8) == 0)
		return rc ? rc : perseas_commit(tx, 0);
	if (!rc)
		rc = add(tx, &w->numbers->values[from], -3);
	if (!rc)
		rc = perseas_savepoint(tx, &savepoint);
	if (!rc)
		rc = add(tx, &w->numbers->values[from], 100);
	if (!rc)
		rc = perseas_rollback_to(tx, savepoint);
	if (!rc)
		rc = add(tx, &w->numbers->values[to], 3);
	if (!rc && draw(w, 4) == 0)
		return perseas_abort(tx);
	if (!rc)
		rc = perseas_set_range(tx, &w->numbers->changes, sizeof(w->numbers->changes));
	if (rc)
		return rc;
	w->numbers->changes++;
	rc = perseas_commit(tx, 0);
	w->changes += !rc;
	return rc;
}

/* Locks of the two numbers, in any order: some are refused, and tried again. */
static int move_with_locks(struct worker *w)
{
	unsigned from = draw(w, NUMBERS), to = draw(w, NUMBERS);
	perseas_tx_t *tx;
	int rc = perseas_begin(w->p, 0, &tx);

	while (!rc) {
		rc = perseas_lock(tx, from, PERSEAS_LOCK_EXCLUSIVE);
		if (!rc)
			rc = add(tx, &w->numbers->values[from], -3);
		if (!rc)
			rc = perseas_lock(tx, to, PERSEAS_LOCK_EXCLUSIVE);
		if (rc != PERSEAS_ECONFLICT)
			break;
		w->refusals++;
		rc = perseas_retry(tx);
	}
	if (!rc)
		rc = add(tx, &w->numbers->values[to], 3);
	if (rc)
		return rc;
	w->changes++;
	return perseas_commit(tx, 0);
}

/* Readers lock all, shared, and see a sum that is right. */
static int read_with_locks(struct worker *w)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(w->p, 0, &tx);

	for (unsigned i = 0; !rc && i < NUMBERS; i++) {
		rc = perseas_lock(tx, i, PERSEAS_LOCK_SHARED);
		if (rc != PERSEAS_ECONFLICT)
			continue;
		rc = perseas_retry(tx);
		i = UINT32_MAX;
	}
	if (!rc)
		rc = check_sum(w->numbers);
	return rc ? rc : perseas_commit(tx, 0);
}

static void *work_serially(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < ROUNDS && !w->rc; i++)
		w->rc = move_serially(w);
	return NULL;
}

static void *work_with_locks(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < ROUNDS && !w->rc; i++)
		w->rc = draw(w, 4) ? move_with_locks(w) : read_with_locks(w);
	return NULL;
}

/* Returns how many transactions changed something. */
static unsigned run(perseas_t *p, struct numbers *numbers, void *(*work)(void *worker))
{
	static struct worker workers[THREADS];
	unsigned changes = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .p = p,
			                      .numbers = numbers,
			                      .random = 0x9e3779b97f4a7c15u * (i + 1) };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].rc, 0);
		changes += workers[i].changes;
	}
	return changes;
}

static void all_of_it(const char *mirrors)
{
	perseas_t *p = open_store(mirrors, 65536, 1 << 20, NULL);
	struct numbers *numbers;
	unsigned changes;
	void *base;

	assert_int_equal(perseas_map(p, "numbers", sizeof(*numbers), &base), 0);
	numbers = base;
	numbers->values[0] = SUM;
	assert_int_equal(perseas_publish(p), 0);
	changes = run(p, numbers, work_serially);
	assert_int_equal(numbers->changes, changes);
	assert_true(changes > 0);
	run(p, numbers, work_with_locks);
	assert_int_equal(check_sum(numbers), 0);
	perseas_close(p);
	p = open_store(mirrors, 65536, 1 << 20, NULL);
	assert_int_equal(perseas_map(p, "numbers", 0, &base), 0);
	assert_int_equal(numbers->changes, changes);
	assert_int_equal(check_sum(numbers), 0);
	perseas_close(p);
}

/* Threads change the same numbers, one after another, by turns and by locks: nothing is lost, none
 * sees the middle of another's work, and the next owner finds it so. */
TEST(threads_are_kept_apart_over_tcp, struct place *place)
{
	all_of_it(place->tcp);
}

TEST(threads_are_kept_apart_over_shared_memory, struct place *place)
{
	all_of_it(place->local);
}

struct asker {
	perseas_t *p;
	unsigned *came; /* so many had their turn */
	unsigned place; /* this one's */
	pthread_t thread;
};

static void *ask(void *arg)
{
	struct asker *asker = arg;
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(asker->p, PERSEAS_SERIAL, &tx), 0);
	asker->place = (*asker->came)++;
	assert_int_equal(perseas_abort(tx), 0);
	return NULL;
}

/* Threads get their turn in the order in which they came. */
TEST(turns_come_in_order, struct place *place)
{
	perseas_t *p = open_store(place->tcp, 65536, 1 << 20, NULL);
	struct asker askers[THREADS];
	unsigned came = 0;
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(p, PERSEAS_SERIAL, &tx), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		askers[i] = (struct asker){ .p = p, .came = &came };
		assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
		while (count_blocked(p) <= i)
			sched_yield();
	}
	assert_int_equal(perseas_commit(tx, 0), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(askers[i].thread, NULL);
		assert_int_equal(askers[i].place, i);
	}
	perseas_close(p);
}

static void *begin_serially(void *arg)
{
	struct asker *asker = arg;
	perseas_tx_t *tx = NULL;

	assert_int_equal(perseas_begin(asker->p, PERSEAS_SERIAL, &tx), 0);
	return tx;
}

/* A transaction is handed on, and the thread that began it has ended: another thread, which may
 * have its memory, is not taken for it, and waits for its turn. */
TEST(another_thread_is_not_the_one_that_ended, struct place *place)
{
	perseas_t *p = open_store(place->tcp, 65536, 1 << 20, NULL);
	unsigned came = 0;
	struct asker first = { .p = p }, next = { .p = p, .came = &came };
	void *tx;

	assert_int_equal(pthread_create(&first.thread, NULL, begin_serially, &first), 0);
	pthread_join(first.thread, &tx);
	assert_int_equal(pthread_create(&next.thread, NULL, ask, &next), 0);
	while (!count_blocked(p))
		sched_yield();
	assert_int_equal(came, 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	pthread_join(next.thread, NULL);
	assert_int_equal(came, 1);
	perseas_close(p);
}
