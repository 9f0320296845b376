/*
 * test_demand_shadow.c - memory that is fetched on demand, in a store that compares what was
 * written with a shadow (PERSEAS_TRACKED and PERSEAS_CHECK_WRITES): by the pages that were written
 * and by all that is here. What is missing is never touched, and what was stored to a page the
 * moment it came is not overlooked.
 */
#include "demand_rig.h"

#include "../../client/core/shadow.h"
#include "../../client/demand/demand.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { FAR = SIZE - 5000, VALUE = 0xa5, LENGTH = 9 };

static const char *const ways[] = { "pages", "all memory" };

static bool by_pages; /* the way of this test */

/* --- how memory is filled --- */

static _Atomic enum { AT_ONCE, SEEN_BEFORE, TORN, TORN_FOR_GOOD } fills;
static const uint8_t *stored_to; /* what comes with it comes in this way */
static atomic_bool committed;

/* Until the committer waits for what is being filled, or has gone past it. */
static void let_it_commit(void)
{
	RIG_UNTIL(atomic_load(&rig_waited) || atomic_load(&committed));
}

static bool fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes, uint32_t length,
                 bool watched)
{
	const bool is_it = fills != AT_ONCE && stored_to >= to && stored_to < to + length;
	const uint64_t page = is_it ? (uint64_t)(stored_to - to) / PS_PAGE * PS_PAGE : 0;
	bool filled;

	if (is_it && fills >= TORN) {
		fills = fills == TORN ? SEEN_BEFORE : TORN_FOR_GOOD;
		(void)ps_pager_uffd.fill(pager, to + page, bytes + page, PS_PAGE, watched);
		return false;
	}
	filled = ps_pager_uffd.fill(pager, to, bytes, length, watched);
	if (is_it)
		let_it_commit();
	return filled;
}

static void watch(struct ps_env_ops *ops)
{
	(void)ops;
	rig_pager.fill = fill;
}

/* --- what is asked about --- */

static struct perseas *asks;
static _Atomic unsigned in_vain; /* about memory that is missing */

static int take(struct ps_written *written, const uint8_t *base, uint64_t offset, uint64_t length,
                uint64_t *set)
{
	bool here;

	in_vain += ps_demand_run(asks, &asks->segments[0], offset, length, &here) != length ||
	           !here;
	return ps_written_pages.take(written, base, offset, length, set);
}

static struct ps_written_ops written;

/* --- owners --- */

static int setup_of(void **state, bool pages, bool shared)
{
	struct rig *rig;
	int rc;

	/* First, for other owners begin in a process that has this as it is now. */
	by_pages = pages;
	fills = AT_ONCE;
	atomic_store(&committed, false);
	atomic_store(&rig_waited, false);
	atomic_store(&rig_watched, NULL);
	assert_int_equal(setenv("PERSEAS_WRITTEN_PAGES", pages ? "on" : "off", 1), 0);
	rc = rig_setup(state, shared);
	rig = *state;
	rig->change = watch;
	/* What nobody waits for comes once, and then not for days. */
	rig->rate = 1;
	return rc;
}

static int setup_pages(void **state)
{
	return setup_of(state, true, false);
}

static int setup_all(void **state)
{
	return setup_of(state, false, false);
}

static int setup_pages_shared(void **state)
{
	return setup_of(state, true, true);
}

static int setup_all_shared(void **state)
{
	return setup_of(state, false, true);
}

static int teardown(void **state)
{
	/* Also where a test has failed. */
	atomic_store(&committed, true);
	unsetenv("PERSEAS_WRITTEN_PAGES");
	atomic_store(&rig_watched, NULL);
	assert_int_equal(rig_teardown(state), 0);
	return (int)atomic_exchange(&in_vain, 0);
}

/* The test is skipped where this kernel tells no pages. */
static void begin_at_gate(struct rig *rig, uint32_t flags, bool shut)
{
	atomic_store(&rig_shut, shut);
	assert_int_equal(rig_open(rig, flags | PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	if (strstr(perseas_report(rig->p), "read first") ||
	    (by_pages && !strstr(perseas_report(rig->p), "compare the pages")))
		skip();
	assert_true(by_pages == !strstr(perseas_report(rig->p), ways[1]));
	assert_int_equal(rig_map(rig), 0);
	assert_true(rig->p->demand && rig->p->segments[0].shadow);
	assert_true(by_pages == (rig->p->segments[0].unlike != NULL));
	written = ps_written_pages;
	written.take = take;
	asks = rig->p;
	if (by_pages)
		rig->p->env->written = &written;
}

/* With the gate shut: nothing is here. */
static void begin(struct rig *rig, uint32_t flags)
{
	begin_at_gate(rig, flags, true);
}

static uint64_t missing(struct rig *rig)
{
	struct perseas_stat stat;

	assert_int_equal(perseas_stat(rig->p, &stat), 0);
	return stat.missing;
}

static perseas_tx_t *track(struct rig *rig)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(rig->p, PERSEAS_TRACK, &tx), 0);
	return tx;
}

/* Another owner finds the beginning, but for what was committed. */
static int find_committed(struct rig *rig)
{
	if (rig_open(rig, PERSEAS_TAKEOVER, 0) || rig_map(rig))
		return 1;
	for (uint64_t i = 0; i < SIZE; i++)
		if (rig->bytes[i] != (i >= FAR && i - FAR < LENGTH ? VALUE : rig_byte(i)))
			return 2;
	perseas_close(rig->p);
	return 0;
}

static int find_nothing(struct rig *rig)
{
	if (rig_open(rig, PERSEAS_TAKEOVER, 0) || rig_map(rig))
		return 1;
	return rig_wrong(rig) ? 2 : 0;
}

/* --- transactions that declare nothing --- */

/* Most is missing when it commits, and is neither touched nor waited for. */
static void test_a_transaction_commits_while_memory_is_missing(void **state)
{
	struct rig *rig = *state;
	perseas_tx_t *tx;

	begin(rig, PERSEAS_TRACKED);
	assert_int_equal(perseas_commit(track(rig), 0), 0);
	tx = track(rig);
	atomic_store(&rig_shut, false);
	memset(rig->bytes + FAR, VALUE, LENGTH);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_true(missing(rig) > 0);
	assert_int_equal(rig_by_another(rig, find_committed), 0);
}

/* An abort puts back what was changed, of what is here. */
static void test_an_abort_puts_back_while_memory_is_missing(void **state)
{
	struct rig *rig = *state;
	perseas_tx_t *tx;

	begin(rig, PERSEAS_TRACKED);
	assert_int_equal(perseas_abort(track(rig)), 0);
	tx = track(rig);
	atomic_store(&rig_shut, false);
	memset(rig->bytes + FAR, VALUE, LENGTH);
	assert_int_equal(perseas_abort(tx), 0);
	assert_true(missing(rig) > 0);
	for (unsigned i = 0; i < LENGTH; i++)
		assert_int_equal(rig->bytes[FAR + i], rig_byte(FAR + i));
	assert_int_equal(perseas_commit(track(rig), 0), 0);
	assert_int_equal(rig_by_another(rig, find_nothing), 0);
}

/* All comes, by runs as well: the shadow has what memory has, and nothing counts as written. */
static void test_the_shadow_comes_with_all_memory(void **state)
{
	struct rig *rig = *state;
	struct ps_segment *segment;
	struct perseas_stat stat;

	rig->rate = 0;
	begin_at_gate(rig, PERSEAS_TRACKED, false);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(rig_wrong(rig), 0);
	segment = &rig->p->segments[0];
	pthread_mutex_lock(&rig->p->lock);
	assert_memory_equal(segment->shadow, rig->bytes, SIZE);
	ps_shadow_look(rig->p, segment);
	for (uint64_t i = 0; by_pages && i <= SIZE / PS_PAGE; i++)
		assert_false(segment->unlike[i / PS_WRITTEN_WORD] >> i % PS_WRITTEN_WORD & 1);
	pthread_mutex_unlock(&rig->p->lock);
	assert_int_equal(perseas_commit(track(rig), 0), 0);
	assert_int_equal(perseas_stat(rig->p, &stat), 0);
	assert_int_equal(stat.range_bytes, 0);
}

/* Memory may come, that with this byte in such a way. */
static void come(struct rig *rig, int way, uint64_t offset)
{
	stored_to = rig->bytes + offset;
	fills = way;
	atomic_store(&rig_watched, &rig->p->demand->change);
	atomic_store(&rig_shut, false);
}

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

static void test_what_is_stored_while_a_page_comes_is_committed(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(perseas_commit(store_while_it_comes(rig), 0), 0);
	atomic_store(&committed, true);
	assert_int_equal(rig_by_another(rig, find_committed), 0);
}

static void test_what_is_stored_while_a_page_comes_is_committed_without_waiting(void **state)
{
	struct rig *rig = *state;

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

static void test_what_is_stored_while_a_page_comes_is_put_back(void **state)
{
	assert_int_equal(perseas_abort(store_while_it_comes(*state)), 0);
	is_put_back(*state);
}

static void test_what_is_stored_while_a_page_comes_is_put_back_by_a_retry(void **state)
{
	perseas_tx_t *tx = store_while_it_comes(*state);

	assert_int_equal(perseas_retry(tx), 0);
	is_put_back(*state);
	assert_int_equal(perseas_abort(tx), 0);
}

/* The same where there was no memory for more of its granule than the first page. */
static void test_what_is_stored_to_a_part_of_a_granule_is_committed(void **state)
{
	struct rig *rig = *state;
	const uint64_t granule = ps_pager_uffd.granule, at = FAR / granule * granule;
	perseas_tx_t *tx;

	begin(rig, PERSEAS_TRACKED);
	tx = track(rig);
	come(rig, TORN, at);
	rig->bytes[at] = VALUE;
	assert_int_equal(perseas_commit(tx, 0), 0);
	atomic_store(&committed, true);
	assert_int_equal(rig->p->commit.stat.range_bytes, 8);
	assert_int_equal(rig_look(rig->bytes + at + 1), rig_byte(at + 1));
	tx = track(rig);
	rig->bytes[at] = rig_byte(at);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(rig_by_another(rig, find_nothing), 0);
}

/* There is no memory for the rest, perhaps for ever: a commit keeps its time, and sends nothing. */
static void test_a_commit_waits_for_no_part_for_ever(void **state)
{
	struct rig *rig = *state;
	const uint64_t granule = ps_pager_uffd.granule, at = FAR / granule * granule;
	struct perseas_token token;
	perseas_tx_t *tx;

	begin(rig, PERSEAS_TRACKED);
	tx = track(rig);
	come(rig, TORN_FOR_GOOD, at);
	rig->bytes[at] = VALUE;
	rig->p->options.commit_timeout_ms = 20;
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EBLOCKED);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), PERSEAS_EBLOCKED);
	rig->p->options.commit_timeout_ms = UINT32_MAX;
	assert_int_equal(perseas_commit_token(tx, PERSEAS_NOWAIT | PERSEAS_NOBLOCK, &token),
	                 PERSEAS_EAGAIN);
	fills = AT_ONCE;
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(rig->p->commit.stat.range_bytes, 8);
	assert_int_equal(rig_look(rig->bytes + at + 1), rig_byte(at + 1));
}

/* --- stores that nobody declared --- */

static int commit_nothing(struct rig *rig)
{
	perseas_tx_t *tx;
	int rc;

	assert_int_equal(perseas_begin(rig->p, 0, &tx), 0);
	rc = perseas_commit(tx, 0);
	if (rc)
		assert_int_equal(perseas_abort(tx), 0);
	return rc;
}

static void test_an_undeclared_store_is_found_while_memory_is_missing(void **state)
{
	struct rig *rig = *state;

	begin(rig, PERSEAS_CHECK_WRITES);
	assert_int_equal(commit_nothing(rig), 0);
	atomic_store(&rig_shut, false);
	rig->bytes[FAR] ^= 1;
	assert_int_equal(commit_nothing(rig), PERSEAS_EUNDECLARED);
	assert_true(missing(rig) > 0);
	rig->bytes[FAR] ^= 1;
	assert_int_equal(commit_nothing(rig), 0);
	assert_int_equal(rig_put(rig, FAR, LENGTH, VALUE), 0);
	assert_int_equal(rig_by_another(rig, find_committed), 0);
}

static void test_an_undeclared_store_is_found_while_a_page_comes(void **state)
{
	struct rig *rig = *state;

	begin(rig, PERSEAS_CHECK_WRITES);
	come(rig, SEEN_BEFORE, FAR);
	rig->bytes[FAR] ^= 1;
	assert_int_equal(commit_nothing(rig), PERSEAS_EUNDECLARED);
	atomic_store(&committed, true);
}

/* --- the end of an owner --- */

static int take_over(struct rig *rig)
{
	return rig_open(rig, PERSEAS_TAKEOVER, 0);
}

/* What it stored is neither sent nor left there, and what is missing ends an access. */
static void test_who_is_fenced_puts_back_what_it_stored(void **state)
{
	struct rig *rig = *state;
	perseas_tx_t *tx;

	begin(rig, PERSEAS_TRACKED);
	tx = track(rig);
	atomic_store(&rig_shut, false);
	memset(rig->bytes + FAR, VALUE, LENGTH);
	atomic_store(&rig_shut, true);
	assert_int_equal(rig_by_another(rig, take_over), 0);
	RIG_UNTIL(rig->p->superseded);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EFENCED);
	assert_int_equal(rig->bytes[FAR], rig_byte(FAR));
	assert_true(missing(rig) > 0);
}

/* Whoever asks what was written marks a page that was discarded, and it is refused all the same. */
static void test_a_discarded_page_is_refused_after_a_look(void **state)
{
	struct rig *rig = *state;
	struct ps_segment *segment;

	rig->rate = 0;
	begin(rig, PERSEAS_TRACKED);
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(madvise(rig->bytes + 8192, 4096, MADV_DONTNEED), 0);
	segment = &rig->p->segments[0];
	pthread_mutex_lock(&rig->p->lock);
	ps_shadow_look(rig->p, segment);
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
	if (!rig->p->demand || by_pages != (rig->p->segments[0].unlike != NULL))
		return 3;
	if (perseas_begin(rig->p, PERSEAS_TRACK, &tx))
		return 4;
	memset(rig->bytes + FAR, VALUE, LENGTH);
	return perseas_commit(tx, 0) ? 5 : 0;
}

static void test_it_takes_no_privilege(void **state)
{
	struct rig *rig = *state;

	begin(rig, PERSEAS_TRACKED);
	perseas_close(rig->p);
	rig->p = NULL;
	assert_int_equal(rig_by_another(rig, track_as_nobody), 0);
	assert_int_equal(rig_by_another(rig, find_committed), 0);
}

#define EACH(test)                                                    \
	cmocka_unit_test_setup_teardown(test, setup_pages, teardown), \
		cmocka_unit_test_setup_teardown(test, setup_all, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_a_transaction_commits_while_memory_is_missing),
		EACH(test_an_abort_puts_back_while_memory_is_missing),
		EACH(test_the_shadow_comes_with_all_memory),
		EACH(test_what_is_stored_while_a_page_comes_is_committed),
		EACH(test_what_is_stored_while_a_page_comes_is_committed_without_waiting),
		EACH(test_what_is_stored_while_a_page_comes_is_put_back),
		EACH(test_what_is_stored_while_a_page_comes_is_put_back_by_a_retry),
		EACH(test_what_is_stored_to_a_part_of_a_granule_is_committed),
		EACH(test_a_commit_waits_for_no_part_for_ever),
		EACH(test_an_undeclared_store_is_found_while_memory_is_missing),
		EACH(test_an_undeclared_store_is_found_while_a_page_comes),
		EACH(test_who_is_fenced_puts_back_what_it_stored),
		EACH(test_a_discarded_page_is_refused_after_a_look),
		EACH(test_it_takes_no_privilege),
		cmocka_unit_test_setup_teardown(test_a_transaction_commits_while_memory_is_missing,
		                                setup_pages_shared, teardown),
		cmocka_unit_test_setup_teardown(test_the_shadow_comes_with_all_memory,
		                                setup_all_shared, teardown),
		cmocka_unit_test_setup_teardown(test_the_shadow_comes_with_all_memory,
		                                setup_pages_shared, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
