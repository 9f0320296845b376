/*
 * test_rvm_records.c - what librvm-perseas does without a store: names of codes, offsets, pages,
 * and the records that programs pass.
 */
#include "rvm_rig.h"

TEST(codes_have_their_names)
{
	assert_string_equal(rvm_return(RVM_SUCCESS), "RVM_SUCCESS");
	assert_string_equal(rvm_return(200), "RVM_EINIT");
	assert_string_equal(rvm_return(202), "RVM_EIO");
	assert_string_equal(rvm_return(204), "RVM_ELOG");
	assert_string_equal(rvm_return(214), "RVM_ERANGE");
	assert_string_equal(rvm_return(222), "RVM_ETID");
	assert_string_equal(rvm_return(226), "RVM_EVM_OVERLAP");
	for (rvm_return_t code = rvm_first_code + 1; code < rvm_last_code; code++)
		assert_true(code == 203 || !strncmp(rvm_return(code), "RVM_E", 5));
	assert_string_equal(rvm_return(203), "no code of RVM's");
	assert_string_equal(rvm_return(199), "no code of RVM's");
	assert_string_equal(rvm_return(-1), "no code of RVM's");
}

TEST(modes_and_types_have_theirs)
{
	assert_int_equal(restore, 140);
	assert_int_equal(no_flush, 143);
	assert_string_equal(rvm_mode(restore), "restore");
	assert_string_equal(rvm_mode(no_restore), "no_restore");
	assert_string_equal(rvm_mode(flush), "flush");
	assert_string_equal(rvm_mode(no_flush), "no_flush");
	assert_string_equal(rvm_mode(rvm_last_mode), "no mode of RVM's");
	assert_string_equal(rvm_mode((rvm_mode_t)7), "no mode of RVM's");
	assert_int_equal(rvm_region_id, 40);
	assert_string_equal(rvm_type(rvm_region_id), "rvm_region_t");
	assert_string_equal(rvm_type(rvm_options_id), "rvm_options_t");
	assert_string_equal(rvm_type(rvm_tid_id), "rvm_tid_t");
	assert_string_equal(rvm_type(rvm_statistics_id), "rvm_statistics_t");
	assert_string_equal(rvm_type(rvm_first_struct_id), "no type of RVM's");
}

TEST(offsets_carry_and_borrow)
{
	rvm_offset_t a = RVM_MK_OFFSET(1, ~0ul), b = RVM_OFFSET_INITIALIZER(2, 3), c;

	c = RVM_ADD_OFFSETS(a, b);
	assert_true(c.high == 4 && c.low == 2);
	c = RVM_SUB_OFFSETS(c, b);
	assert_true(RVM_OFFSET_EQL(c, a));
	c = RVM_ADD_LENGTH_TO_OFFSET(a, 1);
	assert_true(RVM_OFFSET_HIGH_BITS_TO_LENGTH(c) == 2 && RVM_OFFSET_TO_LENGTH(c) == 0);
	c = RVM_SUB_LENGTH_FROM_OFFSET(c, 1);
	assert_true(RVM_OFFSET_EQL(c, a));
	assert_true(RVM_OFFSET_LSS(a, b) && RVM_OFFSET_LEQ(a, b) && !RVM_OFFSET_GTR(a, b));
	assert_true(RVM_OFFSET_GTR(b, a) && RVM_OFFSET_GEQ(b, a) && !RVM_OFFSET_LSS(b, a));
	assert_true(RVM_OFFSET_LEQ(a, a) && RVM_OFFSET_GEQ(a, a));
	c = RVM_LENGTH_TO_OFFSET(5);
	assert_true(RVM_OFFSET_LSS(c, a) && !RVM_OFFSET_EQL_ZERO(c));
	RVM_ZERO_OFFSET(c);
	assert_true(RVM_OFFSET_EQL_ZERO(c));
	assert_ptr_equal(RVM_ADD_LENGTH_TO_ADDR(5, (char *)10), (char *)15);
	assert_ptr_equal(RVM_SUB_LENGTH_FROM_ADDR((char *)10, 5), (char *)5);
}

TEST(pages_are_the_systems)
{
	const rvm_length_t page = (rvm_length_t)sysconf(_SC_PAGESIZE);
	rvm_offset_t offset = RVM_MK_OFFSET(0, ~0ul), up;

	assert_int_equal(RVM_PAGE_SIZE, page);
	assert_int_equal(rvm_page_mask(), -page);
	assert_int_equal(RVM_ROUND_LENGTH_UP_TO_PAGE_SIZE(1), page);
	assert_int_equal(RVM_ROUND_LENGTH_UP_TO_PAGE_SIZE(page), page);
	assert_int_equal(RVM_ROUND_LENGTH_DOWN_TO_PAGE_SIZE(2 * page - 1), page);
	assert_ptr_equal(RVM_ROUND_ADDR_UP_TO_PAGE_SIZE((char *)page + 1), (char *)(2 * page));
	assert_ptr_equal(RVM_ROUND_ADDR_DOWN_TO_PAGE_SIZE((char *)page + 1), (char *)page);
	up = RVM_ROUND_OFFSET_UP_TO_PAGE_SIZE(offset);
	assert_true(up.high == 1 && up.low == 0);
	up = RVM_ROUND_OFFSET_DOWN_TO_PAGE_SIZE(offset);
	assert_true(up.high == 0 && up.low == -page);
}

TEST(transactions_are_records)
{
	rvm_tid_t *tid = rvm_malloc_tid(), *copy, own = { 0 };

	assert_int_equal(tid->struct_id, rvm_tid_id);
	assert_int_equal(tid->from_heap, rvm_true);
	assert_null(tid->tid);
	assert_null(rvm_copy_tid(&own));
	assert_null(rvm_copy_tid(NULL));
	rvm_init_tid(&own);
	rvm_init_tid(NULL);
	own.uname.tv_sec = 7;
	copy = rvm_copy_tid(&own);
	assert_int_equal(own.from_heap, rvm_false);
	assert_int_equal(copy->from_heap, rvm_true);
	assert_int_equal(copy->uname.tv_sec, 7);
	rvm_free_tid(&own);
	assert_null(rvm_copy_tid(&own));
	rvm_free_tid(copy);
	rvm_free_tid(tid);
	rvm_free_tid(NULL);
}

TEST(options_are_records)
{
	rvm_options_t *options = rvm_malloc_options(), *copy, own = { 0 };
	char name[] = "log";

	assert_int_equal(options->struct_id, rvm_options_id);
	assert_int_equal(options->truncate, TRUNCATE);
	assert_int_equal(options->recovery_buf_len, RECOVERY_BUF_LEN);
	assert_int_equal(options->flush_buf_len, FLUSH_BUF_LEN);
	assert_int_equal(options->max_read_len, MAX_READ_LEN);
	assert_int_equal(options->flags, 0);
	assert_null(options->log_dev);
	assert_null(rvm_copy_options(&own));
	assert_null(rvm_copy_options(NULL));
	options->log_dev = name;
	options->n_uncommit = 2;
	options->tid_array = calloc(2, sizeof(rvm_tid_t));
	options->tid_array[1].uname.tv_sec = 9;
	copy = rvm_copy_options(options);
	rvm_free_options(options);
	/* Its list is its own, and the text is the caller's. */
	assert_int_equal(copy->tid_array[1].uname.tv_sec, 9);
	assert_ptr_equal(copy->log_dev, name);
	copy->n_uncommit = -1;
	assert_null(rvm_copy_options(copy));
	rvm_free_options(copy);
	rvm_init_options(&own);
	assert_int_equal(own.from_heap, rvm_false);
	rvm_free_options(&own);
	assert_null(rvm_copy_options(&own));
	rvm_free_options(NULL);
}

TEST(regions_are_records)
{
	rvm_region_t *region = rvm_malloc_region(), *copy, own = { 0 };
	char name[] = "data";

	assert_int_equal(region->struct_id, rvm_region_id);
	assert_null(region->vmaddr);
	region->data_dev = name;
	region->length = 5;
	assert_null(rvm_copy_region(&own));
	assert_null(rvm_copy_region(NULL));
	copy = rvm_copy_region(region);
	rvm_free_region(region);
	assert_ptr_equal(copy->data_dev, name);
	assert_int_equal(copy->length, 5);
	rvm_free_region(copy);
	rvm_init_region(&own);
	rvm_free_region(&own);
	assert_null(rvm_copy_region(&own));
	rvm_free_region(NULL);
}

TEST(statistics_are_records)
{
	rvm_statistics_t *statistics = rvm_malloc_statistics(), *copy, own = { 0 };

	assert_int_equal(statistics->struct_id, rvm_statistics_id);
	assert_int_equal(statistics->n_abort, 0);
	statistics->n_abort = 3;
	assert_null(rvm_copy_statistics(&own));
	assert_null(rvm_copy_statistics(NULL));
	copy = rvm_copy_statistics(statistics);
	rvm_free_statistics(statistics);
	assert_int_equal(copy->n_abort, 3);
	rvm_free_statistics(copy);
	rvm_init_statistics(&own);
	rvm_free_statistics(&own);
	assert_null(rvm_copy_statistics(&own));
	rvm_free_statistics(NULL);
}
