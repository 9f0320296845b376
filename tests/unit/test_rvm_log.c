/*
 * test_rvm_log.c - the log of librvm-perseas: how it is named, created, opened and closed, what
 * options are taken, and what rvm_query tells.
 */
#include "rvm_rig.h"

struct unit_fixture unit_fixture = { rvm_rig_setup_bare, rvm_rig_teardown };

static rvm_return_t open_named(const char *name)
{
	rvm_options_t options;

	ps_rvm_reset();
	rvm_init_options(&options);
	options.log_dev = (char *)(uintptr_t)name;
	return RVM_INIT(&options);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* --- rvm_initialize and rvm_terminate --- */

TEST(nothing_works_before_and_after, struct rvm_rig *rig)
{
	rvm_options_t options = rvm_rig_options(rig);
	rvm_region_t region = rvm_rig_part(rig, 0, 0, NULL);
	rvm_statistics_t statistics;
	rvm_offset_t length = RVM_LENGTH_TO_OFFSET(0);
	rvm_tid_t tid;

	rvm_init_tid(&tid);
	rvm_init_statistics(&statistics);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(rvm_terminate(), RVM_EINIT);
		assert_int_equal(rvm_set_options(&options), RVM_EINIT);
		assert_int_equal(rvm_query(&options, NULL), RVM_EINIT);
		assert_int_equal(rvm_create_log(&options, &length, 0600), RVM_EINIT);
		assert_int_equal(rvm_map(&region, NULL), RVM_EINIT);
		assert_int_equal(rvm_unmap(&region), RVM_EINIT);
		assert_int_equal(rvm_begin_transaction(&tid, restore), RVM_EINIT);
		assert_int_equal(rvm_set_range(&tid, region.vmaddr, 1), RVM_EINIT);
		assert_int_equal(rvm_modify_bytes(&tid, region.vmaddr, "x", 1), RVM_EINIT);
		assert_int_equal(rvm_end_transaction(&tid, flush), RVM_EINIT);
		assert_int_equal(rvm_abort_transaction(&tid), RVM_EINIT);
		assert_int_equal(rvm_flush(), RVM_EINIT);
		assert_int_equal(rvm_truncate(), RVM_EINIT);
		assert_int_equal(RVM_STATISTICS(&statistics), RVM_EINIT);
		if (!i) {
			options.create_log_file = rvm_true;
			assert_rvm(RVM_INIT(&options));
			/* Again, it is not looked at. */
			assert_rvm(RVM_INIT(NULL));
			assert_rvm(rvm_terminate());
		}
	}
	assert_int_equal(RVM_INIT(&options), RVM_EINIT);
}

TEST(versions_must_match)
{
	assert_int_equal(rvm_initialize("RVM Interface Version 1.2", NULL), RVM_EVERSION_SKEW);
	assert_int_equal(rvm_initialize(NULL, NULL), RVM_EVERSION_SKEW);
	/* That of other headers of this version. */
	assert_rvm(rvm_initialize("RVM Interface Version 1.3  7 Mar 1994", NULL));
}

/* Without a log, everything that needs one says so, and one can be named later. */
TEST(a_log_may_be_named_later, struct rvm_rig *rig)
{
	rvm_options_t options = rvm_rig_options(rig), other = options;
	rvm_offset_t length = RVM_LENGTH_TO_OFFSET(4096);
	rvm_statistics_t statistics;
	rvm_tid_t tid;

	rvm_init_tid(&tid);
	rvm_init_statistics(&statistics);
	assert_rvm(RVM_INIT(NULL));
	rig->region = rvm_rig_part(rig, 0, 0, NULL);
	assert_int_equal(rvm_map(&rig->region, NULL), RVM_ELOG);
	assert_int_equal(rvm_begin_transaction(&tid, restore), RVM_ELOG);
	assert_int_equal(rvm_flush(), RVM_ELOG);
	assert_int_equal(rvm_truncate(), RVM_ELOG);
	assert_int_equal(RVM_STATISTICS(&statistics), RVM_ELOG);
	/* The log does not exist yet. */
	assert_int_equal(rvm_set_options(&options), RVM_ELOG);
	assert_rvm(rvm_create_log(&options, &length, 0644));
	assert_rvm_eio(rvm_create_log(&options, &length, 0644), EEXIST);
	assert_rvm(rvm_map(&rig->region, &options));
	/* The same log may be named again, and no other one. */
	assert_rvm(rvm_set_options(&options));
	other.log_dev = (char *)"perseas:other@localhost";
	assert_int_equal(rvm_set_options(&other), RVM_ELOG);
	rvm_rig_put(rig, 0, 8, 1, flush);
	assert_rvm(rvm_terminate());
}

TEST_WITH(open_transactions_keep_it_open, rvm_rig_setup, rvm_rig_teardown, struct rvm_rig *rig)
{
	rvm_tid_t tid;

	rvm_rig_map(rig);
	tid = rvm_rig_change(rig, 0, 1, 1);
	assert_int_equal(rvm_terminate(), RVM_EUNCOMMIT);
	assert_rvm(rvm_end_transaction(&tid, no_flush));
	assert_rvm(rvm_terminate());
	rvm_rig_open_mapped(rig, 0);
	assert_int_equal(rig->region.vmaddr[0], 1);
}

/* --- names --- */

TEST_WITH(a_log_is_a_store_and_its_mirrors, rvm_rig_setup, rvm_rig_teardown, struct rvm_rig *rig)
{
	static const char *const wrong[] = { "/nonexistent", "perseas:",
		                             "perseas:rvm",  "perseas:@localhost",
		                             "perseas:rvm@", "perseas:.bad@localhost" };
	char name[800], path[200];

	snprintf(path, sizeof(path), "%s/log", rig->place.folder);
	write_file(path, "# where the mirrors are\n\n");
	assert_int_equal(open_named(path), RVM_ELOG);
	assert_non_null(strstr(rvm_message(), "names no log"));
	snprintf(name, sizeof(name), "# where the mirrors are\n\n  \t%s \r\nwhat else\n", rig->log);
	write_file(path, name);
	assert_rvm(open_named(path));
	assert_string_equal(ps_rvm.log_name, path);
	snprintf(name, sizeof(name), "perseas:rvm@%s,%s", rig->place.local, rig->place.local);
	assert_int_equal(open_named(name), RVM_ELOG);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (open_named(wrong[i]) != RVM_ELOG)
			fail_msg("%s: %s", wrong[i], rvm_message());
	snprintf(name, sizeof(name), "perseas:none@%s", rig->place.local);
	assert_int_equal(open_named(name), RVM_ELOG);
	assert_non_null(strstr(rvm_message(), "PERSEAS_ENOSTORE"));
	/* The library is not initialized then, and can be. */
	assert_int_equal(rvm_flush(), RVM_EINIT);
	assert_rvm(open_named(rig->log));
}

TEST(long_names_are_refused)
{
	static char name[MAXPATHLEN + 100];

	memset(name, 'x', sizeof(name) - 1);
	assert_int_equal(open_named(name), RVM_ENAME_TOO_LONG);
	memcpy(name, "perseas:", 8);
	assert_int_equal(open_named(name), RVM_ENAME_TOO_LONG);
	name[200] = '\0';
	name[199] = 'h';
	name[198] = '@';
	assert_int_equal(open_named(name), RVM_ENAME_TOO_LONG);
}

TEST(bad_logs_are_not_created, struct rvm_rig *rig)
{
	rvm_options_t options = rvm_rig_options(rig), none = { 0 };
	rvm_offset_t length = RVM_MK_OFFSET(1, 0), large = RVM_LENGTH_TO_OFFSET(65ul << 30);

	assert_rvm(RVM_INIT(NULL));
	assert_int_equal(rvm_create_log(NULL, &length, 0), RVM_EOPTIONS);
	assert_int_equal(rvm_create_log(&none, &length, 0), RVM_EOPTIONS);
	assert_int_equal(rvm_create_log(&options, &length, 0), RVM_EOFFSET);
	assert_int_equal(rvm_create_log(&options, NULL, 0), RVM_EOFFSET);
	assert_int_equal(rvm_create_log(&options, &large, 0), RVM_EOFFSET);
	length = RVM_LENGTH_TO_OFFSET(0);
	options.log_dev = NULL;
	assert_int_equal(rvm_create_log(&options, &length, 0), RVM_ELOG);
	options.log_dev = (char *)"perseas:a/b@localhost:1";
	assert_int_equal(rvm_create_log(&options, &length, 0), RVM_ELOG);
	options.log_dev = (char *)"perseas:ab@127.0.0.1:1";
	assert_rvm_eio(rvm_create_log(&options, &length, 0), EHOSTUNREACH);
	options = rvm_rig_options(rig);
	options.create_log_file = rvm_true;
	assert_rvm(rvm_set_options(&options));
	ps_rvm_reset();
	/* An existing log is not taken for a new one. */
	assert_rvm_eio(RVM_INIT(&options), EEXIST);
}

/* --- options --- */

TEST_WITH(options_are_checked_and_told, rvm_rig_setup, rvm_rig_teardown, struct rvm_rig *rig)
{
	rvm_options_t options, got;
	char name[MAXPATHLEN + 1];

	memset(&options, 0, sizeof(options));
	assert_int_equal(rvm_set_options(&options), RVM_EOPTIONS);
	assert_int_equal(rvm_set_options(NULL), RVM_EOPTIONS);
	assert_int_equal(rvm_query(&options, NULL), RVM_EOPTIONS);
	assert_int_equal(rvm_query(NULL, NULL), RVM_EOPTIONS);
	rvm_init_options(&options);
	options.truncate = 101;
	assert_int_equal(rvm_set_options(&options), RVM_EOPTIONS);
	options.truncate = -1;
	assert_int_equal(rvm_set_options(&options), RVM_EOPTIONS);
	options.truncate = 30;
	options.pager = name;
	assert_int_equal(rvm_set_options(&options), RVM_EPAGER);
	options.pager = NULL;
	options.recovery_buf_len = 1;
	options.max_read_len = 12345;
	options.flags = RVM_ALL_OPTIMIZATIONS | RVM_MAP_PRIVATE;
	assert_rvm(rvm_set_options(&options));
	rvm_init_options(&got);
	got.log_dev = name;
	assert_rvm(rvm_query(&got, NULL));
	assert_string_equal(name, rig->log);
	assert_int_equal(got.truncate, 30);
	assert_int_equal(got.recovery_buf_len, MIN_RECOVERY_BUF_LEN);
	assert_int_equal(got.flush_buf_len, FLUSH_BUF_LEN);
	assert_int_equal(got.max_read_len, 12345);
	assert_int_equal(got.log_empty, rvm_true);
	/* The others came too late. */
	assert_int_equal(got.flags, RVM_COALESCE_RANGES);
	rvm_rig_open(rig, RVM_ALL_OPTIMIZATIONS);
	assert_rvm(rvm_query(&got, NULL));
	assert_int_equal(got.flags, RVM_ALL_OPTIMIZATIONS);
	options.flags = RVM_COALESCE_RANGES;
	assert_rvm(rvm_set_options(&options));
	assert_rvm(rvm_query(&got, NULL));
	assert_int_equal(got.flags, RVM_COALESCE_RANGES);
}

TEST_WITH(open_transactions_are_told, rvm_rig_setup, rvm_rig_teardown, struct rvm_rig *rig)
{
	rvm_region_t one = rvm_rig_map_part(rig, 0, RVM_PAGE, NULL), bad = { 0 };
	rvm_region_t two = rvm_rig_map_part(rig, RVM_PAGE, RVM_PAGE, NULL);
	rvm_options_t *got = rvm_malloc_options();
	rvm_tid_t tids[20];

	for (unsigned i = 0; i < 20; i++) {
		tids[i] = rvm_rig_begin();
		if (i % 2)
			assert_rvm(rvm_set_range(&tids[i], one.vmaddr + i, 1));
	}
	assert_rvm(rvm_set_range(&tids[7], two.vmaddr, 1));
	assert_rvm(rvm_query(got, NULL));
	assert_int_equal(got->n_uncommit, 20);
	assert_rvm(rvm_query(got, &one));
	assert_int_equal(got->n_uncommit, 10);
	assert_rvm(rvm_query(got, &two));
	assert_int_equal(got->n_uncommit, 1);
	assert_int_equal(got->tid_array[0].uname.tv_usec, tids[7].uname.tv_usec);
	/* The query returns the transaction. */
	assert_rvm(rvm_abort_transaction(&got->tid_array[0]));
	assert_rvm(rvm_query(got, &two));
	assert_int_equal(got->n_uncommit, 0);
	two.length *= 2;
	assert_int_equal(rvm_query(got, &two), RVM_ENOT_MAPPED);
	assert_int_equal(rvm_query(got, &bad), RVM_EREGION);
	for (unsigned i = 0; i < 20; i++)
		if (i != 7)
			assert_rvm(rvm_abort_transaction(&tids[i]));
	rvm_free_options(got);
}

/* Another owner took over the store, so the log has ended here. */
TEST_WITH(a_store_that_is_taken_over_is_terminated, rvm_rig_setup, rvm_rig_teardown,
          struct rvm_rig *rig)
{
	struct perseas_options options = patient_options();
	rvm_tid_t tid;
	perseas_t *p;
	bool unknown;

	rvm_rig_map(rig);
	tid = rvm_rig_change(rig, 0, 1, 1);
	options.flags = PERSEAS_TAKEOVER;
	assert_int_equal(perseas_open("rvm", rig->place.local, &options, &p), 0);
	assert_int_equal(rvm_end_transaction(&tid, flush), RVM_ETERMINATED);
	assert_null(tid.tid);
	assert_int_equal(rvm_begin_transaction(&tid, restore), RVM_ETERMINATED);
	assert_int_equal(rvm_truncate(), RVM_ETERMINATED);
	/* If the transaction was sent before the owner saw the fence, its outcome is unknown. */
	unknown = perseas_flush(ps_rvm.store) == PERSEAS_EFENCED;
	assert_int_equal(rvm_terminate(), unknown ? RVM_ETERMINATED : RVM_SUCCESS);
	assert_int_equal(rvm_terminate(), RVM_EINIT);
	perseas_close(p);
}
