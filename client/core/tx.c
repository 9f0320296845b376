/*
 * tx.c - the pool of transactions and the list of open ones: how one begins and ends, and how other
 * threads read what open ones changed.
 */
#include "tx.h"

#include "../../proto/image/undo.h"
#include "serialization.h"
#include "gather.h"
#include "deferred_stores.h"
#include "mirror.h"
#include "shadow.h"
#include "timing.h"
#include "track.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_CAPACITY = 4096,
	CHECKED = PERSEAS_CHECK_OVERLAP | PERSEAS_CHECK_WRITES,
};

/* Adds `delta` (1, -1 or 0) to the number of threads that read the open transactions of others.
 * When it falls to 0, `has_observers` becomes false: a set_range that reads false is ordered after
 * every read of the threads that were counted before. */
static void change_observer_count(struct perseas *p, int delta)
{
	pthread_mutex_lock(&p->lock);
	assert(delta >= 0 || p->observing.observer_count > 0);
	p->observing.observer_count += (unsigned)delta;
	atomic_store_explicit(&p->observing.has_observers,
	                      p->options.flags & CHECKED || !p->observing.has_barrier ||
	                              p->observing.observer_count,
	                      memory_order_release);
	pthread_mutex_unlock(&p->lock);
}

void ps_tx_init_observing(struct perseas *p)
{
	p->observing.has_barrier = p->env->ops->barrier(p->env);
	change_observer_count(p, 0);
}

static struct perseas_tx *new_transaction(struct perseas *p)
{
	struct perseas_tx *tx = calloc(1, sizeof(*tx));

	if (!tx)
		return NULL;
	tx->record = aligned_alloc(PS_ALIGN, FIRST_CAPACITY + PS_RECORD_SLACK);
	if (!tx->record || ps_cover_reserve_span(&tx->cover) < 0) {
		free(tx->record);
		free(tx);
		return NULL;
	}
	memset(tx->record, 0, sizeof(struct ps_record));
	tx->record_capacity = FIRST_CAPACITY;
	tx->p = p;
	ps_tx_update_room(tx);
	tx->next_in_pool = p->commit.all_list;
	p->commit.all_list = tx;
	__atomic_fetch_add(&p->commit.stat.allocations, 3, __ATOMIC_RELAXED);
	return tx;
}

static void push_tx(struct perseas_tx **list, struct perseas_tx *tx)
{
	tx->previous = NULL;
	tx->next = *list;
	if (tx->next)
		tx->next->previous = tx;
	*list = tx;
}

static void remove_tx(struct perseas_tx **list, struct perseas_tx *tx)
{
	if (tx->previous)
		tx->previous->next = tx->next;
	else
		*list = tx->next;
	if (tx->next)
		tx->next->previous = tx->previous;
}

/* Resets a transaction to the state in which it has declared nothing. */
static inline void reset_tx(struct perseas_tx *tx)
{
	tx->timing = ps_timing_choose(tx->p);
	tx->record_length = sizeof(struct ps_record);
	tx->range_count = 0;
	tx->last_entry_offset = 0;
	for (unsigned i = 0; i < PS_SEGMENTS_MAX / 64; i++)
		atomic_store_explicit(&tx->touched_segments[i], 0, memory_order_relaxed);
}

int ps_tx_begin(struct perseas *p, struct perseas_tx **out)
{
	struct perseas_tx *tx;
	int rc = ps_check_may_transact(p);

	if (rc)
		return rc;
	if (p->commit.tracked_tx)
		return ps_fail_tracked_tx_is_open(p);
	tx = p->commit.free_list;
	if (tx)
		remove_tx(&p->commit.free_list, tx);
	else if (!(tx = new_transaction(p)))
		return ps_fail(p, PERSEAS_ENOMEM, "no memory for a transaction");
	assert(!tx->is_open && !tx->traits);
	push_tx(&p->commit.open_list, tx);
	tx->is_open = true;
	tx->begun_seq = p->commit.seq;
	reset_tx(tx);
	*out = tx;
	return 0;
}

void ps_tx_reset_open(struct perseas_tx *tx)
{
	ps_assert_locked(tx->p);
	if (tx->traits & PS_TX_SAVEPOINTS)
		ps_savepoints_end(tx);
	if (tx->deferred)
		ps_deferred_end(tx);
	ps_cover_clear(&tx->cover);
	reset_tx(tx);
	if (tx->traits & PS_TX_TRACKED)
		ps_track_touch_all_segments(tx);
}

static void end_traits(struct perseas_tx *tx)
{
	if (tx->traits & PS_TX_REDECLARED)
		tx->p->commit.stat.saved_within += tx->redeclared_bytes;
	tx->redeclared_bytes = 0;
	tx->traits &= (uint8_t)~PS_TX_REDECLARED;
	if (tx->traits & PS_TX_SAVEPOINTS)
		ps_savepoints_end(tx);
	if (tx->traits & PS_TX_TRACKED)
		ps_track_end(tx);
	if (tx->traits & (PS_TX_SERIAL | PS_TX_LOCKS))
		ps_serialization_end_tx(tx);
	assert(!tx->traits);
}

void ps_tx_end(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;

	assert(tx->is_open);
	tx->is_open = false;
	if (tx->deferred)
		ps_deferred_end(tx);
	if (tx->traits)
		end_traits(tx);
	ps_cover_clear(&tx->cover);
	remove_tx(&p->commit.open_list, tx);
	push_tx(&p->commit.free_list, tx);
}

void ps_tx_free_all(struct perseas *p)
{
	struct perseas_tx *tx = p->commit.all_list;

	while (tx) {
		struct perseas_tx *next = tx->next_in_pool;

		ps_deferred_free(tx);
		ps_cover_free(&tx->cover);
		ps_savepoints_free(tx);
		free(tx->record);
		free(tx);
		tx = next;
	}
}

/* Returns true if a thread is inside a set_range that does not hold p->lock. */
static bool is_any_declaring(struct perseas *p)
{
	bool any = false;

	pthread_mutex_lock(&p->lock);
	for (const struct perseas_tx *tx = p->commit.open_list; tx; tx = tx->next)
		any |= ps_section_is_entered(&tx->set_range_section);
	pthread_mutex_unlock(&p->lock);
	return any;
}

void ps_tx_observe_begin(struct perseas *p)
{
	change_observer_count(p, 1);
	/* Without barriers set_range always takes the lock. */
	if (p->observing.has_barrier)
		ps_section_fence(p->env);
	while (is_any_declaring(p))
		ps_section_closer_sleep_briefly(p->env);
}

void ps_tx_observe_end(struct perseas *p)
{
	change_observer_count(p, -1);
}

/* Returns a cursor over the entries of the transaction's record. */
static struct ps_cursor entries_of_record(const struct perseas_tx *tx)
{
	return (struct ps_cursor){ tx->record + sizeof(struct ps_record),
		                   tx->record + tx->record_length, tx->range_count, true };
}

void ps_tx_copy_committed(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                          uint8_t *bytes, uint64_t length)
{
	struct ps_window window = { .offset = offset, .length = length, .segment = segment->id };

	ps_assert_locked(p);
	window.bytes = bytes;
	if (segment->shadow) {
		memcpy(bytes, segment->shadow + offset, length);
		ps_gather_restore_window(p, &window);
		return;
	}
	assert(p->observing.observer_count > 0);
	memcpy(bytes, segment->base + offset, length);
	for (const struct perseas_tx *tx = p->commit.open_list; tx; tx = tx->next)
		ps_undo_entries(entries_of_record(tx), ps_window_restore, &window);
	ps_gather_restore_window(p, &window);
}

void ps_tx_restore_memory(struct perseas_tx *tx)
{
	const struct ps_range *range;
	const void *image;
	struct ps_cursor cursor = entries_of_record(tx);

	if (tx->traits & PS_TX_TRACKED) {
		ps_track_restore_memory(tx);
		return;
	}
	tx->redeclared_bytes = 0;
	/* No byte is logged twice, so the order does not matter. */
	while (ps_record_next(&cursor, &range, &image)) {
		const struct ps_segment *segment = ps_segment_by_id(tx->p, range->segment);

		memcpy(segment->base + range->offset, image, range->length);
	}
}

void ps_tx_roll_back(struct perseas_tx *tx)
{
	ps_assert_locked(tx->p);
	ps_tx_restore_memory(tx);
	tx->p->commit.stat.aborts++;
}
