/*
 * serial.c - how a SERIAL transaction begins, and how a transaction that is SERIAL or has locks
 * commits without changes. turn.c has the turns, locks.c the locks.
 */
#include "serialization.h"

#include "commit.h"
#include "gather.h"
#include "mirror.h"
#include "nowait.h"
#include "tx.h"

int ps_serial_begin(struct perseas *p, struct perseas_tx **tx)
{
	int rc;

	ps_lock(p);
	rc = ps_turn_await(p);
	if (!rc) {
		rc = ps_tx_begin(p, tx);
		if (rc)
			ps_turn_give_to_next(p);
		else
			ps_turn_give_to_tx(*tx);
	}
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int ps_commit_read_only_tx(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;
	const uint64_t saw = tx->read_seq;
	uint64_t since = 0;
	int rc;

	ps_assert_locked(p);
	ps_tx_end(tx);
	if (ps_commit_should_poll(p))
		ps_mirrors_poll(p);
	if (!saw || ps_update_durable_seq(p) >= saw)
		return 1;
	if (saw > p->commit.seq)
		ps_gather_send_if_any(p);
	rc = ps_commit_await_w_mirrors(p, saw, &since);
	return rc ? rc : 1;
}
