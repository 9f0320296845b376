/*
 * alloc.c - rds_malloc, rds_free and rds_prealloc, which programs call for their blocks.
 */
#include "../rvm/cancel.h"
#include "fail.h"
#include "heap.h"

/* --- taking blocks --- */

static int fail_no_room(uint64_t size)
{
	return ps_rds_fail(ENO_ROOM, "the heap has no room for a block of %llu bytes",
	                   (unsigned long long)size);
}

static int fail_bad_list(void)
{
	return ps_rds_fail(ECORRUPT, "the heap was overwritten: a free block is in no list");
}

/* Sets *place to the place of a free block of at least `least` chunks. May join free neighbors for
 * it if `join` is true. The message of an error names `size`, the bytes that the program asked
 * for. */
static int find_block(rvm_tid_t *tid, uint64_t size, uint64_t least, bool join, uint64_t *place)
{
	const struct ps_rds_change none = { 0 };
	int code = ps_rds_find_free(&none, least, place);

	if (code == SUCCESS && !*place && join)
		code = ps_rds_join_free_blocks(tid, least);
	if (code == SUCCESS && !*place)
		code = ps_rds_find_free(&none, least, place);
	return code == SUCCESS && !*place ? fail_no_room(size) : code;
}

/* Takes a free block out of its list, and puts its chunks beyond the first `chunks` into another
 * list. Returns false if a list has been overwritten. */
static bool split_block(struct ps_rds_change *change, uint64_t place, uint64_t chunks)
{
	const uint64_t whole = ps_rds_block_length(change, place, PS_RDS_FREED);

	if (!ps_rds_unlink_block(change, place, whole))
		return false;
	return whole == chunks ||
	       ps_rds_link_block(change, place + chunks * ps_rds.chunk, whole - chunks);
}

static void count_allocation(struct ps_rds_change *change, uint64_t whole, uint64_t chunks)
{
	const bool large = whole > ps_rds.nlists;

	if (whole == chunks)
		ps_rds_add_to_count(change, large ? PS_RDS_LARGE_HITS : PS_RDS_HITS, 1);
	else
		ps_rds_add_to_count(change, large ? PS_RDS_LARGE_MISSES : PS_RDS_MISSES, 1);
	ps_rds_add_to_count(change, PS_RDS_MALLOC, 1);
	ps_rds_subtract_from_count(change, PS_RDS_FREE_BYTES, chunks * ps_rds.chunk);
	ps_rds_add_to_count(change, PS_RDS_MALLOC_BYTES, chunks * ps_rds.chunk);
}

static int take_block(rvm_tid_t *tid, uint64_t size, uint64_t *place)
{
	const uint64_t chunks = ps_rds_chunks_for(size);
	struct ps_rds_change change = { .tid = tid };
	uint64_t whole;
	int code = chunks ? find_block(tid, size, chunks, true, place) : fail_no_room(size);

	if (code != SUCCESS)
		return code;
	whole = ps_rds_block_length(&change, *place, PS_RDS_FREED);
	if (!split_block(&change, *place, chunks))
		return fail_bad_list();
	ps_rds_mark_block(&change, *place, chunks, PS_RDS_USED);
	ps_rds_clear_links(&change, *place);
	count_allocation(&change, whole, chunks);
	return ps_rds_apply_change(&change);
}

char *rds_malloc(unsigned long size, rvm_tid_t *tid, int *err)
{
	PS_RVM_UNCANCELLED;
	rvm_tid_t own;
	uint64_t place = 0;
	char *addr = NULL;
	int code = ps_rds_begin_change(&tid, &own);

	if (code == SUCCESS) {
		ps_rds.own = tid == &own;
		code = take_block(tid, size, &place);
		ps_rds.own = false;
		if (code == SUCCESS)
			addr = ps_rds.base + place + sizeof(uint64_t);
		ps_rds_trace("rdstrace: malloc %lu: %p, %d\n", size, (void *)addr, code);
		code = ps_rds_end_change(tid, &own, code);
	}
	ps_rds_set_err(code, err);
	return code == SUCCESS ? addr : NULL;
}

/* --- freeing blocks --- */

int ps_rds_check_block(const char *addr, uint64_t *place, uint64_t *chunks)
{
	const struct ps_rds_change none = { 0 };

	*place = (uint64_t)((uintptr_t)addr - (uintptr_t)ps_rds.base) - sizeof(uint64_t);
	if (*place < ps_rds.first || *place >= ps_rds.end || (*place - ps_rds.first) % ps_rds.chunk)
		return ps_rds_fail(EBAD_ARGS, "no block of the heap can begin at %p",
		                   (const void *)addr);
	*chunks = ps_rds_block_length(&none, *place, PS_RDS_USED);
	if (*chunks)
		return SUCCESS;
	if (ps_rds_block_length(&none, *place, PS_RDS_FREED))
		return ps_rds_fail(EFREED_TWICE, "the block at %p is free", (const void *)addr);
	return ps_rds_fail(ECORRUPT,
	                   "no block begins at %p, or its guards were overwritten: look at what "
	                   "is before and behind it",
	                   (const void *)addr);
}

int ps_rds_free_block(rvm_tid_t *tid, const char *addr)
{
	struct ps_rds_change change = { .tid = tid };
	uint64_t place = 0, chunks = 0;
	int code = ps_rds_check_block(addr, &place, &chunks);

	if (code != SUCCESS)
		return code;
	if (!ps_rds_link_block(&change, place, chunks))
		return fail_bad_list();
	ps_rds_add_to_count(&change, PS_RDS_FREE, 1);
	ps_rds_add_to_count(&change, PS_RDS_FREE_BYTES, chunks * ps_rds.chunk);
	ps_rds_subtract_from_count(&change, PS_RDS_MALLOC_BYTES, chunks * ps_rds.chunk);
	code = ps_rds_apply_change(&change);
	ps_rds_trace("rdstrace: free %p, %d\n", (const void *)addr, code);
	return code;
}

int rds_free(char *addr, rvm_tid_t *tid, int *err)
{
	PS_RVM_UNCANCELLED;
	rvm_tid_t own;
	int code = ps_rds_begin_change(&tid, &own);

	if (code == SUCCESS)
		code = ps_rds_end_change(tid, &own, ps_rds_free_block(tid, addr));
	return ps_rds_set_err(code, err);
}

int rds_maxblock(unsigned long size)
{
	PS_RVM_UNCANCELLED;
	const struct ps_rds_change none = { 0 };
	uint64_t place = 0, chunks;

	pthread_mutex_lock(&ps_rds.lock);
	chunks = ps_rds.base ? ps_rds_chunks_for(size) : 0;
	if (chunks && ps_rds_find_free(&none, chunks, &place) != SUCCESS)
		place = 0;
	pthread_mutex_unlock(&ps_rds.lock);
	return place != 0;
}

/* --- rds_prealloc --- */

/* Splits a free block of `chunks` chunks off a longer one. Only the first call may join blocks: a
 * later one would join the blocks that were just split off. */
static int split_one(rvm_tid_t *tid, uint64_t size, uint64_t chunks, bool is_first)
{
	struct ps_rds_change change = { .tid = tid };
	uint64_t place = 0;
	int code = find_block(tid, size, chunks + 1, is_first, &place);

	if (code != SUCCESS)
		return code;
	if (!split_block(&change, place, chunks) || !ps_rds_link_block(&change, place, chunks))
		return fail_bad_list();
	ps_rds_add_to_count(&change, PS_RDS_PREALLOC, 1);
	return ps_rds_apply_change(&change);
}

int rds_prealloc(unsigned long size, unsigned long nblocks, rvm_tid_t *tid, int *err)
{
	PS_RVM_UNCANCELLED;
	rvm_tid_t own;
	uint64_t chunks;
	int code = ps_rds_begin_change(&tid, &own);

	if (code != SUCCESS)
		return ps_rds_set_err(code, err);
	chunks = ps_rds_chunks_for(size);
	if (!chunks)
		code = fail_no_room(size);
	for (unsigned long i = 0; i < nblocks && code == SUCCESS; i++)
		code = split_one(tid, size, chunks, !i);
	ps_rds_trace("rdstrace: prealloc %lu of %lu, %d\n", nblocks, size, code);
	return ps_rds_set_err(ps_rds_end_change(tid, &own, code), err);
}
