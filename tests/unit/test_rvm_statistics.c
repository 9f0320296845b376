/*
 * test_rvm_statistics.c - what librvm-perseas counts, and how it prints that.
 */
#include "rvm_rig.h"

struct unit_fixture unit_fixture = { rvm_rig_setup_mapped, rvm_rig_teardown };

static rvm_statistics_t told(void)
{
	rvm_statistics_t statistics;

	rvm_init_statistics(&statistics);
	assert_rvm(RVM_STATISTICS(&statistics));
	return statistics;
}

static rvm_length_t sum(const rvm_length_t *counts, unsigned places)
{
	rvm_length_t all = 0;

	for (unsigned i = 0; i < places; i++)
		all += counts[i];
	return all;
}

/* RVM's table 2: what is saved in transactions, and between them. */
TEST_WITH(transactions_are_counted_with_what_was_saved, rvm_rig_setup, rvm_rig_teardown,
          struct rvm_rig *rig)
{
	rvm_statistics_t s;
	rvm_tid_t tid;

	rvm_rig_open(rig, RVM_ALL_OPTIMIZATIONS);
	rvm_rig_hold();
	rvm_rig_map(rig);
	tid = rvm_rig_change(rig, 0, 100, 1);
	assert_rvm(rvm_set_range(&tid, rig->region.vmaddr + 50, 50));
	s = told();
	assert_int_equal(s.n_uncommit, 1);
	assert_rvm(rvm_end_transaction(&tid, flush));
	for (unsigned i = 0; i < 4; i++)
		rvm_rig_put(rig, 1000, 200, 5 + (int)i, no_flush);
	s = told();
	assert_true(s.n_no_flush > 0);
	assert_rvm(rvm_flush());
	tid = rvm_rig_change(rig, 0, 1, 1);
	assert_rvm(rvm_abort_transaction(&tid));
	s = told();
	assert_int_equal(s.struct_id, rvm_statistics_id);
	assert_int_equal(s.n_uncommit, 0);
	assert_int_equal(s.n_no_flush, 0);
	assert_int_equal(s.n_abort, 1);
	assert_int_equal(s.n_flush_commit, 1);
	assert_int_equal(s.n_no_flush_commit, 4);
	assert_int_equal(s.n_rvm_flush, 1);
	assert_int_equal(s.n_flush, 2);
	assert_int_equal(RVM_OFFSET_TO_LENGTH(s.range_overlap), 50);
	assert_int_equal(RVM_OFFSET_TO_LENGTH(s.trans_overlap), 600);
	assert_int_equal(s.n_trans_coalesced, 3);
	assert_true(RVM_OFFSET_TO_LENGTH(s.log_written) > 300);
	/* Lengths of 1, 50, 100 and, four times, 200. */
	assert_int_equal(s.range_lengths[1], 1);
	assert_int_equal(s.range_lengths[5], 1);
	assert_int_equal(s.range_lengths[6], 1);
	assert_int_equal(s.range_lengths[7], 4);
	assert_int_equal(sum(s.range_lengths, range_lengths_len), 7);
	/* Sums only (rvm_statistics.h). */
	assert_int_equal(s.n_range_elim + s.n_trans_elim, 0);
	assert_int_equal(sum(s.range_elims, range_elims_len), 0);
	assert_int_equal(sum(s.tot_trans_coalesces, trans_coalesces_len), 0);
}

TEST(long_ranges_have_the_last_place, struct rvm_rig *rig)
{
	rvm_statistics_t s;

	rvm_rig_put(rig, 0, 4096, 1, flush);
	rvm_rig_put(rig, 0, 4097, 1, flush);
	s = told();
	assert_int_equal(s.range_lengths[11], 1);
	assert_int_equal(s.range_lengths[12], 1);
}

/* n_ counts since the last truncation, tot_ since the log was opened. */
TEST(truncations_begin_another_epoch, struct rvm_rig *rig)
{
	rvm_statistics_t s;

	rvm_rig_put(rig, 0, 8, 1, flush);
	assert_rvm(rvm_truncate());
	rvm_rig_put(rig, 0, 8, 1, flush);
	rvm_rig_put(rig, 0, 8, 1, flush);
	assert_rvm(rvm_flush());
	s = told();
	assert_int_equal(s.n_flush_commit, 2);
	assert_int_equal(s.tot_flush_commit, 3);
	assert_int_equal(s.tot_rvm_flush, 1);
	assert_int_equal(s.range_lengths[2], 2);
	assert_int_equal(s.tot_range_lengths[2], 3);
	assert_int_equal(s.tot_rvm_truncate, 1);
	assert_int_equal(sum(s.tot_truncation_times, truncation_times_len), 1);
	assert_int_equal(sum(s.tot_tree_build_times, truncation_times_len), 1);
	assert_int_equal(sum(s.tot_tree_apply_times, truncation_times_len), 1);
	assert_true(s.tot_truncation_time.tv_sec || s.tot_truncation_time.tv_usec);
	assert_true(sum(s.tot_flush_times, flush_times_len) >= 1);
	assert_true(RVM_OFFSET_GTR(s.tot_log_written, s.log_written));
	/* Another log begins anew. */
	rvm_rig_open(rig, 0);
	s = told();
	assert_int_equal(s.tot_flush_commit, 0);
	assert_int_equal(s.tot_rvm_truncate, 0);
	assert_int_equal(s.tot_rvm_flush, 0);
}

TEST_WITH(bad_records_are_refused, rvm_rig_setup, rvm_rig_teardown)
{
	rvm_statistics_t s = { 0 };

	assert_int_equal(RVM_STATISTICS(&s), RVM_ESTATISTICS);
	assert_int_equal(RVM_STATISTICS(NULL), RVM_ESTATISTICS);
	assert_int_equal(rvm_print_statistics(&s, stdout), RVM_ESTATISTICS);
	assert_int_equal(rvm_print_statistics(NULL, stdout), RVM_ESTATISTICS);
	rvm_init_statistics(&s);
	assert_int_equal(rvm_statistics("RVM Statistics Version 1.0", &s), RVM_ESTAT_VERSION_SKEW);
	assert_int_equal(rvm_statistics(NULL, &s), RVM_ESTAT_VERSION_SKEW);
	assert_rvm(rvm_statistics("RVM Statistics Version 1.1 8 Dec 1992", &s));
	assert_int_equal(rvm_print_statistics(&s, NULL), RVM_EIO);
}

TEST_WITH(a_record_is_printed, NULL, NULL)
{
	char text[8192] = { 0 };
	FILE *stream = fmemopen(text, sizeof(text), "w"), *full = fopen("/dev/full", "w");
	rvm_statistics_t s;

	rvm_init_statistics(&s);
	s.n_flush_commit = 4711;
	s.tot_flush_commit = 47110;
	s.tot_range_lengths[12] = 815;
	assert_rvm(rvm_print_statistics(&s, stream));
	fclose(stream);
	assert_non_null(
		strstr(text,
	               "commits with flush                               4711            47110\n"));
	assert_non_null(strstr(text, " 815\n"));
	setvbuf(full, NULL, _IONBF, 0);
	assert_int_equal(rvm_print_statistics(&s, full), RVM_EIO);
	fclose(full);
}
