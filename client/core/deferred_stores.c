/*
 * deferred_stores.c - makes deferred stores, and ends them. A commit calls it before it sends, and
 * every end of a transaction calls it after its bytes are posted or restored. It never releases
 * p->lock.
 */
#include "deferred_stores.h"

#include "tx.h"

void ps_deferred_apply(struct perseas_tx *tx)
{
	for (struct ps_deferred_stores *late = tx->late; late; late = late->next)
		late->ops->apply(late, tx);
	assert(tx->length <= tx->capacity && tx->length <= ps_record_limit(tx->p->log_size));
	tx->deferred_applied = true;
	ps_cover_release_extra(&tx->cover);
	tx->deferred_count = 0;
}

void ps_deferred_end(struct perseas_tx *tx)
{
	for (struct ps_deferred_stores *late = tx->late; late; late = late->next)
		late->ops->end(late, tx->deferred_applied);
	tx->deferred_applied = false;
	ps_cover_release_extra(&tx->cover);
	tx->deferred_count = 0;
	tx->room = tx->whole_room;
}

int ps_deferred_mark(struct perseas_tx *tx, uint64_t savepoint)
{
	int rc = 0;

	for (struct ps_deferred_stores *late = tx->late; late && !rc; late = late->next)
		rc = late->ops->mark(late, savepoint);
	return rc;
}

void ps_deferred_roll_back(struct perseas_tx *tx, uint64_t savepoint)
{
	ps_assert_locked(tx->p);
	for (struct ps_deferred_stores *late = tx->late; late; late = late->next)
		late->ops->roll_back(late, savepoint);
}

void ps_deferred_free(struct perseas_tx *tx)
{
	while (tx->late) {
		struct ps_deferred_stores *late = tx->late;

		tx->late = late->next;
		late->ops->free(late);
	}
}
