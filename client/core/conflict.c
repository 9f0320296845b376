/*
 * conflict.c - how long and how often work that met a conflict is retried: one rule for all
 * languages, whose bindings call it in their loops. A thread is woken when a lock becomes free
 * (locks.c), but not when another conflict is over. Such a conflict is retried a few times, never
 * forever.
 */
#include "serialization.h"

enum { TRIES_MAX = 16, FIRST_PAUSE_NS = 1000 }; /* each pause is twice the one before */

static int check_arguments(struct perseas *p, const struct perseas_tx *tx, const unsigned *tries)
{
	if (!p || !tries)
		return ps_fail(p, PERSEAS_EINVAL,
		               "retry_conflict needs a handle and a place to count its tries");
	if (tx && tx->p != p)
		return ps_fail(p, PERSEAS_EINVAL,
		               "the transaction is another handle's: give the one that began it");
	return 0;
}

int perseas_retry_conflict(perseas_t *p, perseas_tx_t *tx, unsigned *tries)
{
	uint64_t pause_ns;
	int rc = check_arguments(p, tx, tries);

	if (rc)
		return rc;
	/* Reads tx without the lock: only its own thread changes these members. */
	if (tx && (tx->refused_lock.has_refused_lock || !tx->is_open))
		return ps_retry_tx_after_pause(tx, 0);
	if (*tries >= TRIES_MAX)
		return PERSEAS_ECONFLICT;
	/* A pause does not help while this thread keeps what it has in other stores. */
	if (!tx && ps_failed_by_deadlock(p))
		return PERSEAS_ECONFLICT;
	pause_ns = (uint64_t)FIRST_PAUSE_NS << (*tries)++;
	if (tx)
		return ps_retry_tx_after_pause(tx, pause_ns);
	ps_sleep_for(p, pause_ns);
	return 0;
}
