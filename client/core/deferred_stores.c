/*
 * deferred_stores.c - makes deferred stores, and ends them. A commit calls it before it sends, and
 * every end of a transaction calls it after its bytes are posted or restored. It never releases
 * p->lock.
 */
#include "deferred_stores.h"

#include "tx.h"

void ps_deferred_apply(struct perseas_tx *tx)
{
	for (struct ps_deferred_stores *stores = tx->deferred; stores; stores = stores->next)
		stores->ops->apply(stores, tx);
	assert(tx->record_length <= tx->record_capacity &&
	       tx->record_length <= ps_record_limit(tx->p->log_size));
	tx->deferred_applied = true;
	ps_cover_release_extra_spans(&tx->cover);
	tx->deferred_store_count = 0;
}

void ps_deferred_end(struct perseas_tx *tx)
{
	for (struct ps_deferred_stores *stores = tx->deferred; stores; stores = stores->next)
		stores->ops->end(stores, tx->deferred_applied);
	tx->deferred_applied = false;
	ps_cover_release_extra_spans(&tx->cover);
	tx->deferred_store_count = 0;
	tx->record_room = tx->undeferred_room;
}

int ps_deferred_savepoint(struct perseas_tx *tx, uint64_t savepoint)
{
	int rc = 0;

	for (struct ps_deferred_stores *stores = tx->deferred; stores && !rc; stores = stores->next)
		rc = stores->ops->mark(stores, savepoint);
	return rc;
}

void ps_deferred_roll_back(struct perseas_tx *tx, uint64_t savepoint)
{
	ps_assert_locked(tx->p);
	for (struct ps_deferred_stores *stores = tx->deferred; stores; stores = stores->next)
		stores->ops->roll_back(stores, savepoint);
}

void ps_deferred_free(struct perseas_tx *tx)
{
	while (tx->deferred) {
		struct ps_deferred_stores *stores = tx->deferred;

		tx->deferred = stores->next;
		stores->ops->free(stores);
	}
}
