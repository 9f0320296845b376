/*
 * tx.c - transactions: begin, declare, commit, abort. Programs call this for every change. So
 * nothing here takes a lock of this library, except to find a free slot.
 */
#include "cancel.h"
#include "fail.h"
#include "rvm_statistics.h"
#include "state.h"

#include <string.h>

/* Increments a counter that only the calling thread changes. */
static inline void increment_counter(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
}

/* Returns the slot that a record names or named last, or NULL. */
static inline struct ps_rvm_slot *last_slot(const rvm_tid_t *tid)
{
	return ps_rvm_slot_at(ps_rvm_slot_index(tid->reserved));
}

/* Returns true if the record names the slot's transaction and the transaction is open. */
static inline bool names_open_transaction(const rvm_tid_t *tid, const struct ps_rvm_slot *slot)
{
	return slot && slot == tid->tid && tid->reserved &&
	       atomic_load_explicit(&slot->name, memory_order_relaxed) == tid->reserved;
}

/* Returns the slot of the open transaction that a record names, or NULL. */
static inline struct ps_rvm_slot *find_slot(const rvm_tid_t *tid)
{
	struct ps_rvm_slot *slot;

	if (!tid || tid->struct_id != rvm_tid_id)
		return NULL;
	slot = last_slot(tid);
	return names_open_transaction(tid, slot) ? slot : NULL;
}

static rvm_return_t fail_no_transaction(void)
{
	if (!ps_rvm_store())
		return ps_rvm_fail_no_store();
	return ps_rvm_fail(RVM_ETID, "the record names no transaction that is open: it was not "
	                             "begun, or has ended");
}

static void free_transaction(struct ps_rvm_slot *slot, rvm_tid_t *tid)
{
	ps_rvm_slot_free(slot);
	tid->tid = NULL;
}

/* --- begin --- */

static rvm_return_t begin_fault(const rvm_tid_t *tid, rvm_mode_t mode)
{
	if (!tid || tid->struct_id != rvm_tid_id)
		return ps_rvm_fail(RVM_ETID, "tid is not an initialized rvm_tid_t: call "
		                             "rvm_init_tid first");
	if (mode != restore && mode != no_restore)
		return ps_rvm_fail(RVM_EMODE, "a transaction begins with restore or no_restore");
	if (names_open_transaction(tid, last_slot(tid)))
		return ps_rvm_fail(RVM_ETID,
		                   "the record names a transaction that is open: end or abort it "
		                   "first, or use another record");
	return RVM_SUCCESS;
}

rvm_return_t rvm_begin_transaction(rvm_tid_t *tid, rvm_mode_t mode)
{
	perseas_t *store = ps_rvm_store();
	struct ps_rvm_slot *slot;
	rvm_return_t code;
	int rc;

	if (!store)
		return ps_rvm_fail_no_store();
	code = begin_fault(tid, mode);
	if (code != RVM_SUCCESS)
		return code;
	slot = ps_rvm_slot_reserve(last_slot(tid));
	if (!slot)
		return ps_rvm_fail(RVM_ENO_MEMORY,
		                   "no memory for a transaction, or 65536 are open");
	rc = perseas_begin(store, 0, &slot->tx);
	if (rc) {
		ps_rvm_slot_free(slot);
		return ps_rvm_fail_store(store, rc, "no transaction can begin");
	}
	slot->last += (uint64_t)1 << PS_RVM_INDEX_BITS;
	atomic_store_explicit(&slot->name, slot->last, memory_order_release);
	ps_rvm_slot_fill_tid(slot, slot->last, tid);
	return RVM_SUCCESS;
}

/* --- ranges --- */

/* Returns the place of a length in the histogram range_lengths_dist: up to 4, 8, 16 and so on to
 * 4096 bytes, and more. */
static inline unsigned length_bucket(rvm_length_t length)
{
	if (length <= 4)
		return 1;
	return length > 4096 ? 12 : 63 - (unsigned)__builtin_clzl(length - 1);
}

/* Marks the row as touched by the transaction. The fence makes the mark visible before the first
 * page is marked dirty: truncate.c relies on that order. */
static void mark_touched(struct ps_rvm_slot *slot, unsigned row)
{
	atomic_fetch_or(&slot->touched[row / 64], (uint64_t)1 << row % 64);
	atomic_thread_fence(memory_order_seq_cst);
}

/* Marks pages that the external data segment may lack as dirty. */
static inline void mark_pages_dirty(struct ps_rvm_slot *slot, unsigned row, uint64_t offset,
                                    uint64_t length)
{
	_Atomic uint64_t *dirty = ps_rvm.pieces[row].dirty;
	const uint64_t last = (offset + length - 1) / PS_RVM_PAGE;

	if (!(atomic_load_explicit(&slot->touched[row / 64], memory_order_relaxed) >> row % 64 & 1))
		mark_touched(slot, row);
	for (uint64_t page = offset / PS_RVM_PAGE; page <= last; page++) {
		const uint64_t bit = (uint64_t)1 << page % PS_RVM_WORD;

		if (!(atomic_load_explicit(&dirty[page / PS_RVM_WORD], memory_order_relaxed) & bit))
			atomic_fetch_or(&dirty[page / PS_RVM_WORD], bit);
	}
}

static rvm_return_t fail_not_mapped(const void *dest, rvm_length_t length)
{
	return ps_rvm_fail(RVM_ENOT_MAPPED, "%lu bytes at %p are not wholly inside one region",
	                   length, dest);
}

static inline rvm_return_t declare_range(struct ps_rvm_slot *slot, void *dest, rvm_length_t length)
{
	const struct ps_rvm_piece *piece = &ps_rvm.pieces[slot->row];
	int rc;

	if (!ps_rvm_piece_has(piece, dest, length)) {
		const int row = ps_rvm_find_region(dest, length);

		if (row < 0)
			return fail_not_mapped(dest, length);
		slot->row = (uint32_t)row;
		piece = &ps_rvm.pieces[row];
	}
	rc = perseas_set_range(slot->tx, dest, length);
	if (rc)
		return ps_rvm_fail_store(ps_rvm.store, rc, "the range cannot be declared");
	/* Once declared, the region cannot be unmapped. If the program unmapped it just before, and
	 * mapped another one there, that is its fault; no dirty bit is lost. */
	if (ps_rvm_piece_has(piece, dest, length))
		mark_pages_dirty(slot, slot->row, (uint64_t)((char *)dest - (char *)piece->base),
		                 length);
	increment_counter(&slot->lengths[length_bucket(length)]);
	return RVM_SUCCESS;
}

rvm_return_t rvm_set_range(rvm_tid_t *tid, void *dest, rvm_length_t length)
{
	struct ps_rvm_slot *slot = find_slot(tid);

	if (!slot)
		return fail_no_transaction();
	return length ? declare_range(slot, dest, length) : RVM_SUCCESS;
}

rvm_return_t rvm_modify_bytes(rvm_tid_t *tid, void *dest, const void *src, rvm_length_t length)
{
	rvm_return_t code;

	if (!src && length && find_slot(tid))
		return ps_rvm_fail(RVM_ESRC, "src is NULL: pass the address of the new bytes");
	code = rvm_set_range(tid, dest, length);
	if (code == RVM_SUCCESS && length && src)
		memmove(dest, src, length);
	return code;
}

/* --- the end --- */

rvm_return_t rvm_abort_transaction(rvm_tid_t *tid)
{
	struct ps_rvm_slot *slot = find_slot(tid);
	int rc;

	if (!slot)
		return fail_no_transaction();
	rc = perseas_abort(slot->tx);
	if (rc)
		return ps_rvm_fail_store(ps_rvm.store, rc, "the transaction cannot be aborted");
	increment_counter(&slot->aborts);
	free_transaction(slot, tid);
	return RVM_SUCCESS;
}

/* Commits without waiting, and sends the commit at once even though the store gathers commits. */
__attribute__((noinline)) static int commit_at_once(struct ps_rvm_slot *slot)
{
	struct perseas_token token;
	const int rc = perseas_commit_token(slot->tx, PERSEAS_NOWAIT, &token);

	if (!rc)
		perseas_wait(ps_rvm.store, &token, 0);
	return rc;
}

static int commit_store(struct ps_rvm_slot *slot, rvm_mode_t mode)
{
	if (mode == flush)
		return perseas_commit(slot->tx, 0);
	if (atomic_load_explicit(&ps_rvm.send_at_once, memory_order_relaxed))
		return commit_at_once(slot);
	return perseas_commit(slot->tx, PERSEAS_NOWAIT);
}

rvm_return_t rvm_end_transaction(rvm_tid_t *tid, rvm_mode_t mode)
{
	struct ps_rvm_slot *slot = find_slot(tid);
	int rc;

	if (!slot)
		return fail_no_transaction();
	if (mode != flush && mode != no_flush)
		return ps_rvm_fail(RVM_EMODE, "a transaction ends with flush or no_flush");
	rc = commit_store(slot, mode);
	if (!rc || rc == PERSEAS_EINDOUBT || rc == PERSEAS_EFENCED || rc == PERSEAS_EENDED) {
		increment_counter(mode == flush ? &slot->flushes : &slot->no_flushes);
		free_transaction(slot, tid);
	}
	return rc ? ps_rvm_fail_store(ps_rvm.store, rc, "the commit failed") : RVM_SUCCESS;
}

rvm_return_t rvm_flush(void)
{
	PS_RVM_UNCANCELLED;
	perseas_t *store;
	rvm_return_t code = ps_rvm_require_store(&store);
	uint64_t begin;
	int rc;

	if (code != RVM_SUCCESS)
		return code;
	begin = ps_rvm_now_ns();
	rc = perseas_flush(store);
	ps_rvm_count_flush(ps_rvm_now_ns() - begin);
	return rc ? ps_rvm_fail_store(store, rc, "what is committed is not permanent yet")
	          : RVM_SUCCESS;
}
