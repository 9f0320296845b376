/*
 * await.c - waiting until W mirrors hold what was posted: for commits, and for all of them (flush).
 * It lets go of the lock, and posts nothing but what was held back.
 */
#include "commit.h"
#include "gather.h"
#include "mirror.h"
#include "nowait.h"
#include "quorum.h"

/* Lets the owner wait with others for what any of them sees. */
void ps_commit_sleep(struct perseas *p, uint64_t until_ns)
{
	struct pollfd fds[PS_MIRRORS_MAX];
	unsigned count = 0;

	p->waiters++;
	if (p->leader) {
		p->env->ops->wait(p->env, &p->progress, &p->lock, until_ns);
		p->waiters--;
		return;
	}
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (m->active && m->outstanding && m->fabric->waits(m->link, &fds[count]))
			count++;
	}
	p->leader = true;
	pthread_mutex_unlock(&p->lock);
	p->env->ops->pause(p->env, PS_COMMITTER, fds, count, until_ns);
	pthread_mutex_lock(&p->lock);
	p->leader = false;
	p->waiters--;
	ps_progress(p);
}

void ps_commit_rest(struct perseas *p, uint64_t now, uint64_t spin_until, uint64_t until_ns)
{
	if (now < spin_until) {
		pthread_mutex_unlock(&p->lock);
		ps_relax();
		pthread_mutex_lock(&p->lock);
		return;
	}
	ps_commit_sleep(p, until_ns);
}

/* Of two rosters, the one that is short is named: while a change of the roster is not settled, a
 * commit needs W of both. */
int ps_fail_in_doubt(const struct perseas *p, uint64_t seq)
{
	const uint32_t holding = ps_mirrors_holding(p, seq);
	const unsigned q = ps_quorum_short(p, holding);
	const struct ps_quorum *quorum = &p->quorums[q];
	const char *which = p->quorum_count == 1 ? ""
	                    : q                  ? " of the new roster, which is not settled yet,"
	                        : " of the old roster, while the new one is not settled yet,";
	char advice[320];

	return ps_fail(p, PERSEAS_EINDOUBT,
	               "transaction %llu is held by %u of %u mirrors%s and %u must hold it: %s",
	               (unsigned long long)seq, (unsigned)__builtin_popcount(holding & quorum->set),
	               quorum->members, *which ? which : ",", quorum->acks,
	               ps_doubt_advice(p, advice, sizeof(advice)));
}

/* Since when W mirrors have come to hold no more, if that is after `since`: before this one they
 * get those that nobody waited for, which may be many. That they hold the last of them is progress,
 * too. */
static uint64_t stood_since(struct perseas *p, uint64_t since)
{
	const struct ps_unwaited *u = &p->commit.unwaited;

	if (u->seq)
		ps_durable(p);
	return u->progress_at > since ? u->progress_at : since;
}

int ps_commit_await(struct perseas *p, uint64_t seq, uint64_t *since)
{
	uint64_t start = 0, now, until;

	for (;;) {
		ps_mirrors_poll(p);
		if (ps_mirrors_hold(p, seq))
			return 0;
		if (ps_fenced(p))
			return ps_fail_fenced(p);
		now = ps_now(p);
		if (!start)
			start = now;
		if (!*since)
			*since = start;
		until = stood_since(p, start) + ps_ms(p->options.commit_timeout_ms);
		if (now >= until)
			break;
		ps_commit_rest(p, now, start + (uint64_t)p->options.spin_us * 1000, until);
	}
	ps_doubt(p, seq, now);
	return ps_fail_in_doubt(p, seq);
}

int perseas_flush(perseas_t *p)
{
	uint64_t since = 0;
	int rc;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "p is NULL");
	pthread_mutex_lock(&p->lock);
	ps_gather_post(p);
	rc = p->salvage ? 0 : ps_commit_await(p, p->commit.seq, &since);
	pthread_mutex_unlock(&p->lock);
	return rc;
}
