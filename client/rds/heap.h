/*
 * heap.h - the layout of a heap in memory, the heap that a process has started, and changes of it.
 * All files of this room but the loader include it; it is not part of the interface.
 *
 * A heap begins with a head and the first block of each list; the rest of it is blocks. The region
 * may contain anything: a program may overwrite it, and mirrors may be hostile. So every place that
 * is read there is checked before it is used, and lengths that never change are kept outside, in
 * struct ps_rds.
 */
#ifndef PERSEAS_RDS_HEAP_H
#define PERSEAS_RDS_HEAP_H

#include "rds.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Indices of a heap's counters, in the order of rds_stats_t. */
enum ps_rds_count {
	PS_RDS_MALLOC,
	PS_RDS_PREALLOC,
	PS_RDS_FREE,
	PS_RDS_COALESCE,
	PS_RDS_HITS,
	PS_RDS_MISSES,
	PS_RDS_LARGE_LIST,
	PS_RDS_LARGE_HITS,
	PS_RDS_LARGE_MISSES,
	PS_RDS_MERGED,
	PS_RDS_UNMERGED,
	PS_RDS_FREE_BYTES,
	PS_RDS_MALLOC_BYTES,
	PS_RDS_COUNTS
};

#define PS_RDS_MAGIC "PSRDS\0\0\1" /* the last byte is the version of the layout */

struct ps_rds_head {
	char magic[8];
	uint64_t length; /* bytes of the whole heap */
	uint64_t chunk;  /* bytes of a chunk */
	/* Number of lists for blocks of 1, 2, … chunks. The list of large blocks comes after these
	 * and is not counted. */
	uint64_t nlists;
	uint64_t counts[PS_RDS_COUNTS];
	uint64_t lists[]; /* place of each list's first block; 0 if the list is empty */
};

/*
 * A block: a word with a mark and the block's length in chunks, the contents, and a mark at the
 * end. A free block contains the places of the next and the previous block of its list. A place is
 * an offset in bytes from the heap's beginning.
 */
struct ps_rds_block {
	/* PS_RDS_USED or PS_RDS_FREED in the upper 32 bits, the length in chunks below. */
	uint64_t mark;
	uint64_t next, previous;
};

#define PS_RDS_USED ((uint64_t)0x52445355 << 32)
#define PS_RDS_FREED ((uint64_t)0x52445346 << 32)
#define PS_RDS_END 0x444e455344522121u

enum {
	PS_RDS_GUARDS = 16, /* bytes of a block that its marks and its length take */
	PS_RDS_WORDS = 160, /* maximum number of words in a change */
	PS_RDS_JOINED = 32, /* maximum number of blocks that one change joins */
};

/* The heap that this process has started. */
struct ps_rds {
	pthread_mutex_t lock;
	char *base; /* NULL while no heap is started */
	uint64_t length, chunk, nlists;
	uint64_t first; /* place of the first block */
	uint64_t end;   /* place where the last block ends */
	rvm_tid_t user; /* copy of the record of the transaction that changed the heap last */
	bool own;       /* `user` belongs to this library, which may commit it in parts */
	FILE *trace;    /* file of rds_trace_on; NULL while tracing is off */
};

extern struct ps_rds ps_rds;

static inline struct ps_rds_head *ps_rds_head(void)
{
	return (struct ps_rds_head *)ps_rds.base;
}

static inline uint64_t *ps_rds_word_at(uint64_t place)
{
	return (uint64_t *)(ps_rds.base + place);
}

/* Returns the place of the head of the list for blocks of this many chunks. Large blocks share list
 * number nlists + 1. */
static inline uint64_t ps_rds_list_place(uint64_t chunks)
{
	const uint64_t index = (chunks > ps_rds.nlists ? ps_rds.nlists + 1 : chunks) - 1;

	return sizeof(struct ps_rds_head) + index * sizeof(uint64_t);
}

/* --- change.c: words that change together --- */

/* Words to be written by one ps_rds_apply_change. ps_rds_read_word sees them as if they had been
 * written. A change that cannot be declared, or that finds the heap overwritten, is dropped and
 * changes nothing. */
struct ps_rds_change {
	rvm_tid_t *tid;
	unsigned count;
	struct {
		uint64_t place, value;
	} words[PS_RDS_WORDS];
};

/* Returns the word at a place, with the change applied. */
uint64_t ps_rds_read_word(const struct ps_rds_change *change, uint64_t place);
/* Sets the word at a place. */
void ps_rds_write_word(struct ps_rds_change *change, uint64_t place, uint64_t value);
/* Add to, or subtract from, a counter in the heap's head. */
void ps_rds_add_to_count(struct ps_rds_change *change, enum ps_rds_count count, uint64_t more);
void ps_rds_subtract_from_count(struct ps_rds_change *change, enum ps_rds_count count,
                                uint64_t less);

/* Declares all words to RVM and writes them. Returns SUCCESS, or a code of RVM with nothing
 * written. */
int ps_rds_apply_change(struct ps_rds_change *change);

/* --- blocks.c: the lists, within a change --- */

/* Returns the length in chunks of the block at a place, or 0 if no intact block with that mark is
 * there. */
uint64_t ps_rds_block_length(const struct ps_rds_change *change, uint64_t place, uint64_t mark);

/* Returns how many chunks a block for `size` bytes takes, or 0 if it would exceed the heap. */
uint64_t ps_rds_chunks_for(uint64_t size);

/* Writes a block's mark and length at its beginning, and the mark at its end. */
void ps_rds_mark_block(struct ps_rds_change *change, uint64_t place, uint64_t chunks,
                       uint64_t mark);

/* Zeroes the links of a block that was taken out of its list, because they are the first 16 bytes
 * of the memory that the program gets. */
void ps_rds_clear_links(struct ps_rds_change *change, uint64_t place);

/* Put a block into the list for its length, and take a block out of its list. They return false if
 * the list has been overwritten. */
bool ps_rds_link_block(struct ps_rds_change *change, uint64_t place, uint64_t chunks);
bool ps_rds_unlink_block(struct ps_rds_change *change, uint64_t place, uint64_t chunks);

/* Sets *place to the place of a free block of at least this many chunks, or to 0 if the heap has
 * none. Returns SUCCESS or ECORRUPT. */
int ps_rds_find_free(const struct ps_rds_change *change, uint64_t chunks, uint64_t *place);

/* Joins free neighbors until a free block of at least this many chunks exists, or all are joined.
 * Returns SUCCESS in both cases. */
int ps_rds_join_free_blocks(rvm_tid_t *tid, uint64_t chunks);

/* --- use.c: one transaction at a time may change the heap --- */

/* Takes ps_rds.lock, and checks that the transaction may change the heap. If *tid is NULL, begins a
 * transaction in *own and sets *tid to it. After an error the lock is not held. */
int ps_rds_begin_change(rvm_tid_t **tid, rvm_tid_t *own);

/* Ends what ps_rds_begin_change began: commits its own transaction with no_flush, or aborts it if
 * `code` is an error, and releases the lock. Returns `code`, or the code of the commit. */
int ps_rds_end_change(rvm_tid_t *tid, rvm_tid_t *own, int code);

/* ps_rds_free_block frees a block; ps_rds_check_block only checks that it can be freed. Caller
 * holds ps_rds.lock. */
int ps_rds_free_block(rvm_tid_t *tid, const char *addr);
int ps_rds_check_block(const char *addr, uint64_t *place, uint64_t *chunks);

/* Prints a line to the trace, if tracing is on. Caller holds ps_rds.lock. */
__attribute__((format(printf, 1, 2))) void ps_rds_trace(const char *format, ...);

#endif
