/*
 * test_demand_shadow.c - memory that is fetched on demand, in a store that compares what was
 * written with a shadow (PERSEAS_TRACKED and PERSEAS_CHECK_WRITES): by the pages that were written
 * and by all that is here. What is missing is never touched, and what was stored to a page the
 * moment it came is not overlooked.
 */
#include "demand_shadow_rig.h"

#include <sys/prctl.h>

struct unit_fixture unit_fixture = { setup_pages, teardown };
struct unit_fixture unit_fixture_too = { setup_all, teardown };

/* --- transactions that declare nothing --- */

/* Most is missing when it commits, and is neither touched nor waited for. */
TEST(test_a_transaction_commits_while_memory_is_missing, struct rig *rig)
{
	perseas_tx_t *tx;

	begin(rig, PERSEAS_TRACKED);
	assert_int_equal(perseas_commit(track(rig), 0), 0);
	tx = track(rig);
	atomic_store(&rig_shut, false);
	memset(rig->bytes + FAR, VALUE, LENGTH);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_true(rig_stat(rig).missing > 0);
	assert_int_equal(rig_by_another(rig, find_committed), 0);
}
TEST_ALSO(test_a_transaction_commits_while_memory_is_missing, setup_pages_shared, teardown);

/* An abort puts back what was changed, of what is here. */
TEST(test_an_abort_puts_back_while_memory_is_missing, struct rig *rig)
{
	perseas_tx_t *tx;

	begin(rig, PERSEAS_TRACKED);
	assert_int_equal(perseas_abort(track(rig)), 0);
	tx = track(rig);
	atomic_store(&rig_shut, false);
	memset(rig->bytes + FAR, VALUE, LENGTH);
	assert_int_equal(perseas_abort(tx), 0);
	assert_true(rig_stat(rig).missing > 0);
	for (unsigned i = 0; i < LENGTH; i++)
		assert_int_equal(rig->bytes[FAR + i], rig_byte(FAR + i));
	assert_int_equal(perseas_commit(track(rig), 0), 0);
	assert_int_equal(rig_by_another(rig, find_nothing), 0);
}

/* All comes, by runs as well: the shadow has what memory has, and nothing counts as written. */
TEST(test_the_shadow_comes_with_all_memory, struct rig *rig)
{
	struct ps_segment *segment;

	rig->rate = 0;
	begin_at_gate(rig, PERSEAS_TRACKED, false);
	rig_fetch_unchanged(rig);
	segment = &rig->p->segments[0];
	pthread_mutex_lock(&rig->p->lock);
	assert_memory_equal(segment->shadow, rig->bytes, SIZE);
	ps_shadow_collect_written(rig->p, segment);
	for (uint64_t i = 0; by_pages && i <= SIZE / PS_PAGE; i++)
		assert_false(segment->pages_may_differ[i / PS_WRITTEN_WORD] >> i % PS_WRITTEN_WORD &
		             1);
	pthread_mutex_unlock(&rig->p->lock);
	assert_int_equal(perseas_commit(track(rig), 0), 0);
	assert_int_equal(rig_stat(rig).range_bytes, 0);
}
TEST_ALSO(test_the_shadow_comes_with_all_memory, setup_all_shared, teardown);
TEST_ALSO(test_the_shadow_comes_with_all_memory, setup_pages_shared, teardown);

/* A page can be seen before its granule counts as here: what is stored to it then, by who commits
 * at once, is in that commit. */
static perseas_tx_t *store_while_it_comes(struct rig *rig)
{
	perseas_tx_t *tx;

	begin(rig, PERSEAS_TRACKED);
	tx = track(rig);
	come(rig, SEEN_BEFORE, FAR);
	memset(rig->bytes + FAR, VALUE, LENGTH);
	return tx;
}

TEST(test_what_is_stored_while_a_page_comes_is_committed, struct rig *rig)
{
	assert_int_equal(perseas_commit(store_while_it_comes(rig), 0), 0);
	atomic_store(&committed, true);
	assert_int_equal(rig_by_another(rig, find_committed), 0);
}

TEST(test_what_is_stored_while_a_page_comes_is_committed_without_waiting, struct rig *rig)
{
	assert_int_equal(perseas_commit(store_while_it_comes(rig), PERSEAS_NOWAIT), 0);
	atomic_store(&committed, true);
	assert_int_equal(perseas_flush(rig->p), 0);
	assert_int_equal(rig_by_another(rig, find_committed), 0);
}

static void is_put_back(const struct rig *rig)
{
	atomic_store(&committed, true);
	for (unsigned i = 0; i < LENGTH; i++)
		assert_int_equal(rig->bytes[FAR + i], rig_byte(FAR + i));
}

TEST(test_what_is_stored_while_a_page_comes_is_put_back, struct rig *rig)
{
	assert_int_equal(perseas_abort(store_while_it_comes(rig)), 0);
	is_put_back(rig);
}

TEST(test_what_is_stored_while_a_page_comes_is_put_back_by_a_retry, struct rig *rig)
{
	perseas_tx_t *tx = store_while_it_comes(rig);

	assert_int_equal(perseas_retry(tx), 0);
	is_put_back(rig);
	assert_int_equal(perseas_abort(tx), 0);
}

/* A child of fork has neither the memory nor a thread that would fill it: it waits for nothing. */
static void end_in_a_child(const struct rig *rig, perseas_tx_t *tx)
{
	struct perseas_token token;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(perseas_commit(tx, 0) != PERSEAS_EINVAL ||
	      perseas_commit_token(tx, PERSEAS_NOWAIT, &token) != PERSEAS_EINVAL ||
	      perseas_retry(tx) != PERSEAS_EINVAL || perseas_abort(tx) != PERSEAS_EINVAL ||
	      !strstr(perseas_message(rig->p), "child of fork"));
}

TEST(test_a_child_of_fork_ends_no_transaction, struct rig *rig)
{
	perseas_tx_t *tx = store_while_it_comes(rig);
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		end_in_a_child(rig, tx);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	atomic_store(&committed, true);
	assert_int_equal(rig_by_another(rig, find_committed), 0);
}

/* --- stores that nobody declared --- */

TEST(test_an_undeclared_store_is_found_while_memory_is_missing, struct rig *rig)
{
	begin(rig, PERSEAS_CHECK_WRITES);
	assert_int_equal(commit_nothing(rig), 0);
	atomic_store(&rig_shut, false);
	rig->bytes[FAR] ^= 1;
	assert_int_equal(commit_nothing(rig), PERSEAS_EUNDECLARED);
	assert_true(rig_stat(rig).missing > 0);
	rig->bytes[FAR] ^= 1;
	assert_int_equal(commit_nothing(rig), 0);
	assert_int_equal(rig_put(rig, FAR, LENGTH, VALUE), 0);
	assert_int_equal(rig_by_another(rig, find_committed), 0);
}

TEST(test_an_undeclared_store_is_found_while_a_page_comes, struct rig *rig)
{
	begin(rig, PERSEAS_CHECK_WRITES);
	come(rig, SEEN_BEFORE, FAR);
	rig->bytes[FAR] ^= 1;
	assert_int_equal(commit_nothing(rig), PERSEAS_EUNDECLARED);
	atomic_store(&committed, true);
}

/* --- the end of an owner --- */

/* What it stored is neither sent nor left there, and what is missing ends an access. */
TEST(test_who_is_fenced_puts_back_what_it_stored, struct rig *rig)
{
	perseas_tx_t *tx;

	begin(rig, PERSEAS_TRACKED);
	tx = track(rig);
	atomic_store(&rig_shut, false);
	memset(rig->bytes + FAR, VALUE, LENGTH);
	rig_be_fenced(rig);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EFENCED);
	assert_int_equal(rig->bytes[FAR], rig_byte(FAR));
	assert_true(rig_stat(rig).missing > 0);
}

/* Whoever asks what was written marks a page that was discarded, and it is refused all the same. */
TEST(test_a_discarded_page_is_refused_after_a_look, struct rig *rig)
{
	struct ps_segment *segment;

	rig->rate = 0;
	begin(rig, PERSEAS_TRACKED);
	rig_fetch(rig);
	assert_int_equal(madvise(rig->bytes + 8192, 4096, MADV_DONTNEED), 0);
	segment = &rig->p->segments[0];
	pthread_mutex_lock(&rig->p->lock);
	ps_shadow_collect_written(rig->p, segment);
	pthread_mutex_unlock(&rig->p->lock);
	assert_int_equal(rig_look(rig->bytes + 8192), -1);
	assert_int_equal(rig_look(rig->bytes + 4096), rig_byte(4096));
	assert_int_equal(rig_look(rig->bytes + 12288), rig_byte(12288));
}

/* --- for everybody --- */

static int track_as_nobody(struct rig *rig)
{
	perseas_tx_t *tx;

	if (setuid(65534) && geteuid() == 0)
		return 1;
	/* Of a process that has become another user's the kernel else shows nobody anything. */
	prctl(PR_SET_DUMPABLE, 1);
	atomic_store(&rig_shut, false);
	if (rig_open(rig, PERSEAS_TAKEOVER | PERSEAS_TRACKED, PERSEAS_RECOVERY_ON_DEMAND) ||
	    rig_map(rig))
		return 2;
	if (!rig->p->demand || by_pages != (rig->p->segments[0].pages_may_differ != NULL))
		return 3;
	if (perseas_begin(rig->p, PERSEAS_TRACK, &tx))
		return 4;
	memset(rig->bytes + FAR, VALUE, LENGTH);
	return perseas_commit(tx, 0) ? 5 : 0;
}

TEST(test_it_takes_no_privilege, struct rig *rig)
{
	begin(rig, PERSEAS_TRACKED);
	perseas_close(rig->p);
	rig->p = NULL;
	assert_int_equal(rig_by_another(rig, track_as_nobody), 0);
	assert_int_equal(rig_by_another(rig, find_committed), 0);
}
