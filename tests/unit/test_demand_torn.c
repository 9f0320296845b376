/*
 * test_demand_torn.c - memory that is fetched on demand and has a shadow, where this host had no
 * memory for more than a part of a granule. What came counts as here: it is committed, put back and
 * compared, nobody waits for the rest, which may never come, and it is never filled again.
 */
#include "demand_shadow_rig.h"

struct unit_fixture unit_fixture = { setup_pages, teardown };
struct unit_fixture unit_fixture_too = { setup_all, teardown };

/* Offset of the granule that comes in part: its first two pages, and nothing behind them. */
static uint64_t torn(void)
{
	return FAR / ps_pager_uffd.granule * ps_pager_uffd.granule;
}

/* Offset of a byte in the second of these pages. */
static uint64_t in_part(void)
{
	return torn() + PS_PAGE + 500;
}

static perseas_tx_t *store_to_a_part(struct rig *rig, uint32_t flags)
{
	perseas_tx_t *tx = NULL;

	begin(rig, flags);
	if (flags & PERSEAS_TRACKED)
		tx = track(rig);
	come(rig, TORN, in_part());
	rig->bytes[in_part()] = VALUE;
	return tx;
}

static uint64_t run_at(struct rig *rig, uint64_t offset, bool *here)
{
	return ps_demand_uniform_run(rig->p, &rig->p->segments[0], offset, SIZE - offset, here);
}

static int commit_value(struct rig *rig, uint8_t value)
{
	perseas_tx_t *tx = track(rig);

	rig->bytes[in_part()] = value;
	return perseas_commit(tx, 0);
}

/* What a part has counts as here, and nobody waits for the rest, which may never come. */
TEST(test_what_is_stored_to_a_part_of_a_granule_is_committed, struct rig *rig)
{
	perseas_tx_t *tx = store_to_a_part(rig, PERSEAS_TRACKED);
	struct perseas_token token;
	bool here;

	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(rig->p->commit.stat.range_bytes, 8);
	assert_int_equal(run_at(rig, torn(), &here), 2 * PS_PAGE);
	assert_true(here);
	assert_int_equal(run_at(rig, torn() + 2 * PS_PAGE, &here), SIZE - torn() - 2 * PS_PAGE);
	assert_false(here);
	assert_int_equal(run_at(rig, torn() - 100, &here), 100);
	assert_false(here);
	tx = track(rig);
	rig->bytes[in_part()] = rig_byte(in_part());
	assert_int_equal(perseas_commit_token(tx, PERSEAS_NOWAIT | PERSEAS_NOBLOCK, &token), 0);
	assert_int_equal(rig->p->commit.stat.range_bytes, 16);
	assert_int_equal(rig_by_another(rig, find_nothing), 0);
}

/* The bulk lane brings it with all that is missing beside it. */
static void come_in_runs(struct rig *rig)
{
	struct ps_demand *d = rig->p->demand;

	pthread_mutex_lock(&d->lock);
	d->bulk_bytes_per_s = d->bulk_allowed_at = 0;
	pthread_mutex_unlock(&d->lock);
	d->ops->wake(d->pager, PS_BULK_LANE);
}

/* The answer is older than what was committed: of the part nothing is filled again. */
static void fill_after_a_commit(struct rig *rig, unsigned granules)
{
	perseas_tx_t *tx = store_to_a_part(rig, PERSEAS_TRACKED);

	assert_int_equal(perseas_abort(tx), 0);
	if (granules > 1)
		come_in_runs(rig);
	holds = granules;
	RIG_UNTIL(held);
	assert_int_equal(commit_value(rig, VALUE), 0);
	fills = AT_ONCE;
	holds = 0;
	for (uint64_t i = torn(); i < torn() + ps_pager_uffd.granule; i++)
		if (rig->bytes[i] != (i == in_part() ? VALUE : rig_byte(i)))
			fail_msg("byte %llu", (unsigned long long)i);
	assert_int_equal(commit_value(rig, rig_byte(in_part())), 0);
	assert_int_equal(rig->p->commit.stat.range_bytes, 16);
	assert_int_equal(rig_by_another(rig, find_nothing), 0);
}

TEST(test_what_was_committed_of_a_part_is_not_filled_again, struct rig *rig)
{
	fill_after_a_commit(rig, 1);
}

TEST(test_what_was_committed_of_a_part_is_not_filled_again_by_a_run, struct rig *rig)
{
	fill_after_a_commit(rig, 2);
}

static void is_as_it_was(struct rig *rig)
{
	assert_int_equal(rig->bytes[in_part()], rig_byte(in_part()));
	assert_true(rig_stat(rig).missing > 0);
}

TEST(test_what_is_stored_to_a_part_of_a_granule_is_put_back, struct rig *rig)
{
	perseas_tx_t *tx = store_to_a_part(rig, PERSEAS_TRACKED);

	assert_int_equal(perseas_abort(tx), 0);
	is_as_it_was(rig);
	tx = track(rig);
	rig->bytes[in_part()] = VALUE;
	assert_int_equal(perseas_retry(tx), 0);
	is_as_it_was(rig);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(rig_by_another(rig, find_nothing), 0);
}

TEST(test_an_undeclared_store_to_a_part_of_a_granule_is_found, struct rig *rig)
{
	store_to_a_part(rig, PERSEAS_CHECK_WRITES);
	assert_int_equal(commit_nothing(rig), PERSEAS_EUNDECLARED);
	rig->bytes[in_part()] = rig_byte(in_part());
	assert_int_equal(commit_nothing(rig), 0);
}

/* It may have been committed: an older state must not come in its place. */
TEST(test_a_discarded_page_of_a_part_is_refused, struct rig *rig)
{
	assert_int_equal(perseas_commit(store_to_a_part(rig, PERSEAS_TRACKED), 0), 0);
	assert_int_equal(madvise(rig->bytes + torn() + PS_PAGE, PS_PAGE, MADV_DONTNEED), 0);
	assert_int_equal(rig_look(rig->bytes + in_part()), -1);
	fills = AT_ONCE;
	assert_int_equal(rig_look(rig->bytes + torn() + 2 * PS_PAGE),
	                 rig_byte(torn() + 2 * PS_PAGE));
	assert_int_equal(rig_look(rig->bytes + in_part()), -1);
	assert_int_equal(rig_look(rig->bytes + torn()), rig_byte(torn()));
}

/* --- the end of an owner --- */

/* Of a granule that came by half, too: its part has nothing but what was confirmed. */
TEST(test_who_is_fenced_puts_back_what_it_stored_to_a_part, struct rig *rig)
{
	perseas_tx_t *tx = store_to_a_part(rig, PERSEAS_TRACKED);

	rig_be_fenced(rig);
	assert_int_equal(rig_look(rig->bytes + torn() + 2 * PS_PAGE), -1);
	assert_int_equal(rig_look(rig->bytes + in_part()), VALUE);
	assert_int_equal(perseas_abort(tx), 0);
	is_as_it_was(rig);
	assert_int_equal(rig_look(rig->bytes + torn()), rig_byte(torn()));
	assert_int_equal(rig_look(rig->bytes + torn() + 3 * PS_PAGE), -1);
}

TEST(test_who_is_fenced_commits_nothing_of_a_part, struct rig *rig)
{
	perseas_tx_t *tx = store_to_a_part(rig, PERSEAS_TRACKED);

	rig_be_fenced(rig);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EFENCED);
	is_as_it_was(rig);
	assert_int_equal(rig_by_another(rig, find_nothing), 0);
}
