/*
 * container_rig.h - what the tests of the containers in doc/examples/ share: random changes that
 * are held against an oracle, calls of the library that fail, and threads that work side by side.
 * A test compiles the container in, behind this header, so that calls can be refused there, and
 * says in a struct container how it is used.
 */
#ifndef PERSEAS_TESTS_CONTAINER_RIG_H
#define PERSEAS_TESTS_CONTAINER_RIG_H

#include "owner.h"
#include "tellers.h"

enum { NAMES = 60, MOST = 700, OPERATIONS = 6 }; /* keys; bytes of a value; of a transaction */

struct text {
	const void *at;
	size_t size;
};

typedef int visit_fn(void *arg, struct text key, struct text value);

/* The functions of a container, as hash.h describes them. */
struct container {
	uint64_t entries; /* the type of an object that each key has one of */
	int (*open)(perseas_t *p, perseas_heap_t *heap);
	int (*insert)(perseas_tx_t *tx, struct text key, struct text value);
	int (*put)(perseas_tx_t *tx, struct text key, struct text value);
	int (*get)(perseas_tx_t *tx, struct text key, struct text *value);
	int (*remove)(perseas_tx_t *tx, struct text key);
	int (*walk)(perseas_tx_t *tx, visit_fn *visit, void *arg);
	int (*count)(perseas_tx_t *tx, uint64_t *count);
	/* Returns true if the walk's order is right. May be NULL. */
	bool (*follows)(struct text before, struct text key);
};

static const struct container *const container; /* of the test */

/* --- calls that fail --- */

static unsigned calls, refused_call; /* which is refused; 0: none */

static inline bool refuse_call(void)
{
	return ++calls == refused_call;
}

#define perseas_alloc(...) (refuse_call() ? PERSEAS_ENOMEM : perseas_alloc(__VA_ARGS__))
#define perseas_reserve(...) (refuse_call() ? PERSEAS_ELIMIT : perseas_reserve(__VA_ARGS__))
#define perseas_set_range(...) (refuse_call() ? PERSEAS_ETOOBIG : perseas_set_range(__VA_ARGS__))
#define perseas_free(...) (refuse_call() ? PERSEAS_ENOMEM : perseas_free(__VA_ARGS__))
#define perseas_lock(...) (refuse_call() ? PERSEAS_ECONFLICT : perseas_lock(__VA_ARGS__))
#define perseas_zalloc(...) (refuse_call() ? PERSEAS_EFENCED : perseas_zalloc(__VA_ARGS__))
#define perseas_root_set(...) (refuse_call() ? PERSEAS_EFENCED : perseas_root_set(__VA_ARGS__))

/* --- the oracle --- */

struct known {
	bool is;
	size_t size;
	uint8_t bytes[MOST];
};

struct oracle {
	uint64_t random;
	struct known known[NAMES];
	struct known before[NAMES];
};

static inline uint64_t draw(struct oracle *oracle, uint64_t below)
{
	return unit_draw(&oracle->random) % below;
}

/* The key of a number: from none to many bytes, some of them 0, and one the beginning of others. */
static inline struct text key_number(unsigned number)
{
	static _Thread_local uint8_t bytes[NAMES];

	memset(bytes, 0, sizeof(bytes));
	bytes[number ? number - 1 : 0] = (uint8_t)(number % 3);
	return (struct text){ bytes, number };
}

static inline struct text value_of_size(struct oracle *oracle, uint8_t *bytes)
{
	const size_t size = draw(oracle, 3) ? draw(oracle, 4) * 8 : draw(oracle, MOST);

	memset(bytes, (int)draw(oracle, 256), size);
	return (struct text){ bytes, size };
}

static inline void learn(struct known *known, struct text value)
{
	known->is = true;
	known->size = value.size;
	memcpy(known->bytes, value.at, value.size);
}

static inline void agree(const struct known *known, int rc, struct text found)
{
	assert_int_equal(rc, known->is ? 0 : 1);
	if (!known->is)
		return;
	assert_int_equal(found.size, known->size);
	assert_int_equal((uintptr_t)found.at % 8, 0);
	assert_memory_equal(found.at, known->bytes, known->size);
}

struct seen {
	const struct oracle *oracle;
	struct text last;
	unsigned count;
};

static inline int see(void *arg, struct text key, struct text value)
{
	struct seen *seen = arg;

	agree(&seen->oracle->known[key.size], 0, value);
	assert_memory_equal(key.at, key_number((unsigned)key.size).at, key.size);
	assert_true(!seen->count || !container->follows || container->follows(seen->last, key));
	seen->last = key;
	seen->count++;
	return 0;
}

static inline unsigned count_known(const struct oracle *oracle)
{
	unsigned known = 0;

	for (unsigned i = 0; i < NAMES; i++)
		known += oracle->known[i].is;
	return known;
}

/* Walks over all keys, including those of the open transaction. */
static inline int look_at_all(struct oracle *oracle, perseas_tx_t *tx)
{
	struct seen seen = { .oracle = oracle };
	uint64_t count;
	int rc = container->walk(tx, see, &seen);

	if (rc)
		return rc;
	assert_int_equal(seen.count, count_known(oracle));
	rc = container->count(tx, &count);
	if (!rc)
		assert_int_equal(count, seen.count);
	return rc;
}

/* Makes one change or look-up. Returns 0, or the error; then the oracle is unchanged. */
static inline int operate(struct oracle *oracle, perseas_tx_t *tx)
{
	const unsigned number = (unsigned)draw(oracle, NAMES), what = (unsigned)draw(oracle, 9);
	struct known *known = &oracle->known[number];
	struct text found = { NULL, 0 };
	uint8_t bytes[MOST];
	const struct text value = value_of_size(oracle, bytes);
	int rc;

	if (what < 2) {
		rc = container->insert(tx, key_number(number), value);
		if (rc >= 0)
			assert_int_equal(rc, known->is);
		if (!rc)
			learn(known, value);
	} else if (what < 4) {
		rc = container->put(tx, key_number(number), value);
		assert_true(rc <= 0);
		if (!rc)
			learn(known, value);
	} else if (what < 7) {
		rc = container->remove(tx, key_number(number));
		if (rc >= 0)
			assert_int_equal(rc, !known->is);
		known->is &= rc < 0;
	} else if (what < 8) {
		rc = container->get(tx, key_number(number), &found);
		if (rc >= 0)
			agree(known, rc, found);
	} else {
		rc = look_at_all(oracle, tx);
	}
	return rc < 0 ? rc : 0;
}

static inline int count_object(void *arg, const struct perseas_object *object)
{
	(void)object;
	++*(unsigned *)arg;
	return 0;
}

/* Checks that container and heap have exactly what the oracle has. */
static inline void compare_all(struct oracle *oracle, perseas_t *p, perseas_heap_t *heap)
{
	unsigned entries = 0;
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(p, 0, &tx), 0);
	assert_int_equal(look_at_all(oracle, tx), 0);
	for (unsigned i = 0; i < NAMES; i++) {
		struct text found = { NULL, 0 };
		const int rc = container->get(tx, key_number(i), &found);

		agree(&oracle->known[i], rc, found);
	}
	assert_int_equal(perseas_commit(tx, 0), 0);
	if (perseas_heap_check(heap) ||
	    perseas_heap_walk(heap, container->entries, count_object, &entries))
		fail_msg("%s", perseas_message(p));
	assert_int_equal(entries, count_known(oracle));
}

/* --- one owner, one thread --- */

static inline perseas_heap_t *open_container(struct owner *o, uint64_t most)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_heap_t *heap;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = 2 * 65536;
	options.most = most;
	if (perseas_heap_open(o->p, "h", &options, &heap) || container->open(o->p, heap))
		fail_msg("%s", perseas_message(o->p));
	return heap;
}

/* Checks writes, so that a forgotten range, or another transaction's, is reported. */
static inline int container_setup(void **state)
{
	struct owner *o = owner_new(1);

	o->options.flags = PERSEAS_CHECK_WRITES | PERSEAS_CHECK_OVERLAP;
	owner_begin(o);
	*state = o;
	return 0;
}

struct unit_fixture unit_fixture = { container_setup, owner_teardown };

static inline void take_back(struct oracle *oracle, perseas_tx_t *tx)
{
	assert_int_equal(perseas_abort(tx), 0);
	memcpy(oracle->known, oracle->before, sizeof(oracle->known));
}

/* Some operations, which are committed, aborted, or rolled back in part. */
static inline void transact(struct oracle *oracle, struct owner *o)
{
	static struct known then[NAMES];
	uint64_t savepoint = 0;
	perseas_tx_t *tx;

	memcpy(oracle->before, oracle->known, sizeof(oracle->before));
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	for (unsigned i = 0; i < OPERATIONS; i++) {
		if (!savepoint && draw(oracle, 10) == 0) {
			assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
			memcpy(then, oracle->known, sizeof(then));
		}
		assert_int_equal(operate(oracle, tx), 0);
	}
	if (savepoint && draw(oracle, 2)) {
		assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
		memcpy(oracle->known, then, sizeof(then));
	}
	if (draw(oracle, 5) == 0)
		take_back(oracle, tx);
	else if (perseas_commit(tx, 0))
		fail_msg("%s", perseas_message(o->p));
}

/* The next owner finds what earlier owners made. */
TEST(test_random_changes_are_those_of_an_oracle, struct owner *o)
{
	struct oracle *oracle = calloc(1, sizeof(*oracle));
	perseas_heap_t *heap = open_container(o, 0);

	oracle->random = 42;
	for (unsigned i = 0; i < 600; i++) {
		transact(oracle, o);
		if (i % 50 == 49)
			compare_all(oracle, o->p, heap);
		if (i % 150 == 149) {
			owner_reopen(o);
			heap = open_container(o, 0);
			compare_all(oracle, o->p, heap);
		}
	}
	free(oracle);
}

/* Every call of the library that an operation makes fails once; the transaction is taken back, and
 * nothing has changed. */
TEST(test_whatever_call_fails_nothing_changes, struct owner *o)
{
	struct oracle *oracle = calloc(1, sizeof(*oracle));
	perseas_heap_t *heap = open_container(o, 0);
	unsigned failed = 0;
	perseas_tx_t *tx;

	oracle->random = 7;
	for (unsigned i = 0; i < 400; i++) {
		const uint64_t random = oracle->random;
		int rc = -1;

		memcpy(oracle->before, oracle->known, sizeof(oracle->before));
		for (refused_call = 1; rc; refused_call++) {
			oracle->random = random;
			calls = 0;
			assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
			rc = operate(oracle, tx);
			if (rc)
				take_back(oracle, tx);
			failed += rc != 0;
		}
		refused_call = 0;
		assert_int_equal(perseas_commit(tx, 0), 0);
		if (i % 20 == 0)
			compare_all(oracle, o->p, heap);
	}
	compare_all(oracle, o->p, heap);
	assert_true(failed > 400);
	free(oracle);
}

/* Whichever call of an opening fails, even because another owner has the store, nothing stays
 * open. */
TEST(test_an_opening_that_fails_is_taken_back, struct owner *o)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_heap_t *heap;

	options.flags = PERSEAS_HEAP_CREATE;
	assert_int_equal(perseas_heap_open(o->p, "h", &options, &heap), 0);
	for (refused_call = 1; refused_call <= 2; refused_call++) {
		calls = 0;
		assert_int_equal(container->open(o->p, heap), PERSEAS_EFENCED);
		assert_int_equal(owner_stat(o).open, 0);
	}
	refused_call = 0;
	assert_int_equal(container->open(o->p, heap), 0);
}

static inline int put_one(struct owner *o, unsigned number, int (*change)(perseas_tx_t *, unsigned))
{
	perseas_tx_t *tx;
	int rc;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	rc = change(tx, number);
	if (rc)
		perseas_abort(tx);
	else
		assert_int_equal(perseas_commit(tx, 0), 0);
	return rc;
}

static inline int put_large(perseas_tx_t *tx, unsigned number)
{
	static const uint8_t bytes[4000];

	return container->put(tx, (struct text){ &number, sizeof(number) },
	                      (struct text){ bytes, sizeof(bytes) });
}

static inline int remove_number(perseas_tx_t *tx, unsigned number)
{
	return container->remove(tx, (struct text){ &number, sizeof(number) });
}

/* An entry that does not fit is refused, and a removal makes room for it. */
TEST(test_a_heap_that_is_full_refuses_and_goes_on, struct owner *o)
{
	perseas_heap_t *heap = open_container(o, 4 * 65536);
	unsigned count = 0;

	while (put_one(o, count, put_large) == 0)
		count++;
	assert_in_range(count, 30, 64);
	assert_int_equal(put_one(o, count, put_large), PERSEAS_ELIMIT);
	assert_int_equal(perseas_heap_check(heap), 0);
	assert_int_equal(put_one(o, count, remove_number), 1);
	assert_int_equal(put_one(o, 3, remove_number), 0);
	assert_int_equal(put_one(o, count, put_large), 0);
	assert_int_equal(perseas_heap_check(heap), 0);
}

/* --- threads --- */

enum { THREADS = 4, ROUNDS = 150 };

struct worker {
	pthread_t thread;
	perseas_t *p;
	unsigned number, conflicts;
	long rounds, sum;
	int rc;
};

static inline struct text long_text(const long *number)
{
	return (struct text){ number, sizeof(*number) };
}

static inline int change_long(perseas_tx_t *tx, const char *name, long by, long *sum)
{
	const struct text key = { name, strlen(name) };
	struct text value = { NULL, 0 };
	int rc = container->get(tx, key, &value);

	*sum = by;
	if (rc < 0)
		return rc;
	if (!rc)
		*sum += *(const long *)value.at;
	return by ? container->put(tx, key, long_text(sum)) : 0;
}

/* Two numbers that all threads count up, which are always the same, and a key of its own. */
static inline int count_both(perseas_tx_t *tx, struct worker *worker)
{
	const long mine = worker->rounds * THREADS + worker->number + 1000;
	long left, right = 0;
	int rc = change_long(tx, "left", 1, &left);

	if (!rc)
		rc = change_long(tx, "right", 1, &right);
	if (!rc)
		rc = container->insert(tx, long_text(&mine), long_text(&mine));
	return rc ? rc : left == right ? 0 : PERSEAS_EHEAP;
}

static inline int look_at_both(perseas_tx_t *tx, struct worker *worker)
{
	long left, right = 0;
	int rc = change_long(tx, "right", 0, &right);

	(void)worker;
	if (!rc)
		rc = change_long(tx, "left", 0, &left);
	return rc ? rc : left == right ? 0 : PERSEAS_EHEAP;
}

static inline int work_once(struct worker *worker, int (*work)(perseas_tx_t *, struct worker *))
{
	perseas_tx_t *tx;
	int rc = perseas_begin(worker->p, 0, &tx);

	while (!rc && (rc = work(tx, worker)) == PERSEAS_ECONFLICT) {
		worker->conflicts++;
		rc = perseas_retry(tx);
	}
	return rc ? rc : perseas_commit(tx, 0);
}

static inline void *count_up(void *arg)
{
	struct worker *worker = arg;

	for (; worker->rounds < ROUNDS && !worker->rc; worker->rounds++) {
		worker->rc = work_once(worker, count_both);
		if (!worker->rc && worker->rounds % 3 == 0)
			worker->rc = work_once(worker, look_at_both);
	}
	return NULL;
}

static inline int add_long(void *arg, struct text key, struct text value)
{
	long number;

	memcpy(&number, value.at, sizeof(number));
	if (key.size == sizeof(long)) {
		assert_memory_equal(key.at, value.at, sizeof(number));
		*(long *)arg += 1;
	} else {
		assert_int_equal(number, THREADS * ROUNDS);
	}
	return 0;
}

static inline perseas_t *open_threads(const char *mirrors)
{
	struct perseas_options options = patient_options();
	struct perseas_heap_options how = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_heap_t *heap;
	perseas_t *p;

	options.flags = PERSEAS_CREATE | PERSEAS_CHECK_OVERLAP;
	how.flags = PERSEAS_HEAP_CREATE;
	how.first = 65536; /* it grows meanwhile */
	if (perseas_open("threads", mirrors, &options, &p) ||
	    perseas_heap_open(p, "h", &how, &heap) || container->open(p, heap) ||
	    perseas_heap_check(heap))
		fail_msg("%s", perseas_message(NULL));
	return p;
}

static inline void threads_work(const char *mirrors)
{
	static struct worker workers[THREADS];
	perseas_t *p = open_threads(mirrors);
	perseas_tx_t *tx;
	long keys = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .p = p, .number = i };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, count_up, &workers[i]),
		                 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].rc, 0);
	}
	perseas_close(p);
	p = open_threads(mirrors);
	assert_int_equal(perseas_begin(p, 0, &tx), 0);
	assert_int_equal(container->walk(tx, add_long, &keys), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(keys, THREADS * ROUNDS);
	perseas_close(p);
}

TEST_WITH(test_threads_change_it_side_by_side_over_tcp, place_setup, place_teardown,
          struct place *place)
{
	threads_work(place->tcp);
}

TEST_WITH(test_threads_change_it_side_by_side_over_shared_memory, place_setup, place_teardown,
          struct place *place)
{
	threads_work(place->local);
}

#endif
