/*
 * durable.c - how far W mirrors have come, the descriptor that tells the application, and the
 * tokens of transactions (nowait.h). It asks no mirror: it goes by acknowledgements.
 */
#include "nowait.h"

#include "event.h"
#include "flag_fd.h"
#include "gather.h"
#include "mirror.h"
#include "pace.h"
#include "quorum.h"

#include <assert.h>

/* Returns the last transaction that W mirrors hold by their present acknowledgements. */
static uint64_t find_newest_durable_seq(const struct perseas *p)
{
	uint64_t best = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->has_vote && m->acked_seq > best && ps_w_mirrors_hold(p, m->acked_seq))
			best = m->acked_seq;
	}
	return best;
}

void ps_unwaited_raise_flag(struct perseas *p)
{
	struct ps_unwaited *u = &p->commit.unwaited;

	if (u->flag_fd >= 0 && !u->is_flag_raised)
		ps_flag_fd_raise(u->flag_fd);
	u->is_flag_raised = true;
}

uint64_t ps_update_durable_seq(struct perseas *p)
{
	struct ps_unwaited *u = &p->commit.unwaited;
	const uint64_t now = find_newest_durable_seq(p);

	ps_assert_locked(p);
	assert(now <= p->commit.seq); /* I4: W mirrors hold nothing that was not sent */
	if (now <= p->commit.durable_seq)
		return p->commit.durable_seq;
	p->commit.durable_seq = now;
	if (u->last_unawaited_seq)
		u->durable_progress_at = ps_now(p);
	if (now >= u->last_unawaited_seq)
		u->last_unawaited_seq = 0;
	ps_unwaited_raise_flag(p);
	u->updates_durable_seq_at_completions = u->last_unawaited_seq || u->flag_fd >= 0;
	return now;
}

void ps_pace_clear_blocking(struct perseas *p, struct ps_mirror *m)
{
	/* Commits that were refused because of this mirror may find room now. */
	if (m->blocks_commits_since)
		ps_unwaited_raise_flag(p);
	m->blocks_commits_since = 0;
}

void ps_end_doubt_if_durable(struct perseas *p)
{
	if (p->commit.unwaited.updates_durable_seq_at_completions)
		ps_update_durable_seq(p);
	if (!p->commit.in_doubt_seq || (p->commit.durable_seq < p->commit.in_doubt_seq &&
	                                !ps_w_mirrors_hold(p, p->commit.in_doubt_seq)))
		return;
	ps_assert_locked(p);
	ps_event(p, PERSEAS_EVENT_DURABLE, p->commit.in_doubt_seq, NULL,
	         "transaction %llu is no longer in doubt: %u mirrors hold it",
	         (unsigned long long)p->commit.in_doubt_seq, p->acks);
	p->commit.in_doubt_seq = 0;
}

void ps_tokens_set_epoch(struct perseas *p)
{
	assert(p->epoch >= p->commit.unwaited.token_epoch);
	p->commit.unwaited.token_epoch = p->epoch;
	p->commit.unwaited.seq_before_epoch = p->commit.seq;
}

struct perseas_token ps_last_token(const struct perseas *p)
{
	return (struct perseas_token){ p->commit.unwaited.token_epoch, ps_last_committed_seq(p) };
}

int ps_token_check(const struct perseas *p, const struct perseas_token *token)
{
	const struct ps_unwaited *u = &p->commit.unwaited;

	if (token->epoch < p->opened_epoch || token->epoch > u->token_epoch)
		return ps_fail(
			p, PERSEAS_EEPOCH,
			"the token is of epoch %llu, and this handle has had store '%s' since "
			"epoch %llu: whether that transaction is there shows in the data",
			(unsigned long long)token->epoch, p->store,
			(unsigned long long)p->opened_epoch);
	/* Earlier epochs ended where the present one began. */
	if (token->seq >
	    (token->epoch == u->token_epoch ? ps_last_committed_seq(p) : u->seq_before_epoch))
		return ps_fail(p, PERSEAS_EINVAL, "no transaction %llu was committed in epoch %llu",
		               (unsigned long long)token->seq, (unsigned long long)token->epoch);
	return 0;
}
