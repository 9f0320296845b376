/*
 * test_heap_threads.c - many threads allocate and free in one heap, over a daemon in a process of
 * its own, and give segments back. Each keeps its objects to itself; what they share is the heap's
 * metadata.
 */
#include "tellers.h"

enum { THREADS = 4, ROUNDS = 250, KEPT = 64, AREA = 1 };

static const size_t sizes[] = { 16, 40, 200, 900, 5000 };

struct user {
	struct teller teller;
	perseas_heap_t *heap;
	struct kept {
		uint8_t *at;
		size_t size;
		uint8_t value;
	} kept[KEPT];
};

struct unit_fixture unit_fixture = { place_setup, place_teardown };

static unsigned draw(struct user *user, unsigned below)
{
	return (unsigned)(unit_draw(&user->teller.random) % below);
}

static bool whole(const struct user *user, unsigned which)
{
	for (size_t i = 0; i < user->kept[which].size; i++)
		if (user->kept[which].at[i] != user->kept[which].value)
			return false;
	return true;
}

/* The object at this place comes, or goes. */
static int change(struct user *user, perseas_tx_t *tx, unsigned which)
{
	const unsigned size = draw(user, 5);
	void *at;
	int rc;

	if (user->kept[which].at) {
		rc = whole(user, which) ? perseas_free(tx, user->heap, user->kept[which].at) : -1;
		user->kept[which].at = NULL;
		return rc;
	}
	rc = perseas_alloc(tx, user->heap, sizes[size], size % 2, &at);
	if (rc)
		return rc;
	user->kept[which].at = at;
	user->kept[which].size = sizes[size];
	user->kept[which].value = (uint8_t)draw(user, 256);
	memset(at, user->kept[which].value, sizes[size]);
	return 0;
}

static int transact(struct user *user)
{
	struct kept before[KEPT];
	perseas_tx_t *tx;
	int rc = perseas_begin(user->teller.p, 0, &tx);

	memcpy(before, user->kept, sizeof(before));
	for (unsigned i = 0; i < 6 && !rc; i++)
		rc = change(user, tx, draw(user, KEPT));
	if (rc)
		return rc;
	if (draw(user, 4)) {
		user->teller.commits++;
		return perseas_commit(tx, 0);
	}
	memcpy(user->kept, before, sizeof(before));
	return perseas_abort(tx);
}

static void *work(void *arg)
{
	struct user *user = arg;

	for (unsigned i = 0; i < ROUNDS && !user->teller.rc; i++)
		user->teller.rc = transact(user);
	return NULL;
}

/* All of the threads' objects are there, and no others. */
static void check(struct user *users, perseas_t *p, perseas_heap_t *heap)
{
	struct perseas_heap_stat stat;
	struct perseas_object object;
	unsigned objects = 0;

	if (perseas_heap_check(heap))
		fail_msg("%s", perseas_message(p));
	assert_int_equal(perseas_heap_stat(heap, &stat), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		for (unsigned which = 0; which < KEPT; which++) {
			if (!users[i].kept[which].at)
				continue;
			assert_int_equal(perseas_object(heap, users[i].kept[which].at, &object), 0);
			assert_true(whole(&users[i], which));
			objects++;
		}
	}
	assert_int_equal(stat.objects, objects);
}

static void many_threads(const char *mirrors)
{
	static struct user users[THREADS];
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_t *p = open_store(mirrors, 1 << 20, 4 << 20, NULL);
	perseas_heap_t *heap;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = 65536;
	assert_int_equal(perseas_heap_open(p, "shared", &options, &heap), 0);
	memset(users, 0, sizeof(users));
	for (unsigned i = 0; i < THREADS; i++) {
		users[i].heap = heap;
		teller_begin(&users[i].teller, p, heap, i, AREA, work);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		teller_join(&users[i].teller);
		teller_free(&users[i].teller);
	}
	check(users, p, heap);
	perseas_close(p);
	p = open_store(mirrors, 1 << 20, 4 << 20, NULL);
	assert_int_equal(perseas_heap_open(p, "shared", NULL, &heap), 0);
	check(users, p, heap);
	perseas_close(p);
}

/* The heap grows meanwhile, several times. */
TEST(test_threads_share_a_heap_over_tcp, struct place *place)
{
	many_threads(place->tcp);
}

TEST(test_threads_share_a_heap_over_shared_memory, struct place *place)
{
	many_threads(place->local);
}

struct walker {
	perseas_heap_t *heap;
	atomic_bool done;
	int rc;
};

static int meet(void *arg, const struct perseas_object *object)
{
	(void)arg;
	return object->addr ? 0 : PERSEAS_EHEAP;
}

static void *walk(void *arg)
{
	struct walker *walker = arg;
	struct perseas_heap_stat stat;

	while (!walker->rc && !walker->done) {
		walker->rc = perseas_heap_walk(walker->heap, PERSEAS_ANY_TYPE, meet, NULL);
		if (!walker->rc)
			walker->rc = perseas_heap_stat(walker->heap, &stat);
	}
	return NULL;
}

TEST(test_a_walk_while_the_heap_grows, struct place *place)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_t *p = open_store(place->local, 1 << 20, 4 << 20, NULL);
	perseas_tx_t *tx;
	void *at;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = 65536;
	for (unsigned round = 0; round < 6; round++) {
		struct walker walker = { NULL, false, 0 };
		pthread_t thread;
		char name[16];

		snprintf(name, sizeof(name), "walked%u", round);
		assert_int_equal(perseas_heap_open(p, name, &options, &walker.heap), 0);
		assert_int_equal(pthread_create(&thread, NULL, walk, &walker), 0);
		assert_int_equal(perseas_begin(p, 0, &tx), 0);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(perseas_reserve(tx, walker.heap, 65536u << i, 1, &at), 0);
		assert_int_equal(perseas_abort(tx), 0);
		walker.done = true;
		pthread_join(thread, NULL);
		assert_int_equal(walker.rc, 0);
	}
	perseas_close(p);
}

enum { LARGE = 3, TURNS = 40 };

struct turner {
	pthread_t thread;
	perseas_t *p;
	perseas_heap_t *heap;
	uint8_t value;
	int rc;
};

/* Objects of whole chunks come; then they are as they were, and go. */
static int come_and_go(struct turner *t)
{
	void *at[LARGE];
	perseas_tx_t *tx;
	int rc = perseas_begin(t->p, 0, &tx);

	for (unsigned i = 0; i < LARGE && !rc; i++) {
		rc = perseas_reserve(tx, t->heap, 65536, t->value, &at[i]);
		if (!rc)
			rc = perseas_set_range(tx, at[i], 64);
		if (!rc)
			memset(at[i], t->value, 64);
	}
	if (!rc)
		rc = perseas_commit(tx, 0);
	if (!rc)
		rc = perseas_begin(t->p, 0, &tx);
	for (unsigned i = 0; i < LARGE && !rc; i++)
		rc = ((uint8_t *)at[i])[63] == t->value ? perseas_free(tx, t->heap, at[i]) : -1;
	return rc ? rc : perseas_commit(tx, 0);
}

static void *turn(void *arg)
{
	struct turner *t = arg;

	for (unsigned i = 0; i < TURNS && !t->rc; i++) {
		t->rc = come_and_go(t);
		if (!t->rc)
			t->rc = perseas_heap_trim(t->heap, 0, NULL);
	}
	return NULL;
}

/* Threads make the heap grow and shrink at the same time; one may look at all of it. */
static void grow_and_shrink(const char *mirrors, bool looked_at)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_t *p = open_store(mirrors, 1 << 20, 4 << 20, NULL);
	struct turner turners[THREADS];
	struct walker walker = { NULL, false, 0 };
	struct perseas_heap_stat stat;
	pthread_t looks;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = 65536;
	assert_int_equal(perseas_heap_open(p, "turns", &options, &walker.heap), 0);
	if (looked_at)
		assert_int_equal(pthread_create(&looks, NULL, walk, &walker), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		turners[i] = (struct turner){ .p = p, .heap = walker.heap, .value = 1 + i };
		assert_int_equal(pthread_create(&turners[i].thread, NULL, turn, &turners[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(turners[i].thread, NULL);
		assert_int_equal(turners[i].rc, 0);
	}
	walker.done = true;
	if (looked_at)
		pthread_join(looks, NULL);
	assert_int_equal(walker.rc, 0);
	assert_int_equal(perseas_heap_trim(walker.heap, 0, NULL), 0);
	assert_int_equal(perseas_heap_check(walker.heap), 0);
	assert_int_equal(perseas_heap_stat(walker.heap, &stat), 0);
	assert_true(stat.extents == 1 && stat.objects == 0);
	perseas_close(p);
}

TEST(test_threads_shrink_a_heap_over_tcp, struct place *place)
{
	grow_and_shrink(place->tcp, false);
}

TEST(test_threads_shrink_a_heap_over_shared_memory, struct place *place)
{
	grow_and_shrink(place->local, false);
	grow_and_shrink(place->local, true);
}
