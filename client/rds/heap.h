/*
 * heap.h - the bytes of a heap, the heap that a process has, and changes of it. All files of this
 * room but the loader include it; it is no part of the interface.
 *
 * A heap begins with a head and the first block of each list, and then has nothing but blocks. What
 * the region holds may be anything, when a program writes where it should not, or when mirrors are
 * not to be trusted: no place that is read there is used before it was checked, and lengths that
 * do not change are kept outside (struct ps_rds).
 */
#ifndef PERSEAS_RDS_HEAP_H
#define PERSEAS_RDS_HEAP_H

#include "rds.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

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

#define PS_RDS_MAGIC "PSRDS\0\0\1" /* the last byte is the version */

struct ps_rds_head {
	char magic[8];
	uint64_t length; /* bytes, with this */
	uint64_t chunk;  /* bytes */
	uint64_t nlists; /* without that of large blocks, which is behind them */
	uint64_t counts[PS_RDS_COUNTS];
	uint64_t lists[]; /* places of their first blocks; 0: empty */
};

/*
 * A block: a word with a mark and its length in chunks, what is in it, and a mark at its end. A
 * free one has the places of the next and the previous one of its list. Places are in bytes from
 * the heap's beginning.
 */
struct ps_rds_block {
	uint64_t mark; /* PS_RDS_USED or PS_RDS_FREED, and the length */
	uint64_t next, previous;
};

#define PS_RDS_USED ((uint64_t)0x52445355 << 32)
#define PS_RDS_FREED ((uint64_t)0x52445346 << 32)
#define PS_RDS_END 0x444e455344522121u

enum { PS_RDS_GUARDS = 16, PS_RDS_WORDS = 160, PS_RDS_JOINED = 32 };

/* The heap that the process has. */
struct ps_rds {
	pthread_mutex_t lock;
	char *base; /* NULL: none is started */
	uint64_t length, chunk, nlists;
	uint64_t first; /* the place of the first block */
	uint64_t end;   /* and where the last one ends */
	rvm_tid_t user; /* a copy of the record of the transaction that changed it last */
	bool own;       /* that is this library's, and may be committed in parts */
	FILE *trace;
};

extern struct ps_rds ps_rds;

static inline struct ps_rds_head *ps_rds_head(void)
{
	return (struct ps_rds_head *)ps_rds.base;
}

static inline uint64_t *ps_rds_word(uint64_t place)
{
	return (uint64_t *)(ps_rds.base + place);
}

/* The place of a list's first block; that of large blocks is number nlists + 1. */
static inline uint64_t ps_rds_list(uint64_t chunks)
{
	const uint64_t index = (chunks > ps_rds.nlists ? ps_rds.nlists + 1 : chunks) - 1;

	return sizeof(struct ps_rds_head) + index * sizeof(uint64_t);
}

/* --- change.c: words that are to be changed together --- */

/* They are kept aside, and what is read is as if they were written; so a change that cannot be
 * declared, or finds that the heap is overwritten, changes nothing. */
struct ps_rds_change {
	rvm_tid_t *tid;
	unsigned count;
	struct {
		uint64_t place, value;
	} words[PS_RDS_WORDS];
};

uint64_t ps_rds_read(const struct ps_rds_change *change, uint64_t place);
void ps_rds_write(struct ps_rds_change *change, uint64_t place, uint64_t value);
void ps_rds_add(struct ps_rds_change *change, enum ps_rds_count count, uint64_t more);
void ps_rds_take(struct ps_rds_change *change, enum ps_rds_count count, uint64_t less);

/* Declares all words, and writes them. SUCCESS, or a code of RVM's and nothing is written. */
int ps_rds_apply(struct ps_rds_change *change);

/* --- blocks.c: the lists, within a change --- */

/* The length in chunks of the block at that place, if it is whole and has that mark; else 0. */
uint64_t ps_rds_block(const struct ps_rds_change *change, uint64_t place, uint64_t mark);

/* How many chunks a request takes; 0: more than any heap has. */
uint64_t ps_rds_chunks(uint64_t size);

/* Marks a block, at both ends. */
void ps_rds_mark(struct ps_rds_change *change, uint64_t place, uint64_t chunks, uint64_t mark);

/* Writes zeros over the links of a block that was taken out of its list: the first 16 bytes of what
 * the program gets. */
void ps_rds_clear_links(struct ps_rds_change *change, uint64_t place);

/* Puts a block that has its length into its list, and takes one out. False: the list is
 * overwritten. */
bool ps_rds_push(struct ps_rds_change *change, uint64_t place, uint64_t chunks);
bool ps_rds_unlink(struct ps_rds_change *change, uint64_t place, uint64_t chunks);

/* The first free block of at least so many chunks: its place, 0: there is none. SUCCESS or
 * ECORRUPT. */
int ps_rds_find(const struct ps_rds_change *change, uint64_t chunks, uint64_t *place);

/* Joins free neighbours until there is a block of so many chunks. SUCCESS also if there is none. */
int ps_rds_join(rvm_tid_t *tid, uint64_t chunks);

/* --- use.c: who may change the heap --- */

/* Takes the lock. With NULL begins *own and sets *tid to it. After an error the lock is free. */
int ps_rds_enter(rvm_tid_t **tid, rvm_tid_t *own);

/* Ends what ps_rds_enter began: commits with no_flush, or aborts if the code is one of an error.
 * Returns the code, or that of the commit. */
int ps_rds_leave(rvm_tid_t *tid, rvm_tid_t *own, int code);

/* Frees a block, and checks that it can be freed. Entered. */
int ps_rds_free_block(rvm_tid_t *tid, const char *addr);
int ps_rds_check_block(const char *addr, uint64_t *place, uint64_t *chunks);

/* A line of the trace, if there is one. Locked. */
__attribute__((format(printf, 1, 2))) void ps_rds_trace(const char *format, ...);

#endif
