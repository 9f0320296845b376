/*
 * blocks.c - the blocks of a heap and their lists (heap.h). Everything that is read from the heap
 * is checked here before it is used.
 */
#include "fail.h"
#include "heap.h"

#include <stddef.h>

#define NEXT(place) ((place) + offsetof(struct ps_rds_block, next))
enum { BATCHES = 64 }; /* joined runs that one transaction of the library's own may contain */

#define PREVIOUS(place) ((place) + offsetof(struct ps_rds_block, previous))

static uint64_t end_mark_place(uint64_t place, uint64_t chunks)
{
	return place + chunks * ps_rds.chunk - sizeof(uint64_t);
}

uint64_t ps_rds_block_length(const struct ps_rds_change *change, uint64_t place, uint64_t mark)
{
	uint64_t word, chunks;

	if (place < ps_rds.first || place >= ps_rds.end || (place - ps_rds.first) % ps_rds.chunk)
		return 0;
	word = ps_rds_read_word(change, place);
	chunks = word & UINT32_MAX;
	if ((word & ~(uint64_t)UINT32_MAX) != mark ||
	    chunks > (ps_rds.end - place) / ps_rds.chunk || !chunks ||
	    ps_rds_read_word(change, end_mark_place(place, chunks)) != PS_RDS_END)
		return 0;
	return chunks;
}

uint64_t ps_rds_chunks_for(uint64_t size)
{
	const uint64_t most = (ps_rds.end - ps_rds.first) / ps_rds.chunk;

	if (size > ps_rds.end - ps_rds.first)
		return 0;
	size += PS_RDS_GUARDS;
	size = (size + ps_rds.chunk - 1) / ps_rds.chunk;
	return size > most ? 0 : size;
}

void ps_rds_mark_block(struct ps_rds_change *change, uint64_t place, uint64_t chunks, uint64_t mark)
{
	ps_rds_write_word(change, place, mark | chunks);
	ps_rds_write_word(change, end_mark_place(place, chunks), PS_RDS_END);
}

void ps_rds_clear_links(struct ps_rds_change *change, uint64_t place)
{
	ps_rds_write_word(change, NEXT(place), 0);
	ps_rds_write_word(change, PREVIOUS(place), 0);
}

/* Returns true if the place holds a free block that belongs in that list. */
static bool belongs_in_list(const struct ps_rds_change *change, uint64_t place, uint64_t list)
{
	const uint64_t chunks = ps_rds_block_length(change, place, PS_RDS_FREED);

	return chunks && ps_rds_list_place(chunks) == list;
}

static void set_list_head(struct ps_rds_change *change, uint64_t list, uint64_t first)
{
	ps_rds_write_word(change, list, first);
	if (list == ps_rds_list_place(ps_rds.nlists + 1))
		ps_rds_add_to_count(change, PS_RDS_LARGE_LIST, 1);
}

bool ps_rds_link_block(struct ps_rds_change *change, uint64_t place, uint64_t chunks)
{
	const uint64_t list = ps_rds_list_place(chunks), first = ps_rds_read_word(change, list);

	if (first && !belongs_in_list(change, first, list))
		return false;
	ps_rds_mark_block(change, place, chunks, PS_RDS_FREED);
	ps_rds_write_word(change, NEXT(place), first);
	ps_rds_write_word(change, PREVIOUS(place), 0);
	if (first)
		ps_rds_write_word(change, PREVIOUS(first), place);
	set_list_head(change, list, place);
	return true;
}

bool ps_rds_unlink_block(struct ps_rds_change *change, uint64_t place, uint64_t chunks)
{
	const uint64_t list = ps_rds_list_place(chunks);
	const uint64_t next = ps_rds_read_word(change, NEXT(place));
	const uint64_t previous = ps_rds_read_word(change, PREVIOUS(place));

	if ((next && (!belongs_in_list(change, next, list) ||
	              ps_rds_read_word(change, PREVIOUS(next)) != place)) ||
	    (previous && (!belongs_in_list(change, previous, list) ||
	                  ps_rds_read_word(change, NEXT(previous)) != place)) ||
	    (!previous && ps_rds_read_word(change, list) != place))
		return false;
	if (next)
		ps_rds_write_word(change, PREVIOUS(next), previous);
	if (previous)
		ps_rds_write_word(change, NEXT(previous), next);
	else
		set_list_head(change, list, next);
	return true;
}

static int fail_corrupt(const char *what)
{
	return ps_rds_fail(ECORRUPT, "the heap was overwritten: %s", what);
}

/* Finds the first large block that is long enough. A list cannot have more blocks than the heap has
 * chunks. */
static int find_large(const struct ps_rds_change *change, uint64_t chunks, uint64_t *place)
{
	uint64_t left = (ps_rds.end - ps_rds.first) / ps_rds.chunk;

	for (*place = ps_rds_read_word(change, ps_rds_list_place(ps_rds.nlists + 1)); *place;
	     *place = ps_rds_read_word(change, NEXT(*place))) {
		const uint64_t got = ps_rds_block_length(change, *place, PS_RDS_FREED);

		if (got <= ps_rds.nlists || !left--)
			return fail_corrupt("a list of free blocks contains something else");
		if (got >= chunks)
			return SUCCESS;
	}
	return SUCCESS;
}

int ps_rds_find_free(const struct ps_rds_change *change, uint64_t chunks, uint64_t *place)
{
	for (uint64_t i = chunks; i <= ps_rds.nlists; i++) {
		*place = ps_rds_read_word(change, ps_rds_list_place(i));
		if (*place && ps_rds_block_length(change, *place, PS_RDS_FREED) != i)
			return fail_corrupt("a list of free blocks contains something else");
		if (*place)
			return SUCCESS;
	}
	return find_large(change, chunks, place);
}

/* --- joining --- */

/* Returns the length in chunks of the block at a place, used or free, and sets *is_free. Returns 0
 * if no intact block is there. */
static uint64_t any_block_length(const struct ps_rds_change *change, uint64_t place, bool *is_free)
{
	const uint64_t chunks = ps_rds_block_length(change, place, PS_RDS_FREED);

	*is_free = chunks != 0;
	return chunks ? chunks : ps_rds_block_length(change, place, PS_RDS_USED);
}

/* Joins the free blocks from `place` on, PS_RDS_JOINED at most. Sets *joined to their number and
 * *next to the place after them. A single block stays as it is. */
static int join_run(rvm_tid_t *tid, uint64_t place, uint64_t *next, unsigned *joined)
{
	struct ps_rds_change change = { .tid = tid };
	bool is_free;
	uint64_t whole = 0, chunks = any_block_length(&change, place, &is_free);

	*joined = 0;
	*next = place;
	while (chunks && is_free && *joined < PS_RDS_JOINED) {
		if (!ps_rds_unlink_block(&change, *next, chunks))
			return fail_corrupt("a free block is in no list");
		whole += chunks;
		*next += chunks * ps_rds.chunk;
		++*joined;
		if (*next == ps_rds.end)
			break;
		chunks = any_block_length(&change, *next, &is_free);
	}
	if (!chunks)
		return fail_corrupt("a block has no length that can be");
	if (!*joined)
		*next += chunks * ps_rds.chunk;
	if (*joined < 2)
		return SUCCESS;
	if (!ps_rds_link_block(&change, place, whole))
		return fail_corrupt("a list of free blocks contains something else");
	ps_rds_add_to_count(&change, PS_RDS_MERGED, *joined - 1);
	return ps_rds_apply_change(&change);
}

/* Commits the library's own transaction and begins another one. The heap is consistent at this
 * point, and one transaction may be too small for many joins. */
static int restart_transaction(rvm_tid_t *tid)
{
	rvm_return_t code = rvm_end_transaction(tid, no_flush);

	if (code == RVM_SUCCESS)
		code = rvm_begin_transaction(tid, restore);
	ps_rds.user = *tid;
	return code == RVM_SUCCESS ? SUCCESS
	                           : ps_rds_fail_rvm(code, "free blocks cannot be joined");
}

static int count_join_pass(rvm_tid_t *tid, uint64_t unmerged)
{
	struct ps_rds_change change = { .tid = tid };

	ps_rds_add_to_count(&change, PS_RDS_COALESCE, 1);
	ps_rds_add_to_count(&change, PS_RDS_UNMERGED, unmerged);
	return ps_rds_apply_change(&change);
}

int ps_rds_join_free_blocks(rvm_tid_t *tid, uint64_t chunks)
{
	struct ps_rds_change none = { 0 };
	uint64_t place = ps_rds.first, unmerged = 0, next;
	unsigned joined, batches = 0;
	int code = SUCCESS;

	while (code == SUCCESS && place < ps_rds.end) {
		code = join_run(tid, place, &next, &joined);
		unmerged += joined == 1;
		if (code == SUCCESS && joined > 1 &&
		    ps_rds_block_length(&none, place, PS_RDS_FREED) >= chunks)
			break;
		if (code == SUCCESS && joined > 1 && ps_rds.own && ++batches % BATCHES == 0)
			code = restart_transaction(tid);
		/* If all PS_RDS_JOINED blocks were joined, more may follow: look at the joined
		 * block again. */
		if (joined != PS_RDS_JOINED)
			place = next;
	}
	return code == SUCCESS ? count_join_pass(tid, unmerged) : code;
}
