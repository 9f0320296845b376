/*
 * commit.c - commit (PERSEAS, section 3, steps 2 and 3 of figure 3): waits until a transaction may
 * be sent, sends it alone or adds it to a group, and waits for W mirrors.
 */
#include "commit.h"

#include "serialization.h"
#include "gather.h"
#include "deferred_stores.h"
#include "mirror.h"
#include "nowait.h"
#include "pace.h"
#include "shadow.h"
#include "timing.h"
#include "track.h"
#include "tx.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Returns true if appending `length` bytes to the ring would overwrite entries that mirror `m`
 * still needs. */
static bool needs_overwritten_entries(const struct perseas *p, const struct ps_mirror *m,
                                      uint64_t length)
{
	uint64_t lag;

	if (!m->is_active)
		return false;
	lag = ps_ring_bytes_from_entry(&p->commit.ring, m->acked_seq + 1);
	if (!lag)
		return false;
	if (m->state != PERSEAS_MIRROR_REPLAYING)
		return lag > p->commit.ring.size / 2 - length;
	/* A mirror that is catching up may use all of the ring, less what padding may take. */
	return lag > p->commit.ring.size - 2 * length;
}

/* Returns true if an entry of `length` bytes would leave less than half of the ring to transactions
 * that W mirrors do not hold. If such transactions left the ring, no mirror could get them any
 * more, and they would be in doubt forever. */
static bool leaves_too_little_ring_for_nondurable(struct perseas *p, uint64_t length)
{
	const struct ps_ring *ring = &p->commit.ring;
	const uint64_t most = ring->size / 2 - length;

	if (ps_ring_bytes_from_entry(ring, ps_oldest_nondurable_seq(p)) <= most)
		return false;
	ps_mirrors_poll(p);
	ps_update_durable_seq(p);
	return ps_ring_bytes_from_entry(ring, ps_oldest_nondurable_seq(p)) > most;
}

static uint32_t find_blocking_mirrors(const struct perseas *p, uint64_t length)
{
	uint32_t slow = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		slow |= (uint32_t)needs_overwritten_entries(p, &p->mirrors[i], length) << i;
	return slow;
}

/* Makes sure that the next entry overwrites nothing that a connected mirror still needs, and waits
 * for a copy if it must (pace.h). Returns 0 if there is room, 1 if it slept and everything must be
 * checked again, or EAGAIN, EBLOCKED. */
static int await_ring_room(struct perseas *p, uint64_t length, unsigned flags,
                           struct ps_pacing *pacing)
{
	uint32_t slow = find_blocking_mirrors(p, length);

	if (slow) {
		/* The mirrors may have completed these entries already: poll before judging
		 * them. */
		ps_mirrors_poll(p);
		slow = find_blocking_mirrors(p, length);
	}
	/* Without unawaited commits, a thread waits for each transaction that W mirrors do not hold
	 * yet, so these are too few to fill half of the ring. */
	if ((flags & PERSEAS_NOWAIT || p->commit.unwaited.last_unawaited_seq) &&
	    leaves_too_little_ring_for_nondurable(p, length))
		return ps_pace_await_slow_mirrors(p, slow, flags, pacing);
	if (slow)
		return ps_pace_await_slow_mirrors(p, slow, flags, pacing);
	return p->upkeep.resync.target ? ps_pace_await_copy(p, flags, pacing) : 0;
}

int ps_fail_renewing(const struct perseas *p)
{
	return ps_fail(p, PERSEAS_EBLOCKED,
	               "another owner claimed store '%s' and went away, and too few mirrors could "
	               "be claimed again so far: perseas_mirror_stat says what is wrong with each",
	               p->store);
}

/* Returns true while no transaction may be sent: a thread has the links to itself, or the owner
 * holds no claims. */
static inline bool is_sending_stopped(const struct perseas *p)
{
	return p->is_gate_raised || p->is_renewing;
}

/* Waits until transactions may be sent again; if the owner renews its claims, until the commit
 * timeout at most. *since becomes the time of the commit's first wait. Returns 0, or EAGAIN with
 * PERSEAS_NOBLOCK. Caller holds p->lock, which is released meanwhile. */
static int await_sending_allowed(struct perseas *p, unsigned flags, uint64_t *since)
{
	const uint64_t now = ps_now(p), deadline = now + ps_ms(p->options.commit_timeout_ms);

	if (flags & PERSEAS_NOBLOCK)
		return ps_fail_would_block(p, "while segments or claims are changed");
	if (!*since)
		*since = now;
	while (p->is_gate_raised || (p->is_renewing && !ps_is_fenced(p) && ps_now(p) < deadline)) {
		p->commit.wait_line.waiting_count++;
		p->env->ops->wait(p->env, &p->commit.wait_line.changed, &p->lock,
		                  p->is_gate_raised ? PS_NEVER : deadline);
		p->commit.wait_line.waiting_count--;
	}
	return 0;
}

/* Returns 0 if the handle may send transactions, or EBLOCKED, EFENCED, ESALVAGE. */
static inline int check_may_send(struct perseas *p)
{
	const int rc = ps_check_may_transact(p);

	return !rc && p->is_renewing ? ps_fail_renewing(p) : rc;
}

/* Returns the bytes of the ring that the transaction takes, together with the group that it
 * joins. */
static inline uint64_t entry_length_of(const struct perseas_tx *tx, unsigned flags)
{
	return flags & PS_MAY_GATHER ? ps_gather_entry_length(tx) : ps_tx_entry_length(tx);
}

/* Makes the ring ready for the transaction's entry: posts the group of gathered commits if the
 * transaction cannot join it, and waits for mirrors that still need what the entry overwrites.
 * Returns 0 if the entry can be written, 1 if it released p->lock, or EAGAIN, EBLOCKED. */
static inline int reserve_ring(struct perseas_tx *tx, unsigned flags, struct ps_pacing *pacing)
{
	struct perseas *p = tx->p;
	int rc;

	if (p->commit.has_gathered)
		ps_gather_send_unless_tx_joins(tx, flags);
	rc = p->commit.uses_ring ? await_ring_room(p, entry_length_of(tx, flags), flags, pacing)
	                         : 0;
	if (!rc && flags & PERSEAS_NOWAIT && ps_unwaited_is_flush_overdue(p))
		rc = ps_pace_await_slow_mirrors(p, 0, flags, pacing);
	return rc;
}

/* Returns the earlier of two times; 0 stands for never. */
static inline uint64_t earlier_time(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* Waits until the transaction can be sent. Everything is checked again after each wait, since
 * p->lock is released. Moves *start to the beginning of the first wait. Returns 0, or an error. */
static inline __attribute__((always_inline)) int
await_permission_to_send(struct perseas_tx *tx, unsigned flags, ps_start_time_t *start)
{
	struct perseas *p = tx->p;
	struct ps_pacing pacing;
	uint64_t since = 0;
	int rc;

	pacing.wait_began_at = 0;
	do {
		rc = is_sending_stopped(p) ? await_sending_allowed(p, flags, &since) : 0;
		if (!rc)
			rc = check_may_send(p);
		/* A transaction that changed nothing sends nothing. */
		if (rc || !(tx->range_count || tx->deferred_store_count))
			break;
		rc = reserve_ring(tx, flags, &pacing);
	} while (rc > 0);
	*start = ps_timing_start_time_of_wait(*start, earlier_time(since, pacing.wait_began_at));
	return rc;
}

/* Makes sure that the transaction can be sent, and waits for that. Returns 0, or an error. On
 * EFENCED the transaction is rolled back and over; on other errors it is still open. */
static inline __attribute__((always_inline)) int
prepare_commit(struct perseas_tx *tx, unsigned flags, ps_start_time_t *start)
{
	const int rc = await_permission_to_send(tx, flags, start);

	if (rc == PERSEAS_EFENCED) {
		/* Memory must not show changes that the store does not have. */
		ps_tx_restore_memory(tx);
		ps_tx_end(tx);
	}
	if (!rc && tx->p->options.flags & PERSEAS_CHECK_WRITES)
		return ps_check_undeclared(tx);
	return rc;
}

/* Returns true if W mirrors hold the transaction already, as with fabrics that copy at once: most
 * commits then neither wait nor read the clock. */
static bool is_durable_already(struct perseas *p)
{
	ps_mirrors_poll(p);
	return ps_w_mirrors_hold(p, p->commit.seq);
}

static int await_w_and_time(struct perseas *p, ps_start_time_t start)
{
	uint64_t since = 0;
	int rc = ps_commit_await_w_mirrors(p, p->commit.seq, &since);

	if (start || since)
		ps_timing_record(p, ps_timing_start_time_of_wait(start, since), rc);
	return rc;
}

/* Makes the deferred stores. Everything that can fail comes first: afterwards the lock is not
 * released until the chain is posted. */
static __attribute__((noinline)) int apply_deferred_stores(struct perseas_tx *tx)
{
	const struct ps_outgoing most = { .span_count = tx->cover.span_count +
		                                        tx->deferred_store_count };
	int rc = ps_commit_reserve_chain(tx->p, &most);

	if (!rc)
		ps_deferred_apply(tx);
	return rc;
}

static inline __attribute__((always_inline)) int post_transaction(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;
	struct ps_outgoing out = {
		.record = (struct ps_record *)tx->record,
		.record_length = tx->record_length,
		.range_count = tx->range_count,
		.record_kind = PS_RECORD_TRANSACTION,
		.spans = tx->cover.spans,
		.span_count = tx->cover.span_count,
		.changed_bytes = tx->cover.covered_bytes,
	};
	int rc;

	if (p->commit.uses_ring)
		out.entry_length = ps_tx_entry_length(tx);
	rc = p->options.flags & PS_SHADOW_FLAGS ? ps_shadow_send(tx, &out)
	                                        : ps_commit_send(p, &out);
	if (rc)
		return rc;
	/* The transaction is over: from here on its memory may serve another thread. */
	ps_tx_end(tx);
	p->commit.stat.range_bytes += out.changed_bytes;
	return 0;
}

/* Posts the transaction, or adds it to the group of gathered commits. Returns 0, or an error. */
static inline int post_or_gather(struct perseas_tx *tx, unsigned flags)
{
	ps_cover_to_array(&tx->cover);
	if (!(flags & PS_MAY_GATHER) || !ps_gather_can_hold(tx))
		return post_transaction(tx);
	ps_gather_add_tx(tx);
	ps_tx_end(tx);
	return 0;
}

/* Commits a transaction that changed nothing. Returns 1, or an error. */
static inline int commit_read_only_tx(struct perseas_tx *tx, unsigned flags)
{
	if (tx->traits && !(flags & PERSEAS_NOWAIT))
		return ps_commit_read_only_tx(tx);
	ps_tx_end(tx);
	return 1;
}

/* Commits a tracked transaction: finds its changes, and then needs room for them. Returns what
 * send_transaction returns. */
static __attribute__((noinline)) int send_tracked(struct perseas_tx *tx, unsigned flags,
                                                  ps_start_time_t *start)
{
	int rc = ps_track_find_changes(tx);

	if (rc)
		return rc;
	if (!tx->range_count)
		return commit_read_only_tx(tx, flags);
	rc = prepare_commit(tx, flags, start);
	if (rc == PERSEAS_EFENCED)
		return rc;
	if (!rc)
		rc = post_or_gather(tx, flags);
	if (rc)
		ps_track_drop_ranges(tx);
	return rc;
}

/* Posts or gathers the transaction, which is then over. Returns 0; 1 if it changed nothing and
 * nothing is sent; or an error, and except after EFENCED and EINDOUBT the transaction is still
 * open. */
static inline __attribute__((always_inline)) int
send_transaction(struct perseas_tx *tx, unsigned flags, ps_start_time_t *start)
{
	int rc = prepare_commit(tx, flags, start);

	if (rc)
		return rc;
	if (tx->deferred_store_count) {
		rc = apply_deferred_stores(tx);
		if (rc)
			return rc;
	}
	if (tx->range_count)
		return post_or_gather(tx, flags);
	return tx->traits & PS_TX_TRACKED ? send_tracked(tx, flags, start)
	                                  : commit_read_only_tx(tx, flags);
}

static int commit_and_wait(struct perseas_tx *tx, ps_start_time_t started_at)
{
	struct perseas *p = tx->p;
	int rc = send_transaction(tx, 0, &started_at);

	if (rc < 0)
		return rc;
	if (!rc)
		rc = !started_at && is_durable_already(p) ? 0 : await_w_and_time(p, started_at);
	else
		rc = 0;
	p->commit.stat.commits += !rc;
	return rc;
}

/* Commits, and sets *token once the transaction is sent, so that the application can wait for it
 * later. */
static int commit_with_token(struct perseas_tx *tx, unsigned flags, struct perseas_token *token)
{
	const bool waits = !(flags & PERSEAS_NOWAIT);
	struct perseas *p = tx->p;
	ps_start_time_t start = waits ? ps_timing_start_time(tx) : 0;
	int rc = waits ? 0 : ps_collector_start(p);

	/* If there is no memory for a group, the transaction is sent alone. */
	if (!rc && !waits && p->options.gather_us && ps_gather_allocate(p))
		flags |= PS_MAY_GATHER;
	if (!rc)
		rc = send_transaction(tx, flags, &start);
	if (rc < 0 && rc != PERSEAS_EINDOUBT)
		return rc;
	*token = ps_last_token(p);
	if (rc)
		rc = rc > 0 ? 0 : rc;
	else if (waits)
		rc = await_w_and_time(p, start);
	else
		ps_unwaited_note_commit(p);
	p->commit.stat.commits += !rc;
	return rc;
}

int perseas_commit_token(perseas_tx_t *tx, unsigned flags, struct perseas_token *token)
{
	const unsigned known = PERSEAS_NOWAIT | PERSEAS_NOBLOCK;
	struct perseas *p;
	int rc;

	if (!tx || !token)
		return ps_fail(tx ? tx->p : NULL, PERSEAS_EINVAL,
		               "commit needs a transaction, and a place for its token");
	p = tx->p;
	if (flags & ~known || flags == PERSEAS_NOBLOCK)
		return ps_fail(p, PERSEAS_EINVAL,
		               "commit's flags must be 0, PERSEAS_NOWAIT, or PERSEAS_NOWAIT with "
		               "PERSEAS_NOBLOCK");
	if (!tx->is_open)
		return ps_fail(p, PERSEAS_EENDED,
		               "the transaction has been committed or aborted: begin another");
	rc = ps_shadow_await_fill(p);
	if (rc)
		return rc;
	ps_lock(p);
	rc = commit_with_token(tx, flags, token);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* This is a function of its own so that a commit that waits has a smaller stack frame. */
static __attribute__((noinline)) int commit_without_token(struct perseas_tx *tx, unsigned flags)
{
	struct perseas_token token;

	return perseas_commit_token(tx, flags, &token);
}

int perseas_commit(perseas_tx_t *tx, unsigned flags)
{
	struct perseas *p;
	ps_start_time_t start;
	int rc;

	if (!tx)
		return ps_fail(NULL, PERSEAS_EINVAL, "tx is NULL");
	p = tx->p;
	if (flags)
		return commit_without_token(tx, flags);
	if (!tx->is_open)
		return ps_fail(p, PERSEAS_EENDED,
		               "the transaction has been committed or aborted: begin another");
	start = ps_timing_start_time(tx);
	rc = ps_shadow_await_fill(p);
	if (rc)
		return rc;
	ps_lock(p);
	rc = commit_and_wait(tx, start);
	pthread_mutex_unlock(&p->lock);
	return rc;
}
