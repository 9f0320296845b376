/*
 * state.h - what the library knows while it runs: the store that is its log, the regions, and the
 * transactions that are open. All files of this room include it; it is no part of the interface.
 *
 * There is one of it in a process, as RVM has it. Its lock keeps apart what changes options,
 * regions and the table of segments; transactions do without.
 */
#ifndef PERSEAS_RVM_STATE_H
#define PERSEAS_RVM_STATE_H

#include "rvm.h"

#include "../perseas.h"
#include "table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
	PS_RVM_PAGE = 4096, /* the grain in which it is noted what has changed */
	PS_RVM_WORD = 64,   /* pages in a word of such notes */
	PS_RVM_SLOT_BLOCK = 64,
	PS_RVM_SLOT_BLOCKS = 1024,
	PS_RVM_INDEX_BITS = 16,  /* of a slot, in a name */
	PS_RVM_HELD_US = 1000000 /* how long RVM_COALESCE_TRANS holds a transaction back */
};

/* The part of a segment that a row of the table is about. */
struct ps_rvm_piece {
	char *_Atomic base;      /* where it is mapped as a region; NULL: it is not */
	_Atomic uint64_t length; /* bytes */
	_Atomic uint64_t *dirty; /* pages that may differ from the external data segment, a bit for
	                            each; NULL: the row is not used */
	bool lent;               /* the memory there was the caller's, and is given back */
};

/* Where a transaction is kept while it is open. Those that end are used again, and never freed. */
struct ps_rvm_slot {
	perseas_tx_t *tx;
	_Atomic uint64_t name;       /* what its record holds; 0: none is open */
	uint64_t last;               /* the last name: how many were kept here, above the index */
	_Atomic uint64_t uname;      /* seconds since 1970, times a million, and a count */
	_Atomic bool taken;          /* by a transaction, which is open or about to begin or end */
	_Atomic uint64_t touched[2]; /* pieces that it declared bytes of, a bit for each row */
	uint32_t row;                /* of the region that it declared bytes of last */
	/* Counts, which only the thread that has the transaction changes. */
	_Atomic uint64_t aborts, flushes, no_flushes, lengths[13];
};

struct ps_rvm_place; /* log_name.h */

struct ps_rvm {
	pthread_mutex_t lock;
	_Atomic int phase;           /* enum ps_rvm_phase */
	perseas_t *_Atomic store;    /* the log; NULL: none is open */
	char log_name[MAXPATHLEN];   /* log_dev as it was given */
	rvm_options_t options;       /* in force; without pointers */
	_Atomic bool send_at_once;   /* the store gathers, and is not to */
	bool gathers;                /* the store was opened so */
	struct ps_rvm_table *table;  /* the segment of the store */
	bool named[PS_RVM_SEGMENTS]; /* rows of segments that the program has mapped regions of */
	struct ps_rvm_piece pieces[PS_RVM_PIECES];
};

enum ps_rvm_phase { PS_RVM_NEW, PS_RVM_READY, PS_RVM_OVER };

extern struct ps_rvm ps_rvm;

/* The store, or NULL: then the next function says why there is none, as RVM_EINIT or RVM_ELOG. */
static inline perseas_t *ps_rvm_store(void)
{
	return atomic_load_explicit(&ps_rvm.store, memory_order_acquire);
}

rvm_return_t ps_rvm_no_store(void);

/* RVM_SUCCESS and the store in *store, or RVM_EINIT or RVM_ELOG. */
rvm_return_t ps_rvm_ready(perseas_t **store);

/* --- init.c --- */

/* Forgets everything, as a new process would: for tests. */
void ps_rvm_forget(void);

/* --- options.c --- */

/* Checks options that are given, and takes them over. Locked. */
rvm_return_t ps_rvm_take_options(const rvm_options_t *options);

/* --- log.c --- */

/* Opens the store that a log's name means, with its table. Locked. */
rvm_return_t ps_rvm_open_log(const rvm_options_t *options);
/* Closes it; regions are gone then. Locked. A code of perseas_close. */
int ps_rvm_close_log(void);

/* --- slots.c --- */

/* One that is free: `last` if it is, which a record had before, and may be NULL. NULL: memory is
 * out. */
struct ps_rvm_slot *ps_rvm_slot_take(struct ps_rvm_slot *last);
void ps_rvm_slot_give(struct ps_rvm_slot *slot);

/* All of them, in blocks, which stay where they are. */
struct ps_rvm_slots {
	pthread_mutex_t lock; /* of who adds a block */
	struct ps_rvm_slot *_Atomic blocks[PS_RVM_SLOT_BLOCKS];
	_Atomic uint32_t count; /* slots that there are */
	_Atomic uint32_t next;  /* where a free one is looked for first */
};
extern struct ps_rvm_slots ps_rvm_slots;

/* The slots in turn, from 0; NULL: there are no more. */
static inline struct ps_rvm_slot *ps_rvm_slot_at(uint32_t index)
{
	if (index >= atomic_load_explicit(&ps_rvm_slots.count, memory_order_acquire))
		return NULL;
	return &atomic_load_explicit(&ps_rvm_slots.blocks[index / PS_RVM_SLOT_BLOCK],
	                             memory_order_relaxed)[index % PS_RVM_SLOT_BLOCK];
}

void ps_rvm_slots_forget(void);

/* The index of the slot that a name is of. */
static inline uint32_t ps_rvm_slot_index(uint64_t name)
{
	return name & ((1 << PS_RVM_INDEX_BITS) - 1);
}

/* The record of a transaction that is kept there under that name. */
static inline void ps_rvm_slot_name(const struct ps_rvm_slot *slot, uint64_t name, rvm_tid_t *tid)
{
	const uint64_t uname = atomic_load_explicit(&slot->uname, memory_order_relaxed);

	tid->struct_id = rvm_tid_id;
	tid->uname.tv_sec = (time_t)(uname / 1000000);
	tid->uname.tv_usec = (suseconds_t)(uname % 1000000);
	tid->tid = (void *)(uintptr_t)slot;
	tid->reserved = name;
}

static inline bool ps_rvm_slot_touches(const struct ps_rvm_slot *slot, unsigned row)
{
	return atomic_load(&slot->name) && atomic_load(&slot->touched[row / 64]) >> row % 64 & 1;
}

/* --- map.c --- */

/* Is it mapped as a region, and has all of these bytes? */
static inline bool ps_rvm_piece_has(const struct ps_rvm_piece *piece, const void *addr,
                                    rvm_length_t length)
{
	const char *base = atomic_load_explicit(&piece->base, memory_order_acquire);
	const uint64_t whole = atomic_load_explicit(&piece->length, memory_order_relaxed);
	const uint64_t offset = (uint64_t)((uintptr_t)addr - (uintptr_t)base);

	return base && offset < whole && length <= whole - offset;
}

/* The row of the region that all of these bytes lie in, or -1. Takes no lock: while a transaction
 * has declared bytes of a region, that cannot be unmapped. */
int ps_rvm_region_at(const void *addr, rvm_length_t length);

/* Notes for a row that its external data segment lacks all of it, or nothing. False: memory is
 * out. Locked. */
bool ps_rvm_piece_begin(unsigned row, uint64_t length, bool dirty);
void ps_rvm_piece_end(unsigned row);

/* Memory of the caller's that was replaced is there again, as zeros, unless something else has come
 * there meanwhile. */
void ps_rvm_give_memory(void *base, uint64_t length);

/* Are there pages that an external data segment lacks? Locked. */
bool ps_rvm_dirty(void);

/* --- statistics.c --- */

/* Where statistics count since: before a store is used, and after a truncation, which took this
 * long. Locked. */
void ps_rvm_count_begin(void);
void ps_rvm_count_truncation(uint64_t copied_ns, uint64_t written_ns);
void ps_rvm_count_flush(uint64_t took_ns);
uint64_t ps_rvm_now(void);

#endif
