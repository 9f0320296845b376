/*
 * commit_wait.c - waits until W mirrors hold a transaction: for commits and for perseas_flush. It
 * releases the lock while it waits.
 */
#include "commit.h"
#include "gather.h"
#include "mirror.h"
#include "nowait.h"
#include "quorum.h"

/* Sleeps on the links until a mirror answers, as the leader of all waiting threads
 * (wait_line.h). */
static void sleep_as_leader(struct perseas *p, uint64_t until_ns)
{
	struct pollfd fds[PS_MIRRORS_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (m->is_active && m->chains_in_flight && m->fabric->waits(m->link, &fds[count]))
			count++;
	}
	p->commit.wait_line.has_leader = true;
	pthread_mutex_unlock(&p->lock);
	p->env->ops->pause(p->env, PS_COMMITTER, fds, count, until_ns);
	pthread_mutex_lock(&p->lock);
	p->commit.wait_line.has_leader = false;
}

void ps_commit_sleep_on_links(struct perseas *p, uint64_t until_ns)
{
	ps_assert_locked(p);
	p->commit.wait_line.waiting_count++;
	if (p->commit.wait_line.has_leader) {
		p->env->ops->wait(p->env, &p->commit.wait_line.changed, &p->lock, until_ns);
		p->commit.wait_line.waiting_count--;
		return;
	}
	sleep_as_leader(p, until_ns);
	p->commit.wait_line.waiting_count--;
	ps_wake_waiters(p);
}

static void spin_once(struct perseas *p)
{
	p->commit.wait_line.is_spinning = true;
	pthread_mutex_unlock(&p->lock);
	ps_cpu_relax();
	pthread_mutex_lock(&p->lock);
	p->commit.wait_line.is_spinning = false;
}

void ps_commit_wait_once(struct perseas *p, const struct ps_wait_limits *rest, uint64_t now)
{
	p->commit.wait_line.waiting_count++;
	if (ps_wait_line_has_leader(p))
		ps_wait_line_sleep(p, rest->seq, rest->give_up_at);
	/* If other threads wait, spinning would take their processor. */
	else if (now < rest->spin_until && p->commit.wait_line.waiting_count == 1)
		spin_once(p);
	else
		sleep_as_leader(p, rest->give_up_at);
	p->commit.wait_line.waiting_count--;
}

/* While a roster change is not settled, a commit needs W of both rosters: the message names the
 * roster that has too few mirrors with the transaction. */
int ps_fail_in_doubt(const struct perseas *p, uint64_t seq)
{
	const uint32_t holding = ps_mirrors_holding(p, seq);
	const unsigned q = ps_quorum_first_roster_without_w(p, holding);
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

/* Returns when W mirrors last made progress on commits for which no thread waits, if that is after
 * `since`. Mirrors get these commits before the one that this thread waits for, and there may be
 * many of them. Completing the last of them is progress, too. */
static uint64_t unawaited_progress_since(struct perseas *p, uint64_t since)
{
	const struct ps_unwaited *u = &p->commit.unwaited;

	if (u->last_unawaited_seq)
		ps_update_durable_seq(p);
	return u->durable_progress_at > since ? u->durable_progress_at : since;
}

static int await_w_mirrors(struct perseas *p, uint64_t seq, uint64_t *since)
{
	struct ps_wait_limits rest = { .seq = seq };
	uint64_t start = 0, now;
	bool late = false;

	for (;;) {
		const bool looks = late || ps_commit_should_poll(p);

		if (looks)
			ps_wait_line_poll(p);
		if (ps_w_mirrors_hold(p, seq))
			return 0;
		if (ps_is_fenced(p))
			return ps_fail_fenced(p);
		now = ps_now(p);
		if (!start)
			start = now;
		if (!*since)
			*since = start;
		rest.spin_until = start + (uint64_t)p->options.spin_us * 1000;
		rest.give_up_at = unawaited_progress_since(p, start) +
		                  ps_ms(p->options.commit_timeout_ms);
		/* Before it gives up, the thread polls the links itself, even if another thread
		 * leads. */
		late = now >= rest.give_up_at;
		if (!late)
			ps_commit_wait_once(p, &rest, now);
		else if (looks)
			break;
	}
	ps_put_commits_in_doubt(p, seq, now);
	return ps_fail_in_doubt(p, seq);
}

int ps_commit_await_w_mirrors(struct perseas *p, uint64_t seq, uint64_t *since)
{
	int rc = await_w_mirrors(p, seq, since);

	ps_wait_line_leave(p);
	return rc;
}

int perseas_flush(perseas_t *p)
{
	uint64_t since = 0;
	int rc;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "p is NULL");
	pthread_mutex_lock(&p->lock);
	ps_gather_send_if_any(p);
	rc = p->is_salvage ? 0 : ps_commit_await_w_mirrors(p, p->commit.seq, &since);
	pthread_mutex_unlock(&p->lock);
	return rc;
}
