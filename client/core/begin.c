/*
 * begin.c - perseas_begin and perseas_abort.
 */
#include "serialization.h"
#include "shadow.h"
#include "track.h"
#include "tx.h"

static int begin_tracked(struct perseas *p, struct perseas_tx **tx)
{
	int rc;

	ps_lock(p);
	rc = ps_track_begin(*tx);
	if (rc) {
		ps_tx_end(*tx);
		*tx = NULL;
	}
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* Begins a transaction with flags, or reports invalid arguments. A function of its own, so that
 * begin without flags stays short. */
static int begin_with_flags(struct perseas *p, unsigned flags, perseas_tx_t **tx)
{
	const unsigned known = PERSEAS_SERIAL | PERSEAS_TRACK;
	int rc;

	if (!p)
		return ps_fail(p, PERSEAS_EINVAL, "p is NULL");
	if (flags & ~known)
		return ps_fail(p, PERSEAS_EINVAL,
		               "begin's flags 0x%x have unknown bits; PERSEAS_SERIAL and "
		               "PERSEAS_TRACK are known",
		               flags);
	if (flags & PERSEAS_TRACK && !(p->options.flags & PERSEAS_TRACKED))
		return ps_fail(
			p, PERSEAS_EINVAL,
			"PERSEAS_TRACK needs a store opened with PERSEAS_TRACKED: open it so");
	rc = flags & PERSEAS_SERIAL ? ps_serial_begin(p, tx) : perseas_begin(p, 0, tx);
	if (!rc && flags & PERSEAS_TRACK)
		rc = begin_tracked(p, tx);
	return rc;
}

int perseas_begin(perseas_t *p, unsigned flags, perseas_tx_t **tx)
{
	int rc;

	if (!tx)
		return ps_fail(p, PERSEAS_EINVAL, "begin needs a place for the transaction");
	*tx = NULL;
	if (!p || flags)
		return begin_with_flags(p, flags, tx);
	ps_lock(p);
	rc = ps_tx_begin(p, tx);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int perseas_abort(perseas_tx_t *tx)
{
	struct perseas *p;
	int rc;

	if (!tx)
		return ps_fail(NULL, PERSEAS_EINVAL, "tx is NULL");
	p = tx->p;
	if (!tx->is_open)
		return ps_fail(p, PERSEAS_EENDED, "the transaction has ended already");
	rc = ps_shadow_await_fill(p);
	if (rc)
		return rc;
	pthread_mutex_lock(&p->lock);
	ps_tx_roll_back(tx);
	ps_tx_end(tx);
	pthread_mutex_unlock(&p->lock);
	return 0;
}
