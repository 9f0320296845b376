/*
 * test_rds_blocks.c - blocks of a recoverable heap: allocated, freed, allocated ahead, joined, with
 * a transaction of the caller's and without; what is refused, and what a heap says that was
 * overwritten.
 */
#include "rds_rig.h"

#include <limits.h>

struct unit_fixture unit_fixture = { rds_rig_setup, rds_rig_teardown };

enum { THREADS = 4, TURNS = 60, HELD = 6 };

/* With NULL each change is committed by itself, in the order of calls; rvm_flush makes it last. */
TEST(blocks_survive_their_process, struct rvm_rig *rig)
{
	char **place, *kept, *gone;
	rvm_tid_t tid;

	place = (char **)rds_rig_open(rig);
	kept = rds_rig_take(100, NULL);
	gone = rds_rig_take(10, NULL);
	assert_int_equal((uintptr_t)kept % 8, 0);
	assert_rds(rds_free(gone, NULL, &err));
	tid = rvm_rig_begin();
	assert_rvm(rvm_modify_bytes(&tid, kept, "kept", 5));
	assert_rvm(rvm_modify_bytes(&tid, place, &kept, sizeof(kept)));
	assert_rvm(rvm_end_transaction(&tid, flush));
	place = (char **)rds_rig_open(rig);
	assert_ptr_equal(*place, kept);
	assert_string_equal(*place, "kept");
	assert_int_equal(rds_rig_check(), 1);
	assert_rds(rds_free(*place, NULL, &err));
	assert_int_equal(rds_rig_check(), 0);
}

/* An abort of the caller's transaction takes back what was allocated and freed. */
TEST(aborts_take_blocks_back)
{
	char before[RDS_HEAP], *kept;
	rvm_tid_t tid;

	kept = rds_rig_take(40, NULL);
	memcpy(before, ps_rds.base, RDS_HEAP);
	tid = rvm_rig_begin();
	for (unsigned i = 0; i < 20; i++)
		rds_rig_take(20 * i, &tid);
	assert_rds(rds_free(kept, &tid, &err));
	assert_rds(rds_prealloc(50, 5, &tid, &err));
	assert_rvm(rvm_abort_transaction(&tid));
	assert_memory_equal(ps_rds.base, before, RDS_HEAP);
	assert_int_equal(rds_rig_check(), 1);
	tid = rvm_rig_begin();
	assert_rds(rds_free(kept, &tid, &err));
	assert_rvm(rvm_end_transaction(&tid, flush));
	assert_int_equal(rds_rig_check(), 0);
}

/* Programs that were written for RDS rely on zeros in the first 16 bytes of a block. Blocks of
 * every length that was free before, with the links of its list there, begin with zeros here and on
 * the mirror. */
TEST(blocks_begin_with_zeros, struct rvm_rig *rig)
{
	static const char zeros[2 * sizeof(uint64_t)], noise[300] = { [0 ... 299] = 'n' };
	char *blocks[sizeof(noise)];
	rvm_tid_t tid;

	for (unsigned i = 0; i < sizeof(noise); i++) {
		blocks[i] = rds_rig_take(i + 1, NULL);
		tid = rvm_rig_begin();
		assert_rvm(rvm_modify_bytes(&tid, blocks[i], noise, i + 1));
		assert_rvm(rvm_end_transaction(&tid, no_flush));
	}
	for (unsigned i = 0; i < sizeof(noise); i++)
		assert_rds(rds_free(blocks[i], NULL, &err));
	for (unsigned i = 0; i < sizeof(noise); i++) {
		blocks[i] = rds_rig_take(i + 1, NULL);
		assert_memory_equal(blocks[i], zeros, sizeof(zeros));
	}
	rds_rig_open(rig);
	for (unsigned i = 0; i < sizeof(noise); i++)
		assert_memory_equal(blocks[i], zeros, sizeof(zeros));
}

/* Nobody may see what another transaction can take back, so a second transaction is refused. */
TEST(one_transaction_at_a_time)
{
	rvm_tid_t tid = rvm_rig_begin(), other = rvm_rig_begin();
	intentionList_t list = { 0 };
	char *mine = rds_rig_take(20, &tid);

	assert_no_block(20, NULL, RVM_EUNCOMMIT);
	assert_no_block(20, &other, RVM_EUNCOMMIT);
	assert_rds_fails(rds_free(mine, &other, &err), RVM_EUNCOMMIT);
	assert_rds_fails(rds_prealloc(20, 1, NULL, &err), RVM_EUNCOMMIT);
	assert_rds_fails(rds_clear_stats(&err), RVM_EUNCOMMIT);
	assert_int_equal(rds_fake_free(mine, &list), SUCCESS);
	assert_int_equal(rds_do_free(&list, flush), RVM_EUNCOMMIT);
	assert_int_equal(list.count, 1);
	free(list.table);
	rds_rig_take(20, &tid);
	assert_rvm(rvm_end_transaction(&tid, no_flush));
	rds_rig_take(20, &other);
	assert_rvm(rvm_abort_transaction(&other));
	rds_rig_take(20, NULL);
	assert_int_equal(rds_rig_check(), 3);
	assert_no_block(20, &tid, RVM_ETID);
}

TEST(bad_blocks_are_refused)
{
	char *addr = rds_rig_take(20, NULL), *next = rds_rig_take(20, NULL);
	char outside[64];

	assert_rds_fails(rds_free(NULL, NULL, &err), EBAD_ARGS);
	assert_rds_fails(rds_free(outside, NULL, &err), EBAD_ARGS);
	assert_rds_fails(rds_free(addr + 8, NULL, &err), EBAD_ARGS);
	assert_rds(rds_free(addr, NULL, &err));
	assert_rds_fails(rds_free(addr, NULL, &err), EFREED_TWICE);
	assert_int_equal(rds_free(addr, NULL, NULL), -1);
	/* One byte behind the block, and one in front of the next. */
	next[2 * RDS_CHUNK - PS_RDS_GUARDS] ^= 1;
	assert_rds_fails(rds_free(next, NULL, &err), ECORRUPT);
	next[2 * RDS_CHUNK - PS_RDS_GUARDS] ^= 1;
	next[-1] ^= 1;
	assert_rds_fails(rds_free(next, NULL, &err), ECORRUPT);
	next[-1] ^= 1;
	assert_rds(rds_free(next, NULL, &err));
	assert_no_block(RDS_HEAP, NULL, ENO_ROOM);
	assert_no_block(ULONG_MAX, NULL, ENO_ROOM);
	assert_int_equal(rds_rig_check(), 0);
}

/* Small blocks all over the heap, every other one freed, then all: only then there is room for a
 * large one, and only by joining. */
TEST(neighbours_are_joined)
{
	static char *blocks[RDS_HEAP / RDS_CHUNK];
	rds_stats_t stats;
	unsigned count = 0;

	while ((blocks[count] = rds_malloc(RDS_CHUNK - PS_RDS_GUARDS, NULL, &err)))
		count++;
	assert_int_equal(err, ENO_ROOM);
	assert_true(count > RDS_HEAP / RDS_CHUNK - 20);
	for (unsigned i = 0; i < count; i += 2)
		assert_rds(rds_free(blocks[i], NULL, &err));
	assert_no_block(RDS_CHUNK, NULL, ENO_ROOM);
	assert_int_equal(rds_rig_check(), count / 2);
	for (unsigned i = 1; i < count; i += 2)
		assert_rds(rds_free(blocks[i], NULL, &err));
	assert_int_equal(rds_maxblock(RDS_CHUNK), 0);
	rds_rig_take(count * RDS_CHUNK - PS_RDS_GUARDS, NULL);
	assert_int_equal(rds_rig_check(), 1);
	assert_int_equal(rds_get_stats(&stats), SUCCESS);
	assert_true(stats.coalesce >= 1 && stats.merged >= count - 1);
}

TEST(blocks_ahead_are_there)
{
	rds_stats_t stats;

	assert_rds(rds_clear_stats(&err));
	assert_rds(rds_prealloc(50, 7, NULL, &err));
	rds_rig_check();
	assert_int_equal(rds_get_stats(&stats), SUCCESS);
	assert_int_equal(stats.prealloc, 7);
	for (unsigned i = 0; i < 8; i++)
		rds_rig_take(50, NULL);
	assert_int_equal(rds_get_stats(&stats), SUCCESS);
	assert_int_equal(stats.hits, 7);
	assert_int_equal(stats.large_misses, 1);
	assert_rds_fails(rds_prealloc(50, RDS_HEAP, NULL, &err), ENO_ROOM);
	assert_int_equal(rds_get_stats(&stats), SUCCESS);
	assert_int_equal(stats.prealloc, 7);
	assert_int_equal(rds_rig_check(), 8);
}

TEST(the_longest_is_known)
{
	assert_int_equal(rds_maxblock(1), 1);
	assert_int_equal(rds_maxblock(RDS_HEAP), 0);
	assert_int_equal(rds_maxblock(ps_rds.end - ps_rds.first - PS_RDS_GUARDS), 1);
	assert_int_equal(rds_maxblock(ps_rds.end - ps_rds.first - PS_RDS_GUARDS + 1), 0);
	assert_rds(rds_stop_heap(&err));
	assert_int_equal(rds_maxblock(1), 0);
}

/* Threads without transactions of their own: the heap keeps them apart. Each fills what it has, and
 * finds it so. */
static void *work(void *arg)
{
	const unsigned number = (unsigned)(uintptr_t)arg;
	char *held[HELD] = { NULL };
	int code;

	for (unsigned i = 0; i < TURNS; i++) {
		char **at = &held[(i * 7 + number) % HELD];

		if (*at && **at != (char)(number + 1))
			return (void *)(uintptr_t) "another thread has written to the block";
		if (*at && rds_free(*at, NULL, &code))
			return (void *)(uintptr_t)rds_message();
		*at = rds_malloc(10 + (i * 37 + number * 11) % 300, NULL, &code);
		if (!*at)
			return (void *)(uintptr_t)rds_message();
		**at = (char)(number + 1);
	}
	return NULL;
}

TEST(threads_share_the_heap)
{
	pthread_t threads[THREADS];
	void *fault;

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &fault), 0);
		if (fault)
			fail_msg("%s", (char *)fault);
	}
	assert_int_equal(rds_rig_check(), THREADS * HELD);
}

/* However it is overwritten, a heap is refused or works: nothing is used unchecked. */
TEST(overwritten_heaps_do_no_harm)
{
	static char whole[RDS_HEAP];
	char *blocks[12];
	uint64_t random = 1;

	for (unsigned i = 0; i < 12; i++)
		blocks[i] = rds_rig_take(10 + i * 40, NULL);
	for (unsigned i = 0; i < 12; i += 2)
		assert_rds(rds_free(blocks[i], NULL, &err));
	memcpy(whole, ps_rds.base, RDS_HEAP);
	for (unsigned i = 0; i < 3000; i++) {
		rvm_tid_t tid = rvm_rig_begin();
		uint64_t at;

		random = random * 6364136223846793005u + 1442695040888963407u;
		at = (random >> 33) % (i % 4 ? 4096 : RDS_HEAP);
		ps_rds.base[at] = (char)(random >> 25);
		rds_malloc(10 + i % 500, &tid, &err);
		rds_free(blocks[i % 12], &tid, &err);
		rds_malloc(RDS_HEAP / 2, &tid, &err);
		assert_rvm(rvm_abort_transaction(&tid));
		memcpy(ps_rds.base, whole, RDS_HEAP);
	}
	rds_rig_check();
}
