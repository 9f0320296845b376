/*
 * slots.c - where open transactions are kept. A record of the program's names one by its place and
 * by how many were kept there before; so a record that was never begun, or whose transaction has
 * ended, names none, whatever it holds.
 */
#include "state.h"

#include <stdlib.h>
#include <time.h>

struct ps_rvm_slots ps_rvm_slots = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The last name that was given, in us since 1970. */
static _Atomic uint64_t last_name;

/* --- those that are free --- */

static bool take(struct ps_rvm_slot *slot)
{
	return slot && !atomic_load_explicit(&slot->taken, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&slot->taken, true, memory_order_acquire);
}

/* Whoever found one leaves the next search the one behind it. NULL: all are taken. */
static struct ps_rvm_slot *find_free(void)
{
	const uint32_t count = atomic_load_explicit(&ps_rvm_slots.count, memory_order_acquire);
	const uint32_t first = atomic_load_explicit(&ps_rvm_slots.next, memory_order_relaxed);

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t index = (first + i) % count;

		if (!take(ps_rvm_slot_at(index)))
			continue;
		atomic_store_explicit(&ps_rvm_slots.next, index + 1, memory_order_relaxed);
		return ps_rvm_slot_at(index);
	}
	return NULL;
}

/* Another block of them, all of them free, and the next to be looked at. Locked. */
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

__attribute__((noinline)) static struct ps_rvm_slot *take_another(void)
{
	struct ps_rvm_slot *slot = find_free();

	if (slot)
		return slot;
	pthread_mutex_lock(&ps_rvm_slots.lock);
	do
		slot = find_free();
	while (!slot && add_block());
	pthread_mutex_unlock(&ps_rvm_slots.lock);
	return slot;
}

/* --- what they name --- */

/* No two are alike, and later ones are greater. The seconds are true. */
static uint64_t new_name(void)
{
	const uint64_t now = (uint64_t)time(NULL) * 1000000;
	uint64_t last = atomic_load_explicit(&last_name, memory_order_relaxed), name;

	do
		name = now > last ? now : last + 1;
	while (!atomic_compare_exchange_weak_explicit(&last_name, &last, name, memory_order_relaxed,
	                                              memory_order_relaxed));
	return name;
}

struct ps_rvm_slot *ps_rvm_slot_take(struct ps_rvm_slot *last)
{
	struct ps_rvm_slot *slot = take(last) ? last : take_another();

	if (slot)
		atomic_store_explicit(&slot->uname, new_name(), memory_order_relaxed);
	return slot;
}

void ps_rvm_slot_give(struct ps_rvm_slot *slot)
{
	atomic_store_explicit(&slot->name, 0, memory_order_release);
	atomic_store_explicit(&slot->touched[0], 0, memory_order_relaxed);
	atomic_store_explicit(&slot->touched[1], 0, memory_order_relaxed);
	atomic_store_explicit(&slot->taken, false, memory_order_release);
}

void ps_rvm_slots_forget(void)
{
	const uint32_t count = atomic_exchange(&ps_rvm_slots.count, 0);

	atomic_store(&ps_rvm_slots.next, 0);
	for (uint32_t i = 0; i < count / PS_RVM_SLOT_BLOCK; i++) {
		free(ps_rvm_slots.blocks[i]);
		atomic_store(&ps_rvm_slots.blocks[i], NULL);
	}
}
