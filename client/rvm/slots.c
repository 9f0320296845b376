/*
 * slots.c - where open transactions are kept. A record of the program's names one by its place and
 * by how many were kept there before; so a record that was never begun, or whose transaction has
 * ended, names none, whatever it holds.
 */
#include "state.h"

#include <stdlib.h>
#include <time.h>

struct ps_rvm_slots ps_rvm_slots = { .lock = PTHREAD_MUTEX_INITIALIZER, .free = UINT32_MAX };

/* The last name that was given, in us since 1970. */
static _Atomic uint64_t last_name;

/* --- those that are free --- */

/* What the list's head becomes. It counts its changes, so that a slot that was taken, used and put
 * back meanwhile is not mistaken for what was seen. */
static uint64_t head_after(uint64_t head, uint32_t index)
{
	return ((head >> 32) + 1) << 32 | index;
}

static void put_slot(struct ps_rvm_slot *slot)
{
	uint64_t head = atomic_load_explicit(&ps_rvm_slots.free, memory_order_relaxed);

	do
		atomic_store_explicit(&slot->next, (uint32_t)head, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&ps_rvm_slots.free, &head,
	                                              head_after(head, slot->index),
	                                              memory_order_acq_rel, memory_order_relaxed));
}

/* NULL: none is free. */
static struct ps_rvm_slot *get_slot(void)
{
	uint64_t head = atomic_load_explicit(&ps_rvm_slots.free, memory_order_acquire);
	struct ps_rvm_slot *slot;

	do {
		if ((uint32_t)head == PS_RVM_NO_SLOT)
			return NULL;
		slot = ps_rvm_slot_at((uint32_t)head);
	} while (!atomic_compare_exchange_weak_explicit(
		&ps_rvm_slots.free, &head,
		head_after(head, atomic_load_explicit(&slot->next, memory_order_relaxed)),
		memory_order_acq_rel, memory_order_acquire));
	return slot;
}

/* Another block of them, all of them free. Locked. */
static bool add_block(void)
{
	const uint32_t count = atomic_load_explicit(&ps_rvm_slots.count, memory_order_relaxed);
	struct ps_rvm_slot *block;

	if (count == (uint32_t)PS_RVM_SLOT_BLOCK * PS_RVM_SLOT_BLOCKS)
		return false;
	block = calloc(PS_RVM_SLOT_BLOCK, sizeof(*block));
	if (!block)
		return false;
	atomic_store_explicit(&ps_rvm_slots.blocks[count / PS_RVM_SLOT_BLOCK], block,
	                      memory_order_relaxed);
	atomic_store_explicit(&ps_rvm_slots.count, count + PS_RVM_SLOT_BLOCK, memory_order_release);
	for (uint32_t i = PS_RVM_SLOT_BLOCK; i-- > 0;) {
		block[i].index = count + i;
		put_slot(&block[i]);
	}
	return true;
}

static struct ps_rvm_slot *make_slot(void)
{
	struct ps_rvm_slot *slot;

	pthread_mutex_lock(&ps_rvm_slots.lock);
	do
		slot = get_slot();
	while (!slot && add_block());
	pthread_mutex_unlock(&ps_rvm_slots.lock);
	return slot;
}

/* --- what they name --- */

/* No two are alike, and later ones are greater. */
static uint64_t new_name(void)
{
	uint64_t last = atomic_load_explicit(&last_name, memory_order_relaxed), name;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	do {
		name = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
		if (name <= last)
			name = last + 1;
	} while (!atomic_compare_exchange_weak_explicit(&last_name, &last, name,
	                                                memory_order_relaxed,
	                                                memory_order_relaxed));
	return name;
}

struct ps_rvm_slot *ps_rvm_slot_take(void)
{
	struct ps_rvm_slot *slot = get_slot();

	if (!slot)
		slot = make_slot();
	if (slot)
		atomic_store_explicit(&slot->uname, new_name(), memory_order_relaxed);
	return slot;
}

void ps_rvm_slot_give(struct ps_rvm_slot *slot)
{
	slot->tx = NULL;
	atomic_store_explicit(&slot->open, false, memory_order_release);
	atomic_store_explicit(&slot->touched[0], 0, memory_order_relaxed);
	atomic_store_explicit(&slot->touched[1], 0, memory_order_relaxed);
	atomic_store_explicit(&slot->generation,
	                      atomic_load_explicit(&slot->generation, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
	put_slot(slot);
}

void ps_rvm_slot_name(const struct ps_rvm_slot *slot, rvm_tid_t *tid)
{
	const uint64_t uname = atomic_load_explicit(&slot->uname, memory_order_relaxed);

	tid->struct_id = rvm_tid_id;
	tid->uname.tv_sec = (time_t)(uname / 1000000);
	tid->uname.tv_usec = (suseconds_t)(uname % 1000000);
	tid->tid = (void *)(uintptr_t)slot;
	tid->reserved = atomic_load_explicit(&slot->generation, memory_order_relaxed) << 16 |
	                slot->index;
}

void ps_rvm_slots_forget(void)
{
	const uint32_t count = atomic_exchange(&ps_rvm_slots.count, 0);

	atomic_store(&ps_rvm_slots.free, PS_RVM_NO_SLOT);
	for (uint32_t i = 0; i < count / PS_RVM_SLOT_BLOCK; i++) {
		free(ps_rvm_slots.blocks[i]);
		atomic_store(&ps_rvm_slots.blocks[i], NULL);
	}
}
