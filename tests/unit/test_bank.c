/*
 * test_bank.c - the debit-credit workload: what the demo and the drills trust when they say
 * that nothing was lost and nothing is half there.
 */
#include "../support/unit.h"

#include "../../bench/bank.h"

enum { TRANSFERS = 100000 }; /* the history wraps around three times */

static const struct engine_options nowhere = { .store = "none" };

static struct bank *bank_of(uint64_t transfers)
{
	struct bank *bank = malloc(sizeof(*bank));
	char why[WORK_WHY];
	struct work_run run;

	assert_non_null(bank);
	assert_int_equal(work_open(&run, &bank_work, 1, &engine_none, &nowhere, why), 0);
	while (run.plan.done < transfers)
		assert_int_equal(bank_work.step(&run), 0);
	memcpy(bank, run.rows.memory, sizeof(*bank));
	work_close(&run);
	return bank;
}

static struct work_plan plan_at(uint64_t done)
{
	struct work_plan plan = WORK_PLAN(1);

	bank_plan_skip(&plan, done);
	return plan;
}

/* Many transfers; every choice is looked at. */
TEST(transfers_stay_inside_the_bank_and_reach_all_of_it)
{
	bool accounts_high = false, tellers[BANK_TELLERS] = { false };
	struct work_plan plan = plan_at(0);
	struct bank_transfer transfer;

	for (unsigned i = 0; i < TRANSFERS; i++) {
		bank_plan_next(&plan, &transfer);
		assert_true(transfer.account < BANK_ACCOUNTS);
		assert_true(transfer.teller < BANK_TELLERS);
		assert_int_equal(transfer.branch, transfer.teller / (BANK_TELLERS / BANK_BRANCHES));
		assert_int_equal(transfer.number, i + 1);
		tellers[transfer.teller] = true;
		accounts_high |= transfer.account > BANK_ACCOUNTS / 100 * 99;
	}
	assert_true(accounts_high);
	for (unsigned i = 0; i < BANK_TELLERS; i++)
		assert_true(tellers[i]);
}

/* A plan that skips, and one that goes step by step. */
TEST(a_plan_that_skips_goes_on_as_one_that_does_not)
{
	struct work_plan skipped = plan_at(1234), stepped = plan_at(0);
	struct bank_transfer a, b;

	while (stepped.done < 1234)
		bank_plan_next(&stepped, &b);
	bank_plan_next(&skipped, &a);
	bank_plan_next(&stepped, &b);
	assert_int_equal(a.number, b.number);
	assert_int_equal(a.account, b.account);
	assert_int_equal(a.teller, b.teller);
	assert_int_equal(a.amount, b.amount);
	assert_int_equal(skipped.sums[0], stepped.sums[0]);
}

/* Before, at and after the end of the history's ring. */
TEST(a_bank_tells_how_many_transfers_it_holds)
{
	static const uint64_t counts[] = { 0, 1, BANK_HISTORY, BANK_HISTORY + 1, TRANSFERS };

	for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		struct bank *bank = bank_of(counts[i]);
		struct work_plan plan = plan_at(counts[i]);
		char why[WORK_WHY] = "";

		assert_int_equal(bank_count(bank), counts[i]);
		assert_true(bank_check(&plan, bank, why, sizeof(why)));
		assert_true(work_compare(&bank_work, 1, bank, counts[i], why));
		free(bank);
	}
}

/* One of three balances is wrong. */
TEST(a_wrong_balance_is_found)
{
	struct bank *bank = bank_of(TRANSFERS);
	struct work_plan plan = plan_at(TRANSFERS);
	int64_t *balances[] = { &bank->accounts[7].balance, &bank->tellers[39].balance,
		                &bank->branches[3].balance };
	char why[WORK_WHY];

	for (unsigned i = 0; i < 3; i++) {
		++*balances[i];
		assert_false(bank_check(&plan, bank, why, sizeof(why)));
		assert_false(work_compare(&bank_work, 1, bank, TRANSFERS, why));
		--*balances[i];
	}
	assert_true(bank_check(&plan, bank, why, sizeof(why)));
	free(bank);
}

/* Money moved between two accounts: the sums are right, the bytes are not. */
TEST(a_difference_that_the_sums_do_not_show_is_found)
{
	struct bank *bank = bank_of(1000);
	struct work_plan plan = plan_at(1000);
	char why[WORK_WHY];

	bank->accounts[1].balance += 5;
	bank->accounts[2].balance -= 5;
	assert_true(bank_check(&plan, bank, why, sizeof(why)));
	assert_false(work_compare(&bank_work, 1, bank, 1000, why));
	free(bank);
}

/* The next transfer reached the balances, and not the history. */
TEST(a_transfer_that_is_half_there_is_found)
{
	struct bank *bank = bank_of(1000);
	struct work_plan plan = plan_at(1000);
	struct bank_transfer transfer;
	char why[WORK_WHY];

	bank_plan_next(&plan, &transfer);
	bank->accounts[transfer.account].balance += transfer.amount;
	bank->tellers[transfer.teller].balance += transfer.amount;
	bank->branches[transfer.branch].balance += transfer.amount;
	assert_int_equal(bank_count(bank), 1000);
	assert_false(work_compare(&bank_work, 1, bank, 1000, why));
	assert_false(work_compare(&bank_work, 1, bank, 1001, why));
	free(bank);
}

/* The last transfer is missing altogether, as a commit that was lost would be. */
TEST(a_missing_transfer_is_found)
{
	struct bank *bank = bank_of(999);
	struct work_plan plan = plan_at(1000);
	char why[WORK_WHY];

	assert_false(bank_check(&plan, bank, why, sizeof(why)));
	assert_false(work_compare(&bank_work, 1, bank, 1000, why));
	free(bank);
}

/* A record that is too new by itself, one that was never overwritten, one that is missing. */
TEST(a_history_that_no_run_could_leave_has_no_count)
{
	static const uint64_t wrong[] = { (uint64_t)1 << 60, 5, 0 };

	for (unsigned i = 0; i < 3; i++) {
		struct bank *bank = bank_of(TRANSFERS);
		struct work_plan plan = plan_at(TRANSFERS);
		char why[WORK_WHY];

		bank->history[4].number = wrong[i];
		assert_true(bank_count(bank) == BANK_NO_COUNT);
		assert_false(bank_check(&plan, bank, why, sizeof(why)));
		free(bank);
	}
}

/* The engine that the library is compared with, and plain memory. */
TEST(the_local_engine_does_what_plain_memory_does)
{
	char why[WORK_WHY];
	struct work_run run;

	assert_int_equal(work_attach(&run, &bank_work, 1, &engine_local, &nowhere, why), 0);
	while (run.plan.done < 5000)
		assert_int_equal(bank_work.step(&run), 0);
	assert_true(work_compare(&bank_work, 1, run.rows.memory, 5000, why));
	work_close(&run);
}
