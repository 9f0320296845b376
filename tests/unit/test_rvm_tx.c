/*
 * test_rvm_tx.c - transactions of librvm-perseas: what is declared, committed and aborted, with
 * each mode, and what records and arguments are refused.
 */
#include "rvm_rig.h"

struct unit_fixture unit_fixture = { rvm_rig_setup_mapped, rvm_rig_teardown };

enum { THREADS = 2, ROUNDS = 500, CELL = 2 * RVM_PAGE };

TEST(commits_survive_their_process, struct rvm_rig *rig)
{
	rvm_rig_put(rig, 100, 8, 1, flush);
	rvm_rig_put(rig, 104, 8, 2, no_flush);
	assert_rvm(rvm_flush());
	rvm_rig_open_mapped(rig, 0);
	assert_int_equal(rig->region.vmaddr[100], 1);
	assert_int_equal(rig->region.vmaddr[104], 2);
	assert_int_equal(rig->region.vmaddr[111], 2);
	assert_int_equal((uint8_t)rig->region.vmaddr[112], rvm_first(112));
}

/* The two begin modes differ in what the program promises; both restore. */
TEST(aborts_restore_what_was_declared, struct rvm_rig *rig)
{
	uint8_t before[RVM_FILE];
	const rvm_mode_t modes[] = { restore, no_restore };
	rvm_tid_t tid;

	memcpy(before, rig->region.vmaddr, RVM_FILE);
	for (unsigned i = 0; i < 2; i++) {
		rvm_init_tid(&tid);
		assert_rvm(rvm_begin_transaction(&tid, modes[i]));
		assert_rvm(rvm_set_range(&tid, rig->region.vmaddr, 10));
		assert_rvm(rvm_set_range(&tid, rig->region.vmaddr + 5, RVM_PAGE));
		memset(rig->region.vmaddr, 0xff, RVM_PAGE + 5);
		assert_rvm(rvm_abort_transaction(&tid));
		assert_null(tid.tid);
		assert_memory_equal(rig->region.vmaddr, before, RVM_FILE);
	}
}

TEST(modified_bytes_are_declared_and_set, struct rvm_rig *rig)
{
	char *at;
	rvm_tid_t tid;

	at = rig->region.vmaddr;
	rvm_init_tid(&tid);
	assert_rvm(rvm_begin_transaction(&tid, no_restore));
	assert_rvm(rvm_modify_bytes(&tid, at + 10, "hello", 5));
	/* Source and target may overlap. */
	assert_rvm(rvm_modify_bytes(&tid, at + 11, at + 10, 5));
	assert_memory_equal(at + 10, "hhello", 6);
	assert_int_equal(rvm_modify_bytes(&tid, at, NULL, 1), RVM_ESRC);
	assert_rvm(rvm_modify_bytes(&tid, at, NULL, 0));
	assert_int_equal(rvm_modify_bytes(&tid, at + RVM_FILE - 1, "xx", 2), RVM_ENOT_MAPPED);
	assert_rvm(rvm_end_transaction(&tid, flush));
	rvm_rig_open_mapped(rig, 0);
	assert_memory_equal(rig->region.vmaddr + 10, "hhello", 6);
}

TEST_WITH(ranges_are_inside_of_one_region, rvm_rig_setup, rvm_rig_teardown, struct rvm_rig *rig)
{
	rvm_region_t one = rvm_rig_map_part(rig, 0, RVM_PAGE, (void *)0x5b0000000000);
	rvm_region_t two = rvm_rig_map_part(rig, RVM_PAGE, RVM_PAGE, (void *)0x5b0000001000);
	char outside[8];
	rvm_tid_t tid = rvm_rig_begin();

	assert_int_equal(rvm_set_range(&tid, outside, 8), RVM_ENOT_MAPPED);
	assert_int_equal(rvm_set_range(&tid, NULL, 8), RVM_ENOT_MAPPED);
	assert_int_equal(rvm_set_range(&tid, one.vmaddr + 4092, 8), RVM_ENOT_MAPPED);
	assert_int_equal(rvm_set_range(&tid, two.vmaddr + 4092, 5), RVM_ENOT_MAPPED);
	assert_int_equal(rvm_set_range(&tid, two.vmaddr, ~0ul), RVM_ENOT_MAPPED);
	/* The table of segments is no region. */
	assert_int_equal(rvm_set_range(&tid, ps_rvm.table, 8), RVM_ENOT_MAPPED);
	assert_rvm(rvm_set_range(&tid, one.vmaddr + 4092, 4));
	assert_rvm(rvm_set_range(&tid, two.vmaddr + 4092, 4));
	assert_rvm(rvm_set_range(&tid, outside, 0));
	assert_rvm(rvm_end_transaction(&tid, flush));
}

/* A range that is too large leaves the transaction as it was. */
TEST_WITH(too_much_is_refused, rvm_rig_setup, rvm_rig_teardown, struct rvm_rig *rig)
{
	rvm_region_t large;
	rvm_tid_t tid;
	char path[160];

	snprintf(path, sizeof(path), "%s.large", rig->data);
	assert_int_equal(close(open(path, O_CREAT | O_RDWR, 0600)), 0);
	assert_int_equal(truncate(path, 64 << 20), 0);
	large = rvm_rig_part(rig, 0, 0, NULL);
	large.data_dev = path;
	assert_rvm(rvm_map(&large, NULL));
	tid = rvm_rig_begin();
	assert_rvm(rvm_set_range(&tid, large.vmaddr, 100));
	assert_int_equal(rvm_set_range(&tid, large.vmaddr, large.length), RVM_ETOO_BIG);
	large.vmaddr[0] = 1;
	assert_rvm(rvm_end_transaction(&tid, flush));
}

/* A record is what it says it is, and its transaction is open. */
TEST(bad_records_are_refused, struct rvm_rig *rig)
{
	rvm_tid_t tid, copy, wild;

	memset(&tid, 0, sizeof(tid));
	assert_int_equal(rvm_begin_transaction(&tid, restore), RVM_ETID);
	assert_int_equal(rvm_begin_transaction(NULL, restore), RVM_ETID);
	rvm_init_tid(&tid);
	assert_int_equal(rvm_begin_transaction(&tid, flush), RVM_EMODE);
	assert_int_equal(rvm_begin_transaction(&tid, (rvm_mode_t)0), RVM_EMODE);
	assert_int_equal(rvm_set_range(&tid, rig->region.vmaddr, 1), RVM_ETID);
	assert_int_equal(rvm_set_range(NULL, rig->region.vmaddr, 1), RVM_ETID);
	assert_int_equal(rvm_modify_bytes(&tid, rig->region.vmaddr, "x", 1), RVM_ETID);
	assert_int_equal(rvm_abort_transaction(&tid), RVM_ETID);
	assert_int_equal(rvm_end_transaction(&tid, flush), RVM_ETID);
	assert_rvm(rvm_begin_transaction(&tid, restore));
	assert_int_equal(rvm_begin_transaction(&tid, restore), RVM_ETID);
	assert_int_equal(rvm_end_transaction(&tid, restore), RVM_EMODE);
	/* A copy names the same one, until that has ended; also when its place is used again. */
	copy = tid;
	wild = tid;
	wild.reserved += 1;
	assert_int_equal(rvm_set_range(&wild, rig->region.vmaddr, 1), RVM_ETID);
	wild = tid;
	wild.tid = &wild;
	assert_int_equal(rvm_set_range(&wild, rig->region.vmaddr, 1), RVM_ETID);
	assert_rvm(rvm_set_range(&copy, rig->region.vmaddr, 1));
	assert_rvm(rvm_end_transaction(&copy, flush));
	assert_int_equal(rvm_end_transaction(&tid, flush), RVM_ETID);
	wild = rvm_rig_begin();
	assert_ptr_equal(wild.tid, tid.tid);
	assert_int_equal(rvm_abort_transaction(&tid), RVM_ETID);
	assert_rvm(rvm_abort_transaction(&wild));
	/* A record can be used again. */
	assert_rvm(rvm_begin_transaction(&wild, restore));
	assert_rvm(rvm_abort_transaction(&wild));
	/* The first place is free, and nothing names what is free. */
	wild.tid = ps_rvm_slot_at(0);
	wild.reserved = 0;
	assert_int_equal(rvm_abort_transaction(&wild), RVM_ETID);
	assert_non_null(strstr(rvm_message(), "names no transaction that is open"));
}

/* Two records that had the same place the last time get two. */
TEST(records_have_places_of_their_own, struct rvm_rig *rig)
{
	rvm_tid_t one, two;

	one = rvm_rig_begin();
	assert_rvm(rvm_abort_transaction(&one));
	two = one;
	assert_rvm(rvm_begin_transaction(&one, restore));
	assert_rvm(rvm_begin_transaction(&two, restore));
	assert_ptr_not_equal(one.tid, two.tid);
	assert_rvm(rvm_modify_bytes(&one, rig->region.vmaddr, "a", 1));
	assert_rvm(rvm_modify_bytes(&two, rig->region.vmaddr + 1, "b", 1));
	assert_rvm(rvm_abort_transaction(&one));
	assert_rvm(rvm_end_transaction(&two, flush));
	assert_int_equal((uint8_t)rig->region.vmaddr[0], rvm_first(0));
	assert_int_equal(rig->region.vmaddr[1], 'b');
}

TEST_WITH(names_are_unique_and_keep_the_heap, rvm_rig_setup, rvm_rig_teardown)
{
	rvm_tid_t *tids[100];

	for (unsigned i = 0; i < 100; i++) {
		tids[i] = rvm_malloc_tid();
		assert_rvm(rvm_begin_transaction(tids[i], restore));
		assert_int_equal(tids[i]->from_heap, rvm_true);
		assert_true(!i || timercmp(&tids[i - 1]->uname, &tids[i]->uname, <));
	}
	for (unsigned i = 0; i < 100; i++) {
		assert_rvm(i % 2 ? rvm_abort_transaction(tids[i])
		                 : rvm_end_transaction(tids[i], no_flush));
		rvm_free_tid(tids[i]);
	}
}

/* A process that is killed while transactions are held back. */
static void flush_and_die(struct rvm_rig *rig)
{
	rvm_options_t options = rvm_rig_options(rig);

	options.flags = RVM_ALL_OPTIMIZATIONS;
	options.create_log_file = rvm_true;
	assert_rvm(RVM_INIT(&options));
	rvm_rig_hold();
	rvm_rig_map(rig);
	rvm_rig_put(rig, 0, 4, 1, no_flush);
	rvm_rig_put(rig, 8, 4, 1, no_flush);
	assert_rvm(rvm_flush());
	rvm_rig_put(rig, 0, 4, 2, no_flush);
	rvm_rig_put(rig, 8, 4, 2, no_flush);
	kill(getpid(), SIGKILL);
}

TEST_WITH(what_was_not_flushed_is_lost_whole, rvm_rig_setup_bare, rvm_rig_teardown,
          struct rvm_rig *rig)
{
	const pid_t child = fork();

	if (!child)
		flush_and_die(rig);
	waitpid(child, NULL, 0);
	rvm_rig_open_mapped(rig, 0);
	assert_int_equal(rig->region.vmaddr[0], 1);
	assert_int_equal(rig->region.vmaddr[8], 1);
}

/* A commit with flush sends the earlier ones as well; after the option is off, nothing is held
 * back. */
TEST_WITH(what_is_held_back_is_sent, rvm_rig_setup, rvm_rig_teardown, struct rvm_rig *rig)
{
	rvm_options_t options = rvm_rig_options(rig);
	struct perseas_stat stat;

	rvm_rig_open(rig, RVM_ALL_OPTIMIZATIONS);
	rvm_rig_hold();
	rvm_rig_map(rig);
	for (unsigned i = 0; i < 5; i++)
		rvm_rig_put(rig, 0, 4, 2, no_flush);
	perseas_stat(ps_rvm.store, &stat);
	assert_int_equal(stat.gathered, 5);
	assert_int_equal(stat.groups, 0);
	rvm_rig_put(rig, 8, 4, 2, flush);
	perseas_stat(ps_rvm.store, &stat);
	assert_int_equal(stat.groups, 1);
	options.flags = 0;
	assert_rvm(rvm_set_options(&options));
	rvm_rig_put(rig, 0, 4, 3, no_flush);
	perseas_stat(ps_rvm.store, &stat);
	assert_int_equal(stat.groups, 2);
	options.flags = RVM_COALESCE_TRANS;
	assert_rvm(rvm_set_options(&options));
	rvm_rig_put(rig, 0, 4, 3, no_flush);
	perseas_stat(ps_rvm.store, &stat);
	assert_int_equal(stat.groups, 2);
}

struct worker {
	pthread_t thread;
	char *cell;
	unsigned commits;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	rvm_tid_t tid;

	rvm_init_tid(&tid);
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_rvm(rvm_begin_transaction(&tid, i % 3 ? restore : no_restore));
		for (unsigned j = 0; j < 4; j++)
			assert_rvm(rvm_modify_bytes(&tid, w->cell + j * 1000, &i, sizeof(i)));
		if (i % 5 == 4) {
			assert_rvm(rvm_abort_transaction(&tid));
			continue;
		}
		assert_rvm(rvm_end_transaction(&tid, i % 2 ? no_flush : flush));
		w->commits = i;
	}
	return NULL;
}

TEST(threads_have_transactions_of_their_own, struct rvm_rig *rig)
{
	struct worker workers[THREADS] = { 0 };

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].cell = rig->region.vmaddr + (size_t)i * CELL;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	assert_rvm(rvm_flush());
	rvm_rig_open_mapped(rig, 0);
	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned j = 0; j < 4; j++) {
			unsigned got;

			memcpy(&got, rig->region.vmaddr + (size_t)i * CELL + j * 1000, sizeof(got));
			assert_int_equal(got, workers[i].commits);
		}
}

/* Mirrors that are away: a commit is in doubt, and says what to do. */
TEST_WITH(doubt_is_told, rvm_rig_setup, rvm_rig_teardown, struct rvm_rig *rig)
{
	rvm_tid_t tid, other;

	snprintf(rig->log, sizeof(rig->log), "perseas:rvm@%s", rig->place.tcp);
	rvm_rig_open_mapped(rig, 0);
	tid = rvm_rig_change(rig, 0, 4, 1);
	other = rvm_rig_change(rig, 8, 4, 1);
	assert_int_equal(kill(rig->place.daemon, SIGSTOP), 0);
	assert_rvm_eio(rvm_end_transaction(&tid, flush), ETIMEDOUT);
	assert_null(tid.tid);
	assert_non_null(strstr(rvm_message(), "PERSEAS_EINDOUBT"));
	assert_rvm_eio(rvm_end_transaction(&other, flush), EAGAIN);
	assert_non_null(other.tid);
	rvm_init_tid(&tid);
	assert_int_equal(rvm_begin_transaction(&tid, restore), RVM_EIO);
	assert_int_equal(kill(rig->place.daemon, SIGCONT), 0);
	while (rvm_flush() != RVM_SUCCESS)
		assert_int_equal(errno, ETIMEDOUT);
	assert_rvm(rvm_end_transaction(&other, flush));
}
