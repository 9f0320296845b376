/*
 * open_transactions.c - perseas_open_transactions, which lists a handle's open transactions. It
 * reads transactions of other threads, and must observe them while it does (tx.h).
 */
#include "serialization.h"
#include "tx.h"
#include "cancel.h"

#include <stdlib.h>
#include <string.h>

static void describe_transaction(const struct perseas_tx *tx, struct perseas_transaction *told)
{
	memset(told, 0, sizeof(*told));
	told->tx = tx;
	told->since = tx->begun_seq;
	told->bytes = tx->cover.covered_bytes;
	told->ranges = tx->cover.span_count;
	told->flags = (tx->traits & PS_TX_SERIAL ? PERSEAS_SERIAL : 0u) |
	              (tx->traits & PS_TX_TRACKED ? PERSEAS_TRACK : 0u);
	told->locks = ps_locks_count(tx);
}

/* The newest transaction comes first in the handle's list, and last in the result. */
static size_t list_open_locked(const struct perseas *p, struct perseas_transaction *list,
                               size_t max)
{
	const struct perseas_tx *tx;
	size_t open = 0, place;

	for (tx = p->commit.open_list; tx; tx = tx->next)
		open++;
	place = open;
	for (tx = p->commit.open_list; tx; tx = tx->next)
		if (--place < max)
			describe_transaction(tx, &list[place]);
	return open;
}

int perseas_open_transactions(perseas_t *p, struct perseas_transaction *list, size_t max,
                              size_t *count)
{
	PS_UNCANCELLED;
	if (!p || !count || (max && !list))
		return ps_fail(p, PERSEAS_EINVAL,
		               "the open transactions need a handle, room for their list, and a "
		               "place for their count");
	if (max)
		ps_tx_observe_begin(p);
	pthread_mutex_lock(&p->lock);
	*count = list_open_locked(p, list, max);
	pthread_mutex_unlock(&p->lock);
	if (max)
		ps_tx_observe_end(p);
	return 0;
}
