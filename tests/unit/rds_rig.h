/*
 * rds_rig.h - what the tests of librds-perseas share: the mirror and the log of rvm_rig.h, and a
 * segment with a heap.
 */
#ifndef PERSEAS_TESTS_RDS_RIG_H
#define PERSEAS_TESTS_RDS_RIG_H

#include "rvm_rig.h"

#include "../../client/rds/heap.h"
#include "../../client/rds/rds_private.h"
#include "../../client/rds/rvm_segment.h"

enum { RDS_HEAP = 16 * RVM_PAGE, RDS_STATIC = RVM_PAGE, RDS_LISTS = 8, RDS_CHUNK = 32 };
#define RDS_AT ((char *)0x7e0000000000)

/* Why the last call of librds failed. */
static int err;

#define assert_rds(call)                                                   \
	do {                                                               \
		if ((call) != 0)                                           \
			fail_msg("%s: %d: %s", #call, err, rds_message()); \
	} while (0)

#define assert_rds_fails(call, code)         \
	do {                                 \
		assert_int_equal(call, -1);  \
		assert_int_equal(err, code); \
	} while (0)

static inline void assert_no_block(unsigned long size, rvm_tid_t *tid, int code)
{
	assert_null(rds_malloc(size, tid, &err));
	assert_int_equal(err, code);
}

static inline rvm_offset_t rds_rig_any(void)
{
	return rvm_mk_offset(0, 0);
}

static inline void rds_rig_forget(void)
{
	ps_rds.base = NULL;
	ps_rds.trace = NULL;
}

/* Opens the log as a new process would. */
static inline char *rds_rig_open(struct rvm_rig *rig)
{
	char *place = NULL;

	rds_unload_heap(&err);
	rds_rig_forget();
	rvm_rig_open(rig, 0);
	assert_rds(rds_load_heap(rig->data, rds_rig_any(), &place, &err));
	return place;
}

static inline void rds_rig_zap(struct rvm_rig *rig)
{
	assert_rds(rds_zap_heap(rig->data, rds_rig_any(), RDS_AT, RDS_STATIC, RDS_HEAP, RDS_LISTS,
	                        RDS_CHUNK, &err));
}

static inline int rds_rig_setup(void **state)
{
	if (rvm_rig_setup(state))
		return -1;
	rds_rig_zap(*state);
	return 0;
}

static inline int rds_rig_teardown(void **state)
{
	rds_unload_heap(&err);
	rds_rig_forget();
	return rvm_rig_teardown(state);
}

static inline char *rds_rig_take(unsigned long size, rvm_tid_t *tid)
{
	char *addr = rds_malloc(size, tid, &err);

	if (!addr)
		fail_msg("rds_malloc: %d: %s", err, rds_message());
	return addr;
}

/* Every block is whole, free ones are in their lists and nowhere else, no two are one, and the
 * counts of bytes are true. Returns how many are allocated. */
static inline unsigned rds_rig_check(void)
{
	const struct ps_rds_change none = { 0 };
	uint64_t used = 0, unused = 0, listed = 0;
	unsigned blocks = 0, free_blocks = 0, in_lists = 0;

	for (uint64_t place = ps_rds.first, chunks; place < ps_rds.end;
	     place += chunks * ps_rds.chunk) {
		chunks = ps_rds_block_length(&none, place, PS_RDS_FREED);
		free_blocks += chunks != 0;
		unused += chunks * ps_rds.chunk;
		if (chunks)
			continue;
		chunks = ps_rds_block_length(&none, place, PS_RDS_USED);
		assert_true(chunks);
		used += chunks * ps_rds.chunk;
		blocks++;
	}
	for (uint64_t list = 1; list <= ps_rds.nlists + 1; list++)
		for (uint64_t at = *ps_rds_word_at(ps_rds_list_place(list)), before = 0; at;
		     before = at, at = *ps_rds_word_at(at + 8)) {
			const uint64_t chunks = ps_rds_block_length(&none, at, PS_RDS_FREED);

			assert_true(list > ps_rds.nlists ? chunks >= list : chunks == list);
			assert_int_equal(*ps_rds_word_at(at + 16), before);
			listed += chunks * ps_rds.chunk;
			assert_true(++in_lists <= free_blocks);
		}
	assert_int_equal(in_lists, free_blocks);
	assert_int_equal(listed, unused);
	assert_int_equal(ps_rds_head()->counts[PS_RDS_FREE_BYTES], unused);
	assert_int_equal(ps_rds_head()->counts[PS_RDS_MALLOC_BYTES], used);
	return blocks;
}

#endif
