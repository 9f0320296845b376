/*
 * slots.c - slots for open transactions. A program's rvm_tid_t names a slot's transaction by the
 * slot's index and by a count of transactions in that slot. So a record that was never begun, or
 * whose transaction has ended, names no open transaction, whatever bytes it holds.
 */
#include "state.h"

#include <stdlib.h>
#include <time.h>

struct ps_rvm_slots ps_rvm_slots = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The last uname given out, in microseconds since 1970. */
static _Atomic uint64_t last_uname;

/* --- free slots --- */

/* Reserves the slot. Returns false if it is NULL or in use. */
static bool try_reserve(struct ps_rvm_slot *slot)
{
	return slot && !atomic_load_explicit(&slot->taken, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&slot->taken, true, memory_order_acquire);
}

/* Reserves a free slot, or returns NULL if all are in use. The next search begins after this
 * slot. */
static struct ps_rvm_slot *find_free_slot(void)
{
	const uint32_t count = atomic_load_explicit(&ps_rvm_slots.count, memory_order_acquire);
	const uint32_t first = atomic_load_explicit(&ps_rvm_slots.next, memory_order_relaxed);

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t index = (first + i) % count;

		if (!try_reserve(ps_rvm_slot_at(index)))
			continue;
		atomic_store_explicit(&ps_rvm_slots.next, index + 1, memory_order_relaxed);
		return ps_rvm_slot_at(index);
	}
	return NULL;
}

/* Adds a block of free slots, where the next search begins. Returns false if out of memory or at
 * the limit. Caller holds ps_rvm_slots.lock. */
static bool add_block(void)
{
	const uint32_t count = atomic_load_explicit(&ps_rvm_slots.count, memory_order_relaxed);
	struct ps_rvm_slot *block;

	if (count == (uint32_t)PS_RVM_SLOT_BLOCK * PS_RVM_SLOT_BLOCKS)
		return false;
	block = calloc(PS_RVM_SLOT_BLOCK, sizeof(*block));
	if (!block)
		return false;
	for (uint32_t i = 0; i < PS_RVM_SLOT_BLOCK; i++)
		block[i].last = count + i;
	atomic_store_explicit(&ps_rvm_slots.blocks[count / PS_RVM_SLOT_BLOCK], block,
	                      memory_order_relaxed);
	atomic_store_explicit(&ps_rvm_slots.count, count + PS_RVM_SLOT_BLOCK, memory_order_release);
	atomic_store_explicit(&ps_rvm_slots.next, count, memory_order_relaxed);
	return true;
}

__attribute__((noinline)) static struct ps_rvm_slot *reserve_other(void)
{
	struct ps_rvm_slot *slot = find_free_slot();

	if (slot)
		return slot;
	pthread_mutex_lock(&ps_rvm_slots.lock);
	do
		slot = find_free_slot();
	while (!slot && add_block());
	pthread_mutex_unlock(&ps_rvm_slots.lock);
	return slot;
}

/* --- names --- */

/* Returns a uname: unique in the process, increasing, and true to the second. */
static uint64_t make_uname(void)
{
	const uint64_t now = (uint64_t)time(NULL) * 1000000;
	uint64_t last = atomic_load_explicit(&last_uname, memory_order_relaxed), name;

	do
		name = now > last ? now : last + 1;
	while (!atomic_compare_exchange_weak_explicit(&last_uname, &last, name,
	                                              memory_order_relaxed, memory_order_relaxed));
	return name;
}

struct ps_rvm_slot *ps_rvm_slot_reserve(struct ps_rvm_slot *last)
{
	struct ps_rvm_slot *slot = try_reserve(last) ? last : reserve_other();

	if (slot)
		atomic_store_explicit(&slot->uname, make_uname(), memory_order_relaxed);
	return slot;
}

void ps_rvm_slot_free(struct ps_rvm_slot *slot)
{
	atomic_store_explicit(&slot->name, 0, memory_order_release);
	atomic_store_explicit(&slot->touched[0], 0, memory_order_relaxed);
	atomic_store_explicit(&slot->touched[1], 0, memory_order_relaxed);
	atomic_store_explicit(&slot->taken, false, memory_order_release);
}

void ps_rvm_free_all_slots(void)
{
	const uint32_t count = atomic_exchange(&ps_rvm_slots.count, 0);

	atomic_store(&ps_rvm_slots.next, 0);
	for (uint32_t i = 0; i < count / PS_RVM_SLOT_BLOCK; i++) {
		free(ps_rvm_slots.blocks[i]);
		atomic_store(&ps_rvm_slots.blocks[i], NULL);
	}
}
