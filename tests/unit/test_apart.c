/*
 * test_apart.c - SERIAL transactions and locks: who waits, who is refused, and when what was held
 * is let go. One thread plays several: what the others do while one waits happens inside its wait.
 * test_apart_threads.c does it with real ones.
 */
#include "apart_rig.h"

struct unit_fixture unit_fixture = { setup, owner_teardown };

/* Holds back the answers of all mirrors; if `what` is 0, lets them go. */
static void hold_all(struct owner *o, enum direct_hold what)
{
	o->d->mirrors[0].hold = what;
	if (!what)
		direct_release(o->d, 0, UINT32_MAX);
	owner_hold(o, what);
}

/* --- turns --- */

/* The second one begins when the first has ended, by commit or by abort, and not before. */
TEST(test_serial_transactions_take_turns, struct owner *o)
{
	for (int aborts = 0; aborts < 2; aborts++) {
		perseas_tx_t *tx;

		held = begin(o, PERSEAS_SERIAL, 1);
		put(o, held, 7, 70);
		meanwhile = aborts ? abort_held : commit_held;
		waits = 0;
		tx = begin(o, PERSEAS_SERIAL, 2);
		assert_int_equal(waits, 1);
		put(o, tx, 7, o->bytes[7] + 1);
		assert_int_equal(perseas_commit(tx, 0), 0);
		assert_int_equal(o->bytes[7], aborts ? 72 : 71);
		o->bytes[7] = 71;
	}
	/* No transaction has a turn or a lock any more. */
	assert_false(o->p->serialization.is_turn_taken);
	assert_null(o->p->serialization.first_waiter);
}

/* While the first waits for mirrors, the second has its turn: it passes on at the post. */
static perseas_tx_t *early;

static void begin_early(void *arg)
{
	struct owner *o = arg;

	if (!early && !o->p->commit.open_list)
		early = begin(o, PERSEAS_SERIAL, 2);
	for (unsigned i = 0; i < o->d->count; i++)
		direct_release(o->d, i, 10);
}

TEST(test_the_turn_passes_on_at_the_post, struct owner *o)
{
	perseas_tx_t *tx = begin(o, PERSEAS_SERIAL, 1);

	early = NULL;
	put(o, tx, 7, 70);
	hold_all(o, DIRECT_HOLD_COMPLETIONS);
	o->d->on_pause = begin_early;
	o->d->on_pause_arg = o;
	assert_int_equal(perseas_commit(tx, 0), 0);
	o->d->on_pause = NULL;
	assert_non_null(early);
	assert_int_equal(waits, 0);
	/* The reader saw a posted commit, and must not return before W mirrors have it. */
	assert_int_equal(early->read_seq, o->p->commit.seq);
	assert_int_equal(perseas_abort(early), 0);
}

/* Too few mirrors hold the posted commit: a transaction that only read it is told so, and succeeds
 * after they have it. */
static void reads_wait(struct owner *o, perseas_tx_t *(*reader)(struct owner *o))
{
	perseas_tx_t *tx = begin(o, 0, 1);

	put(o, tx, 7, 70);
	hold_all(o, DIRECT_HOLD_COMPLETIONS);
	/* Clears the mark, as if a thread that waits had posted the commit. */
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EINDOUBT);
	o->p->commit.in_doubt_seq = 0;
	tx = reader(o);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EINDOUBT);
	assert_says(o, "is held by");
	assert_int_equal(perseas_abort(tx), PERSEAS_EENDED);
	o->p->commit.in_doubt_seq = 0;
	tx = reader(o);
	hold_all(o, DIRECT_HOLD_NOTHING);
	assert_int_equal(perseas_commit(tx, 0), 0);
	/* A transaction that asked for nothing waits for nothing, as ever. */
	assert_int_equal(perseas_commit(begin(o, 0, 1), 0), 0);
}

static perseas_tx_t *read_serially(struct owner *o)
{
	return begin(o, PERSEAS_SERIAL, 2);
}

static perseas_tx_t *read_with_a_lock(struct owner *o)
{
	perseas_tx_t *tx = begin_with(o, 0, 2, 7, SHARED);

	return tx;
}

TEST(test_a_serial_reader_waits_for_what_it_read, struct owner *o)
{
	reads_wait(o, read_serially);
}

TEST(test_a_reader_with_locks_waits_for_what_it_read, struct owner *o)
{
	reads_wait(o, read_with_a_lock);
}

/* A thread must not wait for the turn or lock of a transaction that cannot go on. */
static void fall_in_doubt(struct owner *o)
{
	hold_all(o, DIRECT_HOLD_COMPLETIONS);
	assert_int_equal(owner_put(o, 100, 1, 1), PERSEAS_EINDOUBT);
}

static perseas_t *rival;

static void fall_behind(struct owner *o)
{
	rival = owner_rival(o);
	assert_int_equal(owner_put_fenced(o, 100, 1, 1), PERSEAS_EFENCED);
}

/* Checks that the sleeper is woken, and does not merely look by chance. */
static void wakes(struct owner *o, void (*why)(struct owner *o))
{
	o->d->watched = &o->p->serialization.recheck;
	o->d->broadcasts = 0;
	why(o);
	assert_true(o->d->broadcasts > 0);
}

static void doubt_wakes(struct owner *o)
{
	wakes(o, fall_in_doubt);
}

static void loss_wakes(struct owner *o)
{
	wakes(o, fall_behind);
}

static void waiters_leave(struct owner *o, void (*why)(struct owner *o), int code)
{
	perseas_tx_t *tx = NULL, *asks = begin(o, 0, 2);

	held = begin(o, PERSEAS_SERIAL, 1);
	assert_int_equal(perseas_lock(asks, 1, SHARED), 0); /* it is the older one */
	assert_int_equal(perseas_lock(held, 7, SHARED), 0);
	meanwhile = why;
	o->d->thread = 2;
	assert_int_equal(perseas_lock(asks, 7, EXCLUSIVE), code);
	assert_int_equal(waits, 1);
	/* The transaction is open and has what it had. */
	assert_int_equal(perseas_lock(asks, 1, EXCLUSIVE), 0);
	assert_int_equal(perseas_begin(o->p, PERSEAS_SERIAL, &tx), code);
	assert_null(tx);
	assert_null(o->p->serialization.first_waiter);
	assert_int_equal(perseas_retry(asks), code);
	assert_int_equal(perseas_abort(asks), PERSEAS_EENDED);
	assert_int_equal(perseas_abort(held), 0);
	assert_false(o->p->serialization.is_turn_taken);
}

TEST(test_waiters_leave_when_a_commit_is_in_doubt, struct owner *o)
{
	waiters_leave(o, doubt_wakes, PERSEAS_EBLOCKED);
}

TEST(test_waiters_leave_when_the_store_is_lost, struct owner *o)
{
	waiters_leave(o, loss_wakes, PERSEAS_EFENCED);
	perseas_close(rival);
}

TEST(test_who_waits_for_a_turn_leaves_in_doubt, struct owner *o)
{
	perseas_tx_t *tx = NULL;

	held = begin(o, PERSEAS_SERIAL, 1);
	meanwhile = doubt_wakes;
	o->d->thread = 2;
	assert_int_equal(perseas_begin(o->p, PERSEAS_SERIAL, &tx), PERSEAS_EBLOCKED);
	assert_null(tx);
	assert_null(o->p->serialization.first_waiter);
	assert_int_equal(perseas_abort(held), 0);
	assert_false(o->p->serialization.is_turn_taken);
}

/* A thread that would wait for itself is told so. */
TEST(test_a_turn_within_a_turn, struct owner *o)
{
	perseas_tx_t *tx = begin(o, PERSEAS_SERIAL, 1), *other;

	assert_int_equal(perseas_begin(o->p, PERSEAS_SERIAL, &other), PERSEAS_EINVAL);
	assert_says(o, "commit or abort it");
	assert_null(other);
	/* Ordinary ones may begin. */
	other = begin(o, 0, 1);
	assert_int_equal(perseas_abort(other), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	tx = begin(o, PERSEAS_SERIAL, 1);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(waits, 0);
	assert_int_equal(perseas_begin(o->p, 64, &tx), PERSEAS_EINVAL);
	assert_says(o, "unknown bits");
}

/* --- locks --- */

/* Readers share, a writer is alone; the older one waits for the younger, and not the other way. */
TEST(test_the_older_waits_and_the_younger_is_refused, struct owner *o)
{
	perseas_tx_t *old = begin_with(o, 0, 1, 1, EXCLUSIVE), *young;

	young = begin_with(o, 0, 2, 2, EXCLUSIVE);
	assert_int_equal(perseas_lock(young, 1, SHARED), PERSEAS_ECONFLICT);
	assert_says(o, "lock 1 is an older transaction's");
	assert_int_equal(waits, 0);
	/* The younger transaction keeps its locks, for which the older one waits. */
	held = young;
	put(o, held, 7, 70);
	meanwhile = commit_held;
	o->d->thread = 1;
	o->d->watched = &o->p->serialization.recheck;
	o->d->broadcasts = 0;
	assert_int_equal(perseas_lock(old, 2, SHARED), 0);
	assert_int_equal(waits, 1);
	assert_int_equal(o->d->broadcasts, 1);
	/* The transaction began after the commit, and read what it changed. */
	assert_int_equal(old->read_seq, o->p->commit.seq);
	young = begin_with(o, 0, 2, 2, SHARED);
	assert_int_equal(perseas_lock(young, 2, EXCLUSIVE), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_lock(young, 2, SHARED), 0);
	assert_int_equal(perseas_commit(old, 0), 0);
	assert_int_equal(perseas_lock(young, 2, EXCLUSIVE), 0);
	assert_int_equal(perseas_lock(young, 2, SHARED), 0);
	assert_int_equal(perseas_lock(young, 1, EXCLUSIVE), 0);
	old = begin(o, 0, 3);
	assert_int_equal(perseas_lock(old, 2, SHARED), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_abort(old), 0);
	assert_int_equal(perseas_abort(young), 0);
}

static perseas_tx_t *reader;

/* A young reader comes while an older writer waits for another one. */
static void read_meanwhile(struct owner *o)
{
	reader = begin(o, 0, 3);
	assert_int_equal(perseas_lock(reader, 1, SHARED), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_abort(reader), 0);
	abort_held(o);
}

TEST(test_readers_do_not_overtake_an_older_writer, struct owner *o)
{
	perseas_tx_t *writer = begin_with(o, 0, 1, 5, SHARED);

	held = begin_with(o, 0, 2, 1, SHARED);
	meanwhile = read_meanwhile;
	o->d->thread = 1;
	assert_int_equal(perseas_lock(writer, 1, EXCLUSIVE), 0);
	assert_int_equal(perseas_commit(writer, 0), 0);
}

/* A roll-back to a savepoint keeps locks. */
TEST(test_roll_back_keeps_locks, struct owner *o)
{
	perseas_tx_t *tx = begin(o, 0, 1), *other;
	uint64_t savepoint;

	assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
	assert_int_equal(perseas_lock(tx, 1, EXCLUSIVE), 0);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	other = begin(o, 0, 2);
	assert_int_equal(perseas_lock(other, 1, SHARED), PERSEAS_ECONFLICT);
	perseas_abort(other);
	perseas_abort(tx);
}

/* A retry takes back the changes, releases the locks, and waits for the lock that was refused. The
 * transaction keeps its age, so that in the end others wait for it. */
TEST(test_a_retry_keeps_its_age, struct owner *o)
{
	const uint8_t before = o->bytes[7];
	perseas_tx_t *tx, *late;
	uint64_t age;

	held = begin_with(o, 0, 1, 1, EXCLUSIVE);
	tx = begin_with(o, 0, 2, 2, EXCLUSIVE);
	age = tx->lock_age;
	put(o, tx, 7, 99);
	retry(tx, 1, EXCLUSIVE, commit_held);
	assert_int_equal(waits, 1);
	assert_int_equal(o->bytes[7], before);
	assert_int_equal(tx->range_count, 0);
	assert_int_equal(tx->lock_age, age);
	/* A transaction that began after the first try is younger, though it has its lock
	 * longer. */
	late = begin_with(o, 0, 3, 2, EXCLUSIVE);
	held = late;
	o->d->thread = 2;
	assert_int_equal(perseas_lock(tx, 2, EXCLUSIVE), 0);
	assert_int_equal(waits, 2);
	put(o, tx, 7, 98);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(o->bytes[7], 98);
	assert_int_equal(perseas_retry(tx), PERSEAS_EENDED);
	/* The next one that has this memory is younger than all. */
	tx = begin_with(o, 0, 2, 2, SHARED);
	assert_true(tx->lock_age > age + 1);
	perseas_abort(tx);
}

/* Circles that wait-die alone does not see: a thread with locks waits for its turn, while who has
 * the turn asks for one of the locks; threads with two transactions each. */
TEST(test_who_keeps_others_waiting_never_waits, struct owner *o)
{
	perseas_tx_t *young, *serial, *other;

	serial = begin_with(o, PERSEAS_SERIAL, 1, 9, SHARED);
	young = begin_with(o, 0, 2, 1, EXCLUSIVE);
	/* The older transaction has the turn, for which thread 2 may wait. */
	o->d->thread = 1;
	assert_int_equal(perseas_lock(serial, 1, SHARED), PERSEAS_ECONFLICT);
	assert_says(o, "may wait for this thread");
	/* The same for another transaction of that thread. */
	other = begin(o, 0, 1);
	other->lock_age = 1;
	other->traits |= PS_TX_LOCKS;
	serial->lock_age = 2;
	assert_int_equal(perseas_lock(other, 1, SHARED), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_abort(serial), 0);
	/* And without the turn, for a thread that has locks of another one. */
	serial = begin_with(o, 0, 1, 9, SHARED);
	assert_int_equal(perseas_lock(other, 1, SHARED), PERSEAS_ECONFLICT);
	/* Its retry does not wait either. */
	assert_int_equal(perseas_retry(other), 0);
	assert_int_equal(waits, 0);
	assert_int_equal(perseas_abort(serial), 0);
	held = young;
	meanwhile = abort_held;
	assert_int_equal(perseas_lock(other, 1, SHARED), 0);
	assert_int_equal(waits, 1);
	perseas_abort(other);
}

/* A SERIAL transaction that is refused a lock gives its turn up, and has it again after. */
TEST(test_a_retry_gives_its_turn_up, struct owner *o)
{
	perseas_tx_t *tx;

	held = begin_with(o, 0, 2, 1, EXCLUSIVE);
	tx = begin(o, PERSEAS_SERIAL, 1);
	retry(tx, 1, SHARED, take_turn);
	assert_int_equal(waits, 1);
	assert_true(o->p->serialization.is_turn_taken && tx->traits & PS_TX_SERIAL);
	assert_int_equal(perseas_lock(tx, 1, SHARED), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_false(o->p->serialization.is_turn_taken);
}

TEST(test_bad_locks_are_refused, struct owner *o)
{
	perseas_tx_t *tx = begin(o, 0, 1);

	assert_int_equal(perseas_lock(NULL, 1, SHARED), PERSEAS_EINVAL);
	assert_int_equal(perseas_lock(tx, 1, 0), PERSEAS_EINVAL);
	assert_int_equal(perseas_lock(tx, 1, 3), PERSEAS_EINVAL);
	assert_int_equal(perseas_retry(NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(perseas_lock(tx, 1, SHARED), PERSEAS_EENDED);
}

/* Very many locks: all are there, and all are let go. */
TEST(test_thousands_of_locks, struct owner *o)
{
	perseas_tx_t *tx = begin(o, 0, 1), *other = begin(o, 0, 2);

	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(perseas_lock(tx, i << 40, EXCLUSIVE), 0);
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(perseas_lock(other, i << 40, SHARED), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_abort(tx), 0);
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(perseas_lock(other, i << 40, SHARED), 0);
	assert_int_equal(perseas_abort(other), 0);
}

/* The handle is closed while a turn and locks are held: nothing of them is left. */
TEST(test_close_with_all_of_it_open, struct owner *o)
{
	perseas_tx_t *tx = begin_with(o, PERSEAS_SERIAL, 1, 1, EXCLUSIVE);
	uint64_t savepoint;

	assert_int_equal(perseas_lock(tx, 1025, SHARED), 0);
	assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
	put(o, tx, 7, 1);
	put(o, tx, 7, 2);
	owner_close(o);
}

/* Returns true if it was refused because this is a child of fork. */
static bool refused_to_a_child(struct owner *o, int rc)
{
	return rc == PERSEAS_EINVAL && strstr(perseas_message(o->p), "child of fork");
}

static int wait_in_child(void *arg)
{
	struct owner *o = arg;
	perseas_tx_t *tx;

	o->d->thread = 2;
	return refused_to_a_child(o, perseas_lock(held, 1, EXCLUSIVE)) &&
	       refused_to_a_child(o, perseas_begin(o->p, PERSEAS_SERIAL, &tx)) && !waits;
}

/* In a child of fork nobody ever lets go: it is told so, and does not wait. */
TEST(test_a_child_does_not_wait_for_its_parent, struct owner *o)
{
	perseas_tx_t *tx;

	held = begin_with(o, 0, 2, 2, SHARED);
	tx = begin_with(o, PERSEAS_SERIAL, 1, 1, SHARED);
	assert_true(unit_in_child(wait_in_child, o));
	perseas_abort(held);
	perseas_abort(tx);
}

static int close_in_child(void *arg)
{
	struct owner *o = arg;

	return refused_to_a_child(o, perseas_close(o->p));
}

/* A library that closes every handle at exit also does so in a child of fork, which must not end
 * its parent's session. */
TEST(test_a_child_closes_nothing, struct owner *o)
{
	assert_true(unit_in_child(close_in_child, o));
}
