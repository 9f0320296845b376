/*
 * ready.c - whether transactions may go on, and what to say if not: another owner has the store,
 * mirrors refuse this owner, a commit is in doubt, or the handle is for salvage.
 */
#include "mirror.h"
#include "quorum.h"
#include "../../proto/base/text.h"

bool ps_fences_prevent_w(const struct perseas *p)
{
	uint32_t lost = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		lost |= p->commit.fenced_mirrors & (uint32_t)p->mirrors[i].has_vote << i;
	return lost && !ps_quorum_is_w_possible_without(p, lost);
}

const struct ps_mirror *ps_mirror_whose_refusal_prevents_w(const struct perseas *p)
{
	const struct ps_mirror *one = NULL;
	uint32_t lost = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (!m->is_claim_denied || !m->has_vote)
			continue;
		lost |= ps_mirror_bit(p, m);
		one = m;
	}
	return one && !ps_quorum_is_w_possible_without(p, lost) ? one : NULL;
}

unsigned ps_count_lost_if_none_can_be_remade(const struct perseas *p)
{
	uint32_t lost = 0, others = 0;

	if (p->next_roster)
		return 0;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->has_vote)
			*(m->state == PERSEAS_MIRROR_LOST ? &lost : &others) |= ps_mirror_bit(p, m);
	}
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (lost >> i & 1 && ps_quorum_can_remake_mirror(p, others, &p->mirrors[i]))
			return 0;
	return (unsigned)__builtin_popcount(lost);
}

const char *ps_lost_mirrors_advice(const struct perseas *p, char *text, size_t size)
{
	const unsigned lost = ps_count_lost_if_none_can_be_remade(p);

	if (lost == p->member_count)
		ps_text_format(text, size,
		               "all mirrors lost their memory: this process has all that is left, "
		               "and must write it elsewhere before it ends");
	else
		ps_text_format(text, size,
		               "%u of %u mirrors lost their memory, too many to make them anew "
		               "(I9): once the others are live, end this process, and save what "
		               "they have by the command that perseas status prints",
		               lost, p->member_count);
	return text;
}

const char *ps_doubt_advice(const struct perseas *p, char *text, size_t size)
{
	const struct ps_mirror *denied = ps_mirror_whose_refusal_prevents_w(p);

	if (!denied && ps_count_lost_if_none_can_be_remade(p))
		return ps_lost_mirrors_advice(p, text, size);
	if (!denied)
		return "perseas_flush waits for it; perseas_mirror_stat says what is wrong with "
		       "each mirror";
	ps_text_format(text, size,
	               "the access rules of mirrors no longer allow this owner (%s): "
	               "perseas_flush waits until they do",
	               denied->trouble_text);
	return text;
}

const char *ps_fenced_text(const struct perseas *p, char *text, size_t size)
{
	if (p->upkeep.renewal.reverted_text[0])
		return p->upkeep.renewal.reverted_text;
	ps_text_format(text, size,
	               "another owner has taken store '%s' over from epoch %llu: close this handle",
	               p->store, (unsigned long long)p->epoch);
	return text;
}

int ps_fail_fenced(const struct perseas *p)
{
	char text[200];

	return ps_fail(p, PERSEAS_EFENCED, "%s", ps_fenced_text(p, text, sizeof(text)));
}

/* Returns true while the keeper has not yet found out why a mirror's session broke: another owner
 * may have ended it. */
static bool is_cause_unknown(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (!m->has_vote)
			continue;
		if (m->state == PERSEAS_MIRROR_FENCED || ps_session_under_way(m) ||
		    (m->state == PERSEAS_MIRROR_DOWN && !m->retry.delay_ns))
			return true;
	}
	return false;
}

int ps_judge_failed_session(struct perseas *p, int rc)
{
	const uint64_t until = ps_now(p) + ps_ms(p->options.connect_timeout_ms);

	if (rc != PERSEAS_EUNREACHABLE && rc != PERSEAS_EFENCED)
		return rc;
	pthread_mutex_lock(&p->lock);
	while (!ps_is_fenced(p) && ps_now(p) < until &&
	       (p->is_admin_taken || is_cause_unknown(p))) {
		p->commit.wait_line.waiting_count++;
		p->env->ops->wait(p->env, &p->commit.wait_line.changed, &p->lock, until);
		p->commit.wait_line.waiting_count--;
	}
	if (ps_is_fenced(p))
		rc = ps_fail_fenced(p);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int ps_check_may_transact_slowly(struct perseas *p)
{
	char advice[320];

	if (p->is_salvage)
		return ps_fail(p, PERSEAS_ESALVAGE,
		               "store '%s' was opened for salvage: open it again without "
		               "PERSEAS_SALVAGE to run transactions",
		               p->store);
	if (ps_is_fenced(p))
		return ps_fail_fenced(p);
	if (p->commit.in_doubt_seq)
		return ps_fail(p, PERSEAS_EBLOCKED, "transaction %llu is in doubt: %s",
		               (unsigned long long)p->commit.in_doubt_seq,
		               ps_doubt_advice(p, advice, sizeof(advice)));
	return 0;
}
