/*
 * record_room.c - room for a range: in the transaction's record and cover, and, for its commit, in
 * the ring and the log. range.c calls it for each range that does not fit as it is. It must refuse
 * a range before any of it is declared.
 */
#include "tx.h"

#include "commit.h"
#include "deferred_stores.h"

#include <assert.h>
#include <stdlib.h>

/* Returns the bytes of the record reserved for deferred stores. */
static inline uint64_t deferred_record_bytes(const struct perseas_tx *tx)
{
	return (uint64_t)tx->deferred_store_count * PS_DEFERRED_RECORD;
}

void ps_tx_update_room(struct perseas_tx *tx)
{
	const struct perseas *p = tx->p;
	const uint64_t head = sizeof(struct ps_ring_entry) + 2 * sizeof(struct ps_write) +
	                      2 * (uint64_t)PS_ALIGN + PS_RECORD_SLACK;
	const uint64_t entry = p->commit.ring.size / 4 > head ? (p->commit.ring.size / 4 - head) / 3
	                                                      : 0;
	const uint64_t limit = ps_record_limit(p->log_size);

	static_assert(sizeof(struct ps_write) <= sizeof(struct ps_range) + 8, "a range's write");
	tx->record_room = entry < limit ? entry : limit;
	if (tx->record_room > tx->record_capacity)
		tx->record_room = tx->record_capacity;
	tx->undeferred_room = tx->record_room;
	tx->record_room -= tx->record_room < deferred_record_bytes(tx) ? tx->record_room
	                                                               : deferred_record_bytes(tx);
}

uint64_t ps_tx_entry_length(const struct perseas_tx *tx)
{
	return ps_entry_length(tx->record_length, tx->cover.span_count,
	                       tx->cover.covered_bytes +
	                               (uint64_t)tx->deferred_store_count * PS_DEFERRED_ENTRY);
}

int ps_tx_make_room(struct perseas_tx *tx, uint64_t record_bytes, uint64_t entry_bytes,
                    unsigned spans)
{
	struct perseas *p = tx->p;
	uint64_t need = tx->record_length + deferred_record_bytes(tx) + record_bytes;
	uint8_t *grown;
	int rc;

	if (need > ps_record_limit(p->log_size))
		return ps_fail(p, PERSEAS_ETOOBIG,
		               "an undo record of %llu bytes is more than half of the log of "
		               "%llu, or than 1 GiB: split the transaction, or make the store "
		               "with a larger log",
		               (unsigned long long)need, (unsigned long long)p->log_size);
	if (ps_tx_entry_length(tx) + record_bytes + entry_bytes + 2ull * PS_ALIGN >
	    p->commit.ring.size / 4)
		return ps_fail(p, PERSEAS_ETOOBIG,
		               "the transaction takes more than a quarter of the ring of %llu "
		               "bytes: split it, or open with a larger ring_size",
		               (unsigned long long)p->commit.ring.size);
	rc = ps_cover_reserve_spans(&tx->cover, spans);
	if (rc >= 0 && need > tx->record_capacity) {
		uint64_t capacity = tx->record_capacity;

		while (capacity < need)
			capacity *= 2;
		grown = realloc(tx->record, capacity + PS_RECORD_SLACK);
		if (grown) {
			tx->record = grown;
			tx->record_capacity = capacity;
			ps_tx_update_room(tx);
		}
		rc = grown ? 1 : -1;
	}
	if (rc < 0)
		return ps_fail(p, PERSEAS_ENOMEM, "no memory for %llu bytes of undo record",
		               (unsigned long long)need);
	if (rc)
		__atomic_fetch_add(&p->commit.stat.allocations, 1, __ATOMIC_RELAXED);
	return 0;
}
