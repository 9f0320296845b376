/*
 * state.h - the state of the library in a process: the store that serves as the log, the regions,
 * and the open transactions. All files of this room include it; it is not part of the interface.
 *
 * A process has one such state, as in RVM. Its lock serializes changes of options, regions and the
 * table of segments. Transactions do not take it.
 */
#ifndef PERSEAS_RVM_STATE_H
#define PERSEAS_RVM_STATE_H

#include "rvm.h"

#include "../perseas.h"
#include "table.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
	PS_RVM_PAGE = 4096, /* bytes of the piece */
	PS_RVM_WORD = 64,   /* pages per word of a piece's dirty bitmap */
	PS_RVM_SLOT_BLOCK = 64,
	PS_RVM_SLOT_BLOCKS = 1024,
	/* Low bits of a transaction's name that hold the index of its slot. */
	PS_RVM_INDEX_BITS = 16,
	PS_RVM_DELAY_MAX_US =
		1000000 /* longest time that RVM_COALESCE_TRANS delays a transaction */
};

/* The state in this process of a piece of a segment. ps_rvm.pieces[i] is the state of the piece in
 * row i of the table. */
struct ps_rvm_piece {
	/* Address of the region that it is mapped as; NULL while it is not mapped. */
	char *_Atomic base;
	_Atomic uint64_t length; /* bytes */
	/* A bit for each page that may differ from the external data segment; NULL if the row is
	 * free. */
	_Atomic uint64_t *dirty;
	/* The region is mapped over the caller's own memory, and rvm_unmap must map zeroed memory
	 * there again. */
	bool replaces_memory;
};

/* A slot holds one open transaction. Slots are reused, and freed only by ps_rvm_free_all_slots. */
struct ps_rvm_slot {
	perseas_tx_t *tx;
	/* Name of the open transaction, also in the program's rvm_tid_t; 0 if none is open. */
	_Atomic uint64_t name;
	/* Name of the last transaction here: a count above PS_RVM_INDEX_BITS bits of the slot's
	 * index. */
	uint64_t last;
	/* rvm_tid_t.uname as microseconds since 1970, unique in the process. */
	_Atomic uint64_t uname;
	/* The slot is in use: its transaction is open, about to begin, or about to end. */
	_Atomic bool taken;
	/* A bit for each row of the table, set if the transaction has declared bytes of the row's
	 * piece. */
	_Atomic uint64_t touched[2];
	/* Row of the region that the transaction declared bytes of last. */
	uint32_t row;
	/* Statistics, changed only by the thread that runs the transaction. */
	_Atomic uint64_t aborts, flushes, no_flushes, lengths[13];
};

struct ps_rvm_parsed_log; /* declared in log_name.h */

struct ps_rvm {
	pthread_mutex_t lock;
	_Atomic int phase; /* enum ps_rvm_phase */
	/* The store that serves as the log; NULL while no log is open. */
	perseas_t *_Atomic store;
	char log_name[MAXPATHLEN]; /* rvm_options_t.log_dev as the program gave it */
	rvm_options_t options;     /* the options in force; their pointers are NULL */
	/* Commits are sent at once although the store gathers them, because the options in force
	 * lack RVM_COALESCE_TRANS. */
	_Atomic bool send_at_once;
	/* The store was opened with RVM_COALESCE_TRANS, so it gathers commits. */
	bool gathers;
	struct ps_rvm_table *table; /* the store's segment "rvm.table" */
	/* A flag for each segment that the program itself has named in rvm_map. rvm_truncate writes
	 * no other files. */
	bool named[PS_RVM_SEGMENTS];
	struct ps_rvm_piece pieces[PS_RVM_PIECES];
};

enum ps_rvm_phase {
	PS_RVM_PHASE_NEW,        /* rvm_initialize was not called yet */
	PS_RVM_PHASE_READY,      /* the library is initialized; a log may be open */
	PS_RVM_PHASE_TERMINATED, /* rvm_terminate was called */
};

extern struct ps_rvm ps_rvm;

/* Asserts that the caller holds ps_rvm.lock. Too slow for functions that run in every
 * transaction. */
static inline void ps_rvm_assert_locked(void)
{
	assert(pthread_mutex_trylock(&ps_rvm.lock) == EBUSY);
}

/* Returns the store, or NULL if no log is open. ps_rvm_fail_no_store then returns the reason. */
static inline perseas_t *ps_rvm_store(void)
{
	return atomic_load_explicit(&ps_rvm.store, memory_order_acquire);
}

/* Fails with the reason why no log is open: RVM_EINIT or RVM_ELOG. */
rvm_return_t ps_rvm_fail_no_store(void);

/* Sets *store to the open store. Returns RVM_SUCCESS, or fails with RVM_EINIT or RVM_ELOG if no log
 * is open. */
rvm_return_t ps_rvm_require_store(perseas_t **store);

/* --- init.c --- */

/* Resets the library to the state of a new process. Only for tests. */
void ps_rvm_reset(void);

/* --- options.c --- */

/* Checks the program's options and puts them in force; opens the log if they name one and none is
 * open. Caller holds ps_rvm.lock. */
rvm_return_t ps_rvm_apply_options(const rvm_options_t *options);

/* --- log.c --- */

/* Opens the store that options->log_dev names, and its table. Caller holds ps_rvm.lock. */
rvm_return_t ps_rvm_open_log(const rvm_options_t *options);
/* Closes the store, which unmaps all regions. Returns a code of perseas_close. Caller holds
 * ps_rvm.lock. */
int ps_rvm_close_log(void);

/* --- slots.c --- */

/* Reserves a free slot and returns it: `last` if it is not NULL and free, else another one. Returns
 * NULL if out of memory. */
struct ps_rvm_slot *ps_rvm_slot_reserve(struct ps_rvm_slot *last);
/* Frees the slot of a transaction that has ended. */
void ps_rvm_slot_free(struct ps_rvm_slot *slot);

/* All slots, in blocks that never move. */
struct ps_rvm_slots {
	pthread_mutex_t lock; /* serializes threads that add a block */
	struct ps_rvm_slot *_Atomic blocks[PS_RVM_SLOT_BLOCKS];
	_Atomic uint32_t count; /* number of slots */
	_Atomic uint32_t next;  /* index where the next search for a free slot begins */
};
extern struct ps_rvm_slots ps_rvm_slots;

/* Returns the slot with this index, or NULL if there are fewer slots. */
static inline struct ps_rvm_slot *ps_rvm_slot_at(uint32_t index)
{
	if (index >= atomic_load_explicit(&ps_rvm_slots.count, memory_order_acquire))
		return NULL;
	return &atomic_load_explicit(&ps_rvm_slots.blocks[index / PS_RVM_SLOT_BLOCK],
	                             memory_order_relaxed)[index % PS_RVM_SLOT_BLOCK];
}

/* Frees all slots. Only for tests. */
void ps_rvm_free_all_slots(void);

/* Returns the index of the slot that a transaction's name belongs to. */
static inline uint32_t ps_rvm_slot_index(uint64_t name)
{
	return name & ((1 << PS_RVM_INDEX_BITS) - 1);
}

/* Fills in *tid so that it names the transaction `name` in the slot. */
static inline void ps_rvm_slot_fill_tid(const struct ps_rvm_slot *slot, uint64_t name,
                                        rvm_tid_t *tid)
{
	const uint64_t uname = atomic_load_explicit(&slot->uname, memory_order_relaxed);

	tid->struct_id = rvm_tid_id;
	tid->uname.tv_sec = (time_t)(uname / 1000000);
	tid->uname.tv_usec = (suseconds_t)(uname % 1000000);
	tid->tid = (void *)(uintptr_t)slot;
	tid->reserved = name;
}

/* Returns true if the slot's open transaction has declared bytes of the row's piece. */
static inline bool ps_rvm_slot_touches(const struct ps_rvm_slot *slot, unsigned row)
{
	return atomic_load(&slot->name) && atomic_load(&slot->touched[row / 64]) >> row % 64 & 1;
}

/* --- map.c --- */

/* Returns true if the piece is mapped as a region that contains all of these bytes. */
static inline bool ps_rvm_piece_has(const struct ps_rvm_piece *piece, const void *addr,
                                    rvm_length_t length)
{
	const char *base = atomic_load_explicit(&piece->base, memory_order_acquire);
	const uint64_t whole = atomic_load_explicit(&piece->length, memory_order_relaxed);
	const uint64_t offset = (uint64_t)((uintptr_t)addr - (uintptr_t)base);

	return base && offset < whole && length <= whole - offset;
}

/* Returns the row of the region that contains all of these bytes, or -1. Takes no lock: a region
 * cannot be unmapped while an open transaction has declared bytes of it. */
int ps_rvm_find_region(const void *addr, rvm_length_t length);

/* Initializes the state of a row's piece. `dirty` tells whether its pages may differ from the
 * external data segment. Returns false if out of memory. Caller holds ps_rvm.lock. */
bool ps_rvm_piece_init(unsigned row, uint64_t length, bool dirty);
/* Frees the state of a row's piece. Caller holds ps_rvm.lock. */
void ps_rvm_piece_free(unsigned row);

/* Maps zeroed memory where a region had replaced memory of the caller. Does nothing if something
 * else has been mapped there since. */
void ps_rvm_return_memory(void *base, uint64_t length);

/* Returns true if any page may differ from its external data segment. Caller holds ps_rvm.lock. */
bool ps_rvm_has_dirty_pages(void);

/* --- statistics.c --- */

/* ps_rvm_reset_statistics starts all statistics anew when a log is opened. ps_rvm_count_truncation
 * adds a truncation, with the time it took to copy and to write, and starts the figures "since the
 * last truncation" anew. ps_rvm_count_flush adds a call of rvm_flush. Caller holds ps_rvm.lock,
 * except for ps_rvm_count_flush. */
void ps_rvm_reset_statistics(void);
void ps_rvm_count_truncation(uint64_t copied_ns, uint64_t written_ns);
void ps_rvm_count_flush(uint64_t took_ns);
/* Returns the monotonic time in nanoseconds. */
uint64_t ps_rvm_now_ns(void);

#endif
