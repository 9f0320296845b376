/*
 * test_rds_heap.c - a recoverable heap as a whole: made, started, stopped, loaded and unloaded;
 * lists of intentions; counts and the trace. Blocks are test_rds_blocks.c's.
 */
#include "rds_rig.h"

#include <limits.h>

struct unit_fixture unit_fixture = { rds_rig_setup, rds_rig_teardown };

TEST_WITH(heaps_are_made_loaded_and_unloaded, rvm_rig_setup, rds_rig_teardown, struct rvm_rig *rig)
{
	char *place = NULL;

	assert_rds_fails(rds_load_heap(rig->data, rds_rig_any(), &place, &err), RVM_ESEGMENT_HDR);
	rds_rig_zap(rig);
	assert_ptr_equal(ps_rds.base, RDS_AT);
	assert_rds_fails(rds_zap_heap(rig->data, rds_rig_any(), RDS_AT, RDS_STATIC, RDS_HEAP,
	                              RDS_LISTS, RDS_CHUNK, &err),
	                 EHEAP_INIT);
	rds_rig_take(100, NULL);
	assert_rds(rds_unload_heap(&err));
	assert_rds_fails(rds_unload_heap(&err), EHEAP_INIT);
	assert_no_block(1, NULL, EHEAP_INIT);
	assert_rds(rds_load_heap(rig->data, rds_rig_any(), &place, &err));
	assert_ptr_equal(place, RDS_AT + RDS_HEAP);
	assert_int_equal(rds_rig_check(), 1);
	/* Made again, it is empty, and what is static stays. */
	rds_rig_open(rig);
	assert_rds(rds_unload_heap(&err));
	rds_rig_zap(rig);
	assert_int_equal(rds_rig_check(), 0);
}

TEST_WITH(shapes_that_cannot_be_are_refused, rvm_rig_setup, rds_rig_teardown, struct rvm_rig *rig)
{
	const struct {
		char *at;
		rvm_length_t fixed, length, lists, chunk;
		int code;
	} bad[] = {
		{ RDS_AT, RDS_STATIC, RDS_HEAP, 0, 32, EBAD_LIST },
		{ RDS_AT, RDS_STATIC, RDS_HEAP, 8, 24, EBAD_ARGS },
		{ RDS_AT, RDS_STATIC, RDS_HEAP, 8, 36, EBAD_ARGS },
		{ RDS_AT, RDS_STATIC, RVM_PAGE, 1000, 32, ENO_ROOM },
		{ RDS_AT, RDS_STATIC, RVM_PAGE, ULONG_MAX, 32, ENO_ROOM },
		{ RDS_AT, RDS_STATIC, 1ul << 40, 8, 32, EBAD_ARGS },
		{ RDS_AT, 1, RDS_HEAP, RDS_LISTS, RDS_CHUNK, RVM_ERANGE },
		{ NULL, RDS_STATIC, RDS_HEAP, RDS_LISTS, RDS_CHUNK, EBAD_ARGS },
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_rds_fails(rds_zap_heap(rig->data, rds_rig_any(), bad[i].at, bad[i].fixed,
		                              bad[i].length, bad[i].lists, bad[i].chunk, &err),
		                 bad[i].code);
	}
	rds_rig_zap(rig);
}

/* Programs that were written for RDS load the heap that they have just made, and look at its
 * regions. A second call changes nothing, and another segment is refused. */
TEST(a_loaded_heap_is_loaded_again, struct rvm_rig *rig)
{
	char *place = NULL, other[140], *block;

	assert_int_equal(NRegionDefs, 2);
	assert_ptr_equal(RegionDefs[0].vmaddr, RDS_AT);
	assert_int_equal(RegionDefs[0].length, RDS_HEAP);
	block = rds_rig_take(10, NULL);
	for (unsigned i = 0; i < 2; i++) {
		place = NULL;
		assert_rds(rds_load_heap(rig->data, rds_rig_any(), &place, &err));
		assert_int_equal(err, SUCCESS);
		assert_ptr_equal(place, RDS_AT + RDS_HEAP);
		assert_ptr_equal(RegionDefs[1].vmaddr, place);
		assert_int_equal(rds_rig_check(), 1);
	}
	assert_rds(rds_load_heap(rig->data, rds_rig_any(), NULL, &err));
	snprintf(other, sizeof(other), "%s.other", rig->data);
	place = other;
	assert_rds_fails(rds_load_heap(other, rds_rig_any(), &place, &err), EHEAP_INIT);
	assert_ptr_equal(place, other);
	assert_rds(rds_free(block, NULL, &err));
	assert_rds(rds_unload_heap(&err));
	assert_null(RegionDefs);
	assert_int_equal(NRegionDefs, 0);
	assert_rds(rds_load_heap(rig->data, rds_rig_any(), &place, &err));
	assert_int_equal(NRegionDefs, 2);
}

/* A heap that lost a region is not handed out as loaded. */
TEST(half_a_heap_is_not_loaded_again, struct rvm_rig *rig)
{
	rvm_tid_t tid = rvm_rig_begin();
	char *place = NULL;

	rds_rig_take(10, &tid);
	assert_rds_fails(rds_unload_heap(&err), RVM_EUNCOMMIT);
	assert_rds_fails(rds_load_heap(rig->data, rds_rig_any(), &place, &err), EHEAP_INIT);
	assert_null(place);
	assert_rvm(rvm_abort_transaction(&tid));
	assert_rds(rds_unload_heap(&err));
	assert_rds(rds_load_heap(rig->data, rds_rig_any(), &place, &err));
	assert_ptr_equal(place, RDS_AT + RDS_HEAP);
	/* The program unmaps a region by itself. */
	assert_rvm(rvm_unmap(&(rvm_region_t){ .struct_id = rvm_region_id,
	                                      .offset = RegionDefs[1].offset,
	                                      .vmaddr = RegionDefs[1].vmaddr,
	                                      .length = RegionDefs[1].length }));
	assert_rds_fails(rds_load_heap(rig->data, rds_rig_any(), &place, &err), EHEAP_INIT);
	RegionDefs[1].vmaddr = NULL;
	assert_rds(rds_unload_heap(&err));
}

/* In a region that the program mapped: anywhere, as a heap has no addresses in it. */
TEST_WITH(heaps_are_made_in_regions, rvm_rig_setup, rds_rig_teardown, struct rvm_rig *rig)
{
	rvm_tid_t tid;

	rvm_rig_map(rig);
	assert_rds_fails(rds_init_heap(rig->region.vmaddr, RVM_FILE, 64, 4, NULL, &err), EBAD_ARGS);
	assert_rds_fails(rds_start_heap(rig->region.vmaddr, &err), EHEAP_VERSION_SKEW);
	assert_rds_fails(rds_start_heap((char *)&tid, &err), RVM_ENOT_MAPPED);
	tid = rvm_rig_begin();
	assert_rds(rds_init_heap(rig->region.vmaddr, RVM_FILE, 64, 4, &tid, &err));
	assert_rvm(rvm_abort_transaction(&tid));
	assert_int_equal((uint8_t)rig->region.vmaddr[100], rvm_first(100));
	assert_no_block(1, NULL, ECORRUPT);
	assert_rds(rds_stop_heap(&err));
	tid = rvm_rig_begin();
	assert_rds(rds_init_heap(rig->region.vmaddr, RVM_FILE, 64, 4, &tid, &err));
	rds_rig_take(30, &tid);
	assert_rvm(rvm_end_transaction(&tid, flush));
	assert_rds(rds_stop_heap(&err));
	assert_rds_fails(rds_stop_heap(&err), EHEAP_INIT);
	assert_rvm(rvm_unmap(&rig->region));
	rig->region.vmaddr = RDS_AT + (1 << 20);
	assert_rvm(rvm_map(&rig->region, NULL));
	assert_rds(rds_start_heap(rig->region.vmaddr, &err));
	assert_rds(rds_start_heap(rig->region.vmaddr, &err));
	assert_rds_fails(rds_start_heap(RDS_AT, &err), EHEAP_INIT);
	assert_int_equal(rds_rig_check(), 1);
}

/* A head that says more than there is leads nowhere. */
TEST(heads_that_lie_are_refused)
{
	struct ps_rds_head *head = (struct ps_rds_head *)RDS_AT;
	const struct ps_rds_head good = *head;

	assert_rds(rds_stop_heap(&err));
	head->length = 1 << 30;
	assert_rds_fails(rds_start_heap(RDS_AT, &err), RVM_ENOT_MAPPED);
	*head = good;
	head->nlists = UINT64_MAX;
	assert_rds_fails(rds_start_heap(RDS_AT, &err), ECORRUPT);
	*head = good;
	head->chunk = 0;
	assert_rds_fails(rds_start_heap(RDS_AT, &err), ECORRUPT);
	*head = good;
	head->magic[7]++;
	assert_rds_fails(rds_start_heap(RDS_AT, &err), EHEAP_VERSION_SKEW);
	head->magic[7]--;
	assert_rds(rds_start_heap(RDS_AT, &err));
}

/* A transaction that is open keeps the heap from being unloaded, also one that declared static data
 * only. The heap can be used until it goes, and then goes whole. */
TEST(open_transactions_keep_the_heap, struct rvm_rig *rig)
{
	for (unsigned statically = 0; statically < 2; statically++) {
		rvm_tid_t tid = rvm_rig_begin();

		if (statically)
			assert_rvm(rvm_set_range(&tid, RDS_AT + RDS_HEAP, 1));
		else
			rds_rig_take(20, &tid);
		assert_rds_fails(rds_unload_heap(&err), RVM_EUNCOMMIT);
		rds_rig_take(20, &tid);
		assert_rvm(rvm_end_transaction(&tid, no_flush));
		assert_int_equal(rds_rig_check(), 2 + statically);
		assert_rds(rds_unload_heap(&err));
		assert_null(ps_rds.base);
		rds_rig_open(rig);
	}
}

/* An intention list is freed as a whole or not at all, and by itself changes nothing. */
TEST(intentions_are_kept_together, struct rvm_rig *rig)
{
	intentionList_t list = { 0 };
	char *blocks[STARTSIZE + 1], *other;

	for (unsigned i = 0; i <= STARTSIZE; i++)
		blocks[i] = rds_rig_take(10, NULL);
	other = rds_rig_take(10, NULL);
	assert_int_equal(rds_do_free(&list, flush), SUCCESS);
	for (unsigned i = 0; i <= STARTSIZE; i++)
		assert_int_equal(rds_fake_free(blocks[i], &list), SUCCESS);
	assert_int_equal(list.count, STARTSIZE + 1);
	assert_int_equal(rds_fake_free(blocks[0] + 1, &list), EBAD_ARGS);
	assert_int_equal(rds_fake_free(blocks[0], NULL), EBAD_LIST);
	assert_int_equal(rds_do_free(NULL, flush), EBAD_LIST);
	assert_int_equal(rds_do_free(&list, restore), RVM_EMODE);
	assert_int_equal(rds_rig_check(), STARTSIZE + 2);
	/* One block is listed twice. */
	assert_int_equal(rds_fake_free(blocks[0], &list), SUCCESS);
	assert_int_equal(rds_do_free(&list, flush), EFREED_TWICE);
	assert_int_equal(rds_rig_check(), STARTSIZE + 2);
	list.count--;
	assert_int_equal(rds_do_free(&list, flush), SUCCESS);
	assert_null(list.table);
	assert_int_equal(rds_rig_check(), 1);
	assert_int_equal(rds_fake_free(blocks[0], &list), EFREED_TWICE);
	rds_rig_open(rig);
	assert_int_equal(rds_rig_check(), 1);
	assert_int_equal(rds_fake_free(other, &list), SUCCESS);
	free(list.table);
}

/* Mirrors that do not answer: the blocks are freed here, and who tries again frees nobody's. */
TEST(intentions_in_doubt_are_done, struct rvm_rig *rig)
{
	intentionList_t list = { 0 };
	char *block;

	snprintf(rig->log, sizeof(rig->log), "perseas:rvm@%s", rig->place.tcp);
	rds_rig_open(rig);
	block = rds_rig_take(10, NULL);
	assert_rvm(rvm_flush());
	assert_int_equal(rds_fake_free(block, &list), SUCCESS);
	assert_int_equal(kill(rig->place.daemon, SIGSTOP), 0);
	assert_int_equal(rds_do_free(&list, flush), RVM_EIO);
	assert_int_equal(errno, ETIMEDOUT);
	assert_null(list.table);
	assert_int_equal(kill(rig->place.daemon, SIGCONT), 0);
	while (rvm_flush() != RVM_SUCCESS)
		assert_int_equal(errno, ETIMEDOUT);
	assert_ptr_equal(rds_rig_take(10, NULL), block);
	assert_int_equal(rds_do_free(&list, flush), SUCCESS);
	assert_int_equal(rds_rig_check(), 1);
}

TEST(counts_are_kept_and_cleared, struct rvm_rig *rig)
{
	rds_stats_t stats;

	assert_int_equal(rds_get_stats(NULL), EBAD_ARGS);
	assert_rds(rds_free(rds_rig_take(10, NULL), NULL, &err));
	rds_rig_take(RDS_CHUNK * RDS_LISTS, NULL);
	rds_rig_open(rig);
	assert_int_equal(rds_get_stats(&stats), SUCCESS);
	assert_int_equal(stats.malloc, 2);
	assert_int_equal(stats.free, 1);
	assert_int_equal(stats.large_misses, 2);
	assert_int_equal(stats.mallocbytes, RDS_CHUNK * (RDS_LISTS + 1));
	assert_int_equal(stats.freebytes, ps_rds.end - ps_rds.first - stats.mallocbytes);
	assert_int_equal(rds_print_stats(), SUCCESS);
	assert_rds(rds_clear_stats(&err));
	assert_int_equal(rds_get_stats(&stats), SUCCESS);
	assert_int_equal(stats.malloc + stats.free + stats.large_misses + stats.large_list, 0);
	assert_int_equal(stats.mallocbytes, RDS_CHUNK * (RDS_LISTS + 1));
	ps_rds_head()->counts[PS_RDS_MALLOC] = (uint64_t)1 << 40;
	assert_int_equal(rds_get_stats(&stats), SUCCESS);
	assert_int_equal(stats.malloc, UINT_MAX);
	assert_rds(rds_stop_heap(&err));
	assert_int_equal(rds_get_stats(&stats), EHEAP_INIT);
	assert_int_equal(rds_print_stats(), EHEAP_INIT);
	assert_rds_fails(rds_clear_stats(&err), EHEAP_INIT);
}

TEST(the_trace_tells_calls_and_blocks)
{
	char *text = NULL, *addr, expected[64];
	size_t length;
	FILE *file = open_memstream(&text, &length);

	assert_non_null(file);
	assert_int_equal(rds_trace_on(NULL), EBAD_ARGS);
	assert_int_equal(rds_trace_dump_heap(), EBAD_ARGS);
	assert_int_equal(rds_trace_on(file), SUCCESS);
	addr = rds_rig_take(20, NULL);
	assert_rds(rds_free(rds_rig_take(20, NULL), NULL, &err));
	assert_int_equal(rds_trace_dump_heap(), SUCCESS);
	assert_int_equal(rds_trace_off(), SUCCESS);
	rds_rig_take(777, NULL);
	fclose(file);
	snprintf(expected, sizeof(expected), "malloc 20: %p", (void *)addr);
	assert_non_null(strstr(text, expected));
	snprintf(expected, sizeof(expected), "%p, 48 bytes, allocated", (void *)addr);
	assert_non_null(strstr(text, expected));
	assert_non_null(strstr(text, "48 bytes, free"));
	assert_null(strstr(text, "777"));
	free(text);
	assert_rds(rds_stop_heap(&err));
	assert_int_equal(rds_trace_dump_heap(), EHEAP_INIT);
}

/* A thread with a cancellation pending prints, and ends at its own next cancellation point. */
static void *print_when_cancelled(void *returned)
{
	pthread_cancel(pthread_self());
	*(int *)returned = rds_trace_dump_heap();
	pthread_testcancel();
	return NULL;
}

TEST(a_cancelled_thread_prints_to_the_end)
{
	FILE *file = fopen("/dev/null", "w");
	int returned = EBAD_ARGS;
	pthread_t thread;
	void *result;

	/* Each line is a system call. */
	assert_non_null(file);
	assert_int_equal(setvbuf(file, NULL, _IOLBF, 0), 0);
	assert_int_equal(rds_trace_on(file), SUCCESS);
	assert_int_equal(pthread_create(&thread, NULL, print_when_cancelled, &returned), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	/* A thread that ended inside kept a lock, for which the teardown would wait. */
	if (returned != SUCCESS)
		_exit(1);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(rds_trace_off(), SUCCESS);
	fclose(file);
}
