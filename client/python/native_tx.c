/*
 * native_tx.c - transactions for the Python package (native.h). The call that ends a transaction
 * records that here, so that it is known before Python handles a signal.
 */
#include "native_state.h"

#include <stdlib.h>
#include <string.h>

void ps_py_tx_forget(struct ps_py_tx *t)
{
	struct ps_py_tx **link = &t->store->open;

	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	t->tx = NULL;
}

struct ps_py_tx *ps_py_tx_new(struct ps_py_store *s)
{
	struct ps_py_tx *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->store = s;
	if (!ps_py_is_foreign(&s->hold))
		ps_py_hold_share(&s->hold);
	return t;
}

/* Marks an unbegun transaction as busy. Returns false if another thread is beginning it or has
 * begun it: it must not get into the store's list twice. */
static bool claim_unbegun(struct ps_py_tx *t)
{
	bool is_free;

	pthread_mutex_lock(&t->store->hold.lock);
	is_free = !t->tx && !t->is_busy;
	t->is_busy |= is_free;
	pthread_mutex_unlock(&t->store->hold.lock);
	return is_free;
}

int ps_py_begin(struct ps_py_tx *t, unsigned flags)
{
	struct ps_py_store *s = t->store;
	perseas_tx_t *tx;
	int rc = ps_py_enter(&s->hold);

	if (rc)
		return rc;
	if (!claim_unbegun(t)) {
		ps_py_leave(&s->hold);
		return PS_PY_THREAD;
	}
	rc = perseas_begin(s->p, flags, &tx);
	pthread_mutex_lock(&s->hold.lock);
	t->is_busy = false;
	if (!rc) {
		t->tx = tx;
		t->thread = pthread_self();
		t->next = s->open;
		s->open = t;
	}
	pthread_mutex_unlock(&s->hold.lock);
	ps_py_leave(&s->hold);
	return rc;
}

/* Begins a call of an open transaction that has no other call in progress. is_own: only for the
 * thread that began it. */
static int enter_tx(struct ps_py_tx *t, bool is_own)
{
	int rc = ps_py_enter(&t->store->hold);

	if (rc)
		return rc;
	pthread_mutex_lock(&t->store->hold.lock);
	if (!t->tx)
		rc = PS_PY_NEVER;
	else if (t->is_busy || (is_own && !pthread_equal(t->thread, pthread_self())))
		rc = PS_PY_THREAD;
	else
		t->is_busy = true;
	pthread_mutex_unlock(&t->store->hold.lock);
	if (rc)
		ps_py_leave(&t->store->hold);
	return rc;
}

int ps_py_tx_enter(struct ps_py_tx *t)
{
	return enter_tx(t, true);
}

void ps_py_tx_leave(struct ps_py_tx *t, bool is_over)
{
	pthread_mutex_lock(&t->store->hold.lock);
	t->is_busy = false;
	if (is_over)
		ps_py_tx_forget(t);
	pthread_mutex_unlock(&t->store->hold.lock);
	ps_py_leave(&t->store->hold);
}

/* Aborts a transaction that is about to be freed while the store is closing and waits for other
 * calls: the close must not find it in the list. The store is still open as long as the list has a
 * transaction. */
static void abort_while_closing(struct ps_py_tx *t)
{
	pthread_mutex_lock(&t->store->hold.lock);
	if (t->tx) {
		perseas_abort(t->tx);
		ps_py_tx_forget(t);
	}
	pthread_mutex_unlock(&t->store->hold.lock);
}

void ps_py_tx_free(struct ps_py_tx *t)
{
	if (ps_py_is_foreign(&t->store->hold))
		return;
	if (!enter_tx(t, false)) {
		perseas_abort(t->tx);
		ps_py_tx_leave(t, true);
	} else {
		abort_while_closing(t);
	}
	ps_py_store_let_go(t->store);
	free(t);
}

int ps_py_is_open(struct ps_py_tx *t)
{
	int is_open;

	if (ps_py_is_foreign(&t->store->hold))
		return 0;
	pthread_mutex_lock(&t->store->hold.lock);
	is_open = t->tx != NULL;
	pthread_mutex_unlock(&t->store->hold.lock);
	return is_open;
}

int ps_py_set_range(struct ps_py_tx *t, const void *addr, size_t len)
{
	WITH_TX(perseas_set_range(t->tx, addr, len));
}

int ps_py_write(struct ps_py_tx *t, void *addr, const void *data, size_t len)
{
	int rc = ps_py_tx_enter(t);

	if (rc)
		return rc;
	rc = perseas_set_range(t->tx, addr, len);
	if (!rc && len)
		memmove(addr, data, len);
	ps_py_tx_leave(t, false);
	return rc;
}

int ps_py_committed(struct ps_py_tx *t, struct perseas_token *token)
{
	*token = t->token;
	return t->is_committed;
}

int ps_py_commit(struct ps_py_tx *t, unsigned flags)
{
	int rc = ps_py_tx_enter(t);

	if (rc)
		return rc;
	rc = perseas_commit_token(t->tx, flags, &t->token);
	t->is_committed = rc == 0 || rc == PERSEAS_EINDOUBT;
	ps_py_tx_leave(t, rc == 0 || rc == PERSEAS_EINDOUBT || rc == PERSEAS_EFENCED);
	return rc;
}

int ps_py_abort(struct ps_py_tx *t)
{
	int rc = ps_py_tx_enter(t);

	if (rc)
		return rc;
	rc = perseas_abort(t->tx);
	ps_py_tx_leave(t, true);
	return rc;
}

int ps_py_retry(struct ps_py_tx *t)
{
	int rc = ps_py_tx_enter(t);

	if (rc)
		return rc;
	rc = perseas_retry(t->tx);
	ps_py_tx_leave(t, rc != 0);
	return rc;
}

int ps_py_begin_conflict(struct ps_py_store *s, unsigned *tries)
{
	GUARDED(perseas_retry_conflict(s->p, NULL, tries));
}

int ps_py_retry_conflict(struct ps_py_tx *t, unsigned *tries)
{
	int rc = ps_py_tx_enter(t);

	if (rc)
		return rc;
	rc = perseas_retry_conflict(t->store->p, t->tx, tries);
	ps_py_tx_leave(t, rc != 0 && rc != PERSEAS_ECONFLICT);
	return rc;
}

int ps_py_lock(struct ps_py_tx *t, uint64_t key, int mode)
{
	WITH_TX(perseas_lock(t->tx, key, mode));
}

int ps_py_savepoint(struct ps_py_tx *t, uint64_t *savepoint)
{
	WITH_TX(perseas_savepoint(t->tx, savepoint));
}

int ps_py_rollback_to(struct ps_py_tx *t, uint64_t savepoint)
{
	WITH_TX(perseas_rollback_to(t->tx, savepoint));
}
