/*
 * test_alloc.c - this process runs out of memory at every place in turn: the library says so, and
 * neither crashes nor leaves the store in a state from which nobody can go on.
 *
 * The allocator is replaced here, which the sanitizers do themselves: under them nothing fails.
 */
#include "owner.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if !defined(__SANITIZE_ADDRESS__) && defined(__GLIBC__)
/* Calls of the library that still succeed; negative: all do. */
static long allowed = -1;
static bool refused;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* Memory that the mirrors ask for, in the same process, is not the library's. */
static bool fails(void)
{
	if (allowed < 0 || direct_inside)
		return false;
	if (allowed > 0) {
		allowed--;
		return false;
	}
	refused = true;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	return fails() ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __libc_memalign(alignment, size);
}

/* Lets so many calls of the allocator succeed from now on. */
static void allow(long n)
{
	refused = false;
	allowed = n;
}

/* Lets all succeed again. Returns true if one was refused. Of the call meanwhile, which returned
 * `rc`, an error must be one that lack of memory may come out as. */
static bool allow_all(long n, int rc, const char *message)
{
	const bool was_refused = refused;

	allowed = -1;
	/* A mirror whose reply could not be taken in counts as one that was not reached. */
	if (rc && rc != PERSEAS_ENOMEM && rc != PERSEAS_EUNREACHABLE && rc != PERSEAS_EQUORUM &&
	    rc != PERSEAS_EINDOUBT)
		fail_msg("allocation %ld: %s: %s", n, perseas_error_name(rc), message);
	if (!was_refused)
		print_message("%ld allocations\n", n);
	return was_refused;
}

enum { LARGE = 6000, CHUNK = 65536 };

static int setup(void **state)
{
	*state = owner_new(3);
	return 0;
}

static int teardown(void **state)
{
	allowed = -1;
	owner_free(*state);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* A segment goes, another comes. What was refused has not happened, and can be asked for again. */
static int change_segments(struct owner *o, uint8_t *large)
{
	perseas_tx_t *tx;
	void *addr;
	int rc = perseas_unmap(o->p, large);

	if (rc) {
		/* The segment is still mapped, and can be declared. */
		allowed = -1;
		large[LARGE - 1]++;
		tx = owner_tx(o);
		assert_int_equal(perseas_set_range(tx, large, LARGE), 0);
		assert_int_equal(perseas_abort(tx), 0);
		return rc;
	}
	if (perseas_map(o->p, "later", 100, &addr))
		return PERSEAS_ENOMEM;
	rc = perseas_publish(o->p);
	if (rc) {
		allowed = -1;
		/* An unpublished segment may be changed without a declaration. */
		memset(addr, 1, 100);
		tx = owner_tx(o);
		assert_int_equal(perseas_commit(tx, 0), 0);
		assert_int_equal(perseas_publish(o->p), 0);
		tx = owner_tx(o);
		assert_int_equal(perseas_set_range(tx, addr, 100), 0);
		assert_int_equal(perseas_commit(tx, 0), 0);
	}
	return rc;
}

/* Commits again, with memory, a transaction that could not be sent without it. */
static int commit_twice(perseas_tx_t *tx)
{
	int rc = perseas_commit(tx, 0);

	if (rc == PERSEAS_ENOMEM) {
		allowed = -1;
		assert_int_equal(perseas_commit(tx, 0), 0);
	}
	return rc;
}

/* Some of it is changed once more, and taken back. */
static int try_out(struct owner *o, perseas_tx_t *tx)
{
	uint64_t savepoint;
	int rc = perseas_lock(tx, 1, PERSEAS_LOCK_EXCLUSIVE);

	if (!rc)
		rc = perseas_savepoint(tx, &savepoint);
	for (unsigned i = 0; !rc && i < 100; i++) {
		rc = perseas_set_range(tx, o->bytes + i * 10 + 3, 5);
		if (!rc)
			o->bytes[i * 10 + 3] ^= 0x55;
	}
	return rc ? rc : perseas_rollback_to(tx, savepoint);
}

/* A store's whole life, up to the first error: all that allocates. */
static int live(struct owner *o, uint8_t value)
{
	perseas_tx_t *tx, *other;
	void *addr;
	int rc = owner_open(o, PERSEAS_CREATE | PERSEAS_TAKEOVER | PERSEAS_CHECK_WRITES);

	if (rc)
		return rc;
	rc = perseas_map(o->p, "accounts", SIZE, &addr);
	if (rc)
		return rc;
	o->bytes = addr;
	rc = perseas_map(o->p, "large", LARGE, &addr);
	if (!rc)
		rc = perseas_publish(o->p);
	if (!rc)
		rc = perseas_begin(o->p, 0, &tx);
	for (unsigned i = 0; !rc && i < 200; i++) {
		rc = perseas_set_range(tx, o->bytes + i * 10, 5);
		if (!rc)
			memset(o->bytes + i * 10, value, 5);
	}
	if (!rc)
		rc = try_out(o, tx);
	if (!rc)
		rc = perseas_begin(o->p, 0, &other);
	if (!rc)
		rc = perseas_set_range(other, addr, LARGE);
	if (!rc)
		rc = commit_twice(tx);
	if (!rc)
		rc = perseas_abort(other);
	return rc ? rc : change_segments(o, addr);
}

/* The next owner finds what was there, or what was being committed. */
static void check_next(struct owner *o, long n, uint8_t before, uint8_t value)
{
	struct perseas_segment_info info;

	owner_die(o);
	if (owner_open(o, PERSEAS_CREATE | PERSEAS_TAKEOVER))
		fail_msg("after allocation %ld: %s", n, o->error.text);
	if (perseas_segment(o->p, "accounts", &info))
		return;
	owner_map(o);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(o->bytes[i * 10], o->bytes[0]);
	assert_true(o->bytes[0] == before || o->bytes[0] == value);
}

/* Allocation n of the store's life fails. False: there are no more. */
static bool fail_one(struct owner *o, long n)
{
	uint8_t before = o->bytes ? o->bytes[0] : 0, value = (uint8_t)(n + 1);
	bool was_refused;
	int rc;

	owner_die(o);
	allow(n);
	rc = live(o, value);
	was_refused = allow_all(n, rc, perseas_message(o->p));
	if (rc && o->p && perseas_message(o->p)[0] == 0)
		fail_msg("allocation %ld: no message", n);
	check_next(o, n, before, value);
	owner_die(o);
	assert_int_equal(live(o, before), 0);
	return was_refused;
}

/* Each allocation fails in turn, for an owner of a store that is there. */
TEST(test_each_allocation_fails, struct owner *o)
{
	long n = 0;

	assert_int_equal(live(o, 0), 0);
	while (fail_one(o, n))
		n++;
}

/* Repeats the test over fabrics that copy at once. */
TEST(test_each_allocation_fails_on_a_direct_fabric, struct owner *o)
{
	o->d->staged = false;
	test_each_allocation_fails(o);
}

/* Repeats the test for a program that makes the store. */
TEST(test_each_allocation_of_making_fails, struct owner *o)
{
	bool more = true;

	for (long n = 0; more; n++) {
		owner_free(o);
		*unit_state = o = owner_new(3);
		more = fail_one(o, n);
	}
}

/* Repeats the opening after the first `away` mirrors missed `missed` transactions each time. */
static void fail_mending(struct owner *o, unsigned missed, unsigned away)
{
	bool through = false;

	o->options.acks = 3 - away;
	owner_begin(o);
	for (long n = 0; !through; n++) {
		int rc;

		for (unsigned i = 0; i < away; i++)
			direct_crash(o->d, i);
		for (unsigned i = 0; i < missed; i++)
			assert_int_equal(owner_put(o, i * 30, 20, (uint8_t)(n + i)), 0);
		owner_die(o);
		for (unsigned i = 0; i < away; i++)
			direct_start(o->d, i);
		allow(n);
		rc = owner_open(o, 0);
		through = !allow_all(n, rc, o->error.text);
		owner_reopen(o);
		owner_keep_all(o);
		assert_int_equal(owner_stat(o).live, 3);
		assert_int_equal(o->bytes[(missed - 1) * 30], (uint8_t)(n + missed - 1));
	}
}

TEST(test_each_allocation_of_sending_fails, struct owner *o)
{
	fail_mending(o, 20, 1);
}

TEST(test_each_allocation_of_mending_fails, struct owner *o)
{
	fail_mending(o, 90, 1);
}

/* Two of three mirrors missed more than the log holds, and W = 1: the open copies one whole. */
TEST(test_each_allocation_of_copying_fails, struct owner *o)
{
	o->options.log_size = 4096;
	fail_mending(o, 90, 2);
}

/* A heap of two pairs of segments, and nothing in the second one. */
static perseas_heap_t *shrinkable(struct owner *o)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_heap_t *heap;
	perseas_tx_t *tx;
	void *first, *second;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = CHUNK;
	assert_int_equal(perseas_heap_open(o->p, "h", &options, &heap), 0);
	tx = owner_tx(o);
	assert_int_equal(perseas_reserve(tx, heap, CHUNK, 1, &first), 0);
	assert_int_equal(perseas_reserve(tx, heap, CHUNK, 1, &second), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	tx = owner_tx(o);
	assert_int_equal(perseas_free(tx, heap, first), 0);
	assert_int_equal(perseas_free(tx, heap, second), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	return heap;
}

static unsigned count_extents(perseas_heap_t *heap)
{
	struct perseas_heap_stat stat;

	assert_int_equal(perseas_heap_check(heap), 0);
	assert_int_equal(perseas_heap_stat(heap, &stat), 0);
	return stat.extents;
}

/* Each allocation of giving segments back fails in turn: they are there as before, or gone. */
TEST(test_each_allocation_of_a_trim_fails, struct owner *o)
{
	bool through = false;

	owner_begin(o);
	for (long n = 0; !through; n++) {
		perseas_heap_t *heap = shrinkable(o);
		uint64_t given;
		int rc;

		allow(n);
		rc = perseas_heap_trim(heap, 0, &given);
		through = !allow_all(n, rc, perseas_message(o->p));
		assert_true(rc == PERSEAS_ENOMEM ? !given : given == CHUNK);
		assert_int_equal(count_extents(heap), given ? 1 : 2);
		owner_reopen(o);
		assert_int_equal(perseas_heap_open(o->p, "h", NULL, &heap), 0);
		assert_true(count_extents(heap) == 1 || rc);
	}
}

/* --- commits that are held back, and locks --- */

static void begin_gathering(struct owner *o, bool staged)
{
	o->d->staged = staged;
	o->options.gather_us = 1000000;
	owner_begin(o);
	/* A handle that is open can commit. */
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
}

/* Commits all of it with PERSEAS_NOWAIT while so many allocations succeed: 0, ENOMEM. */
static int commit_with(struct owner *o, uint8_t value, long n)
{
	perseas_tx_t *tx = owner_tx(o);
	int rc;

	for (unsigned i = 0; i < SIZE; i += 20) {
		assert_int_equal(perseas_set_range(tx, o->bytes + i, 1), 0);
		o->bytes[i] = value;
	}
	allow(n);
	rc = perseas_commit(tx, PERSEAS_NOWAIT);
	allowed = -1;
	if (rc)
		assert_int_equal(perseas_abort(tx), 0);
	return rc;
}

/* Where there is no memory to hold commits back with they are sent, and held when there is. */
TEST(test_without_memory_commits_are_not_held_back, struct owner *o)
{
	long n = 0;

	begin_gathering(o, true);
	do {
		assert_int_equal(commit_with(o, (uint8_t)(n + 2), n), 0);
		assert_true(o->p->commit.has_gathered == !refused);
	} while (refused && n++ < 10);
	/* The chain's room stays, once it is there. */
	assert_int_equal(n, 2);
	assert_int_equal(perseas_flush(o->p), 0);
	owner_die(o);
	owner_reopen(o);
	assert_int_equal(o->bytes[2980], 4);
}

/* Commits that are held back are sent without memory, since nobody could be told of a failure. */
TEST(test_what_is_held_is_sent_without_memory, struct owner *o)
{
	int rc;

	for (int staged = 0; staged < 2; staged++) {
		owner_free(o);
		*unit_state = o = owner_new(3);
		begin_gathering(o, staged);
		assert_int_equal(commit_with(o, 9, -1), 0);
		assert_true(o->p->commit.has_gathered);
		allowed = 0;
		rc = perseas_flush(o->p);
		allowed = -1;
		assert_int_equal(rc, 0);
		assert_true(owner_stat(o).durable_seq == owner_stat(o).seq);
	}
}

/* A SERIAL transaction that is refused a lock is refused it, or told that there is no memory for
 * that; either way it can be tried again. */
TEST(test_a_refusal_without_memory, struct owner *o)
{
	perseas_tx_t *holder, *tx;
	int rc = PERSEAS_ENOMEM;

	owner_begin(o);
	holder = owner_tx(o);
	assert_int_equal(perseas_lock(holder, 1, PERSEAS_LOCK_SHARED), 0);
	o->d->thread = 2;
	for (long n = 0; rc == PERSEAS_ENOMEM; n++) {
		assert_int_equal(perseas_begin(o->p, PERSEAS_SERIAL, &tx), 0);
		allowed = n;
		rc = perseas_lock(tx, 1, PERSEAS_LOCK_EXCLUSIVE);
		allowed = -1;
		assert_int_equal(rc, n < 2 ? PERSEAS_ENOMEM : PERSEAS_ECONFLICT);
		if (n == 2)
			assert_int_equal(perseas_abort(holder), 0);
		assert_int_equal(perseas_retry(tx), 0);
		assert_int_equal(perseas_abort(tx), 0);
	}
}
#else
TEST(no_allocation_can_be_refused_here)
{
	skip();
}
#endif
