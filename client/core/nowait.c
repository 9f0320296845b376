/*
 * nowait.c - unawaited commits; see nowait.h. commit.c posts them, mirror.c reports completions,
 * and token_wait.c answers the application. It must cost nothing if every commit waits.
 */
#include "nowait.h"

#include "serialization.h"
#include "commit.h"
#include "event.h"
#include "flag_fd.h"
#include "gather.h"
#include "mirror.h"
#include "pace.h"
#include "quorum.h"

#include <assert.h>
#include <unistd.h>

/* How often the collector polls: normally, and while a mirror takes less at a time than there is to
 * send. */
#define LOOK_INTERVAL ps_ms(10)
#define LOOK_INTERVAL_SHORT ps_ms(1)

/* The committing thread polls the mirrors once in this many commits, since a poll costs a system
 * call for each mirror. */
enum { POLL_EVERY = 32 };

static bool is_commit_timeout_over(struct perseas *p, uint64_t now)
{
	const struct ps_unwaited *u = &p->commit.unwaited;

	return u->last_unawaited_seq && !p->commit.in_doubt_seq && !ps_is_fenced(p) &&
	       now >= u->durable_progress_at + ps_ms(p->options.commit_timeout_ms);
}

static bool is_commit_timeout_over_now(struct perseas *p)
{
	return is_commit_timeout_over(p, ps_now(p));
}

/* Does ps_unwaited_check_doubt, with the time that the caller has read. */
static void check_doubt_at(struct perseas *p, uint64_t now)
{
	if (!is_commit_timeout_over(p, now))
		return;
	ps_assert_locked(p);
	/* Polls before judging: this process may have been stopped for long, while answers waited
	 * for it. */
	ps_mirrors_poll(p);
	ps_update_durable_seq(p);
	if (is_commit_timeout_over_now(p))
		ps_put_commits_in_doubt(p, ps_last_committed_seq(p), ps_now(p));
}

void ps_unwaited_check_doubt(struct perseas *p)
{
	check_doubt_at(p, ps_now(p));
}

/* Notes the time of an unawaited commit. A stamp covers an eighth of flush_within_ms: the time of
 * its first commit, and the seq of its last one. */
static void note_commit_time(struct perseas *p, uint64_t now)
{
	struct ps_unwaited *u = &p->commit.unwaited;
	const uint64_t gap = ps_ms(p->options.flush_within_ms) / (PS_STAMPS - 1);

	if (!u->stamp_count || now >= u->stamps[(u->stamp_count - 1) % PS_STAMPS].at + gap)
		u->stamps[u->stamp_count++ % PS_STAMPS].at = now;
	u->stamps[(u->stamp_count - 1) % PS_STAMPS].seq = ps_last_committed_seq(p);
}

void ps_unwaited_note_commit(struct perseas *p)
{
	struct ps_unwaited *u = &p->commit.unwaited;
	uint64_t now;

	if (!p->commit.has_gathered && (!p->commit.uses_ring || p->commit.seq % POLL_EVERY == 0)) {
		ps_mirrors_poll(p);
		if (ps_update_durable_seq(p) >= p->commit.seq)
			return;
	}
	/* Reading the clock would be a noticeable cost of a gathered commit. */
	now = p->commit.has_gathered ? p->commit.gather->last_added_at : ps_now(p);
	if (!u->last_unawaited_seq) {
		/* Commits that other threads waited for are no progress of unawaited commits. */
		ps_update_durable_seq(p);
		u->durable_progress_at = now;
	}
	u->last_unawaited_seq = ps_last_committed_seq(p);
	if (p->options.flush_within_ms)
		note_commit_time(p, now);
	u->updates_durable_seq_at_completions = true;
	check_doubt_at(p, now);
	if (u->is_collector_idle || ps_gather_due_at(p) < u->collector_wakes_at) {
		u->collector_wakes_at = ps_gather_due_at(p);
		p->env->ops->wake(p->env, PS_COLLECTOR);
	}
}

/* Returns, by the stamps, a time at or before which the oldest commit that W mirrors do not hold
 * was posted. The oldest stamp is as old as flush_within_ms. At least one commit is not held. */
static uint64_t oldest_nondurable_commit_at(const struct perseas *p)
{
	const struct ps_unwaited *u = &p->commit.unwaited;
	uint64_t since = 0;

	for (unsigned back = 1; back <= PS_STAMPS && back <= u->stamp_count; back++) {
		const struct ps_stamp *s = &u->stamps[(u->stamp_count - back) % PS_STAMPS];

		if (s->seq <= p->commit.durable_seq)
			break;
		since = s->at;
	}
	return since;
}

static bool is_flush_overdue(struct perseas *p)
{
	return p->commit.unwaited.last_unawaited_seq &&
	       ps_now(p) >= oldest_nondurable_commit_at(p) + ps_ms(p->options.flush_within_ms);
}

bool ps_unwaited_is_flush_overdue(struct perseas *p)
{
	if (!p->options.flush_within_ms || !is_flush_overdue(p))
		return false;
	ps_assert_locked(p);
	ps_gather_send_if_any(p);
	ps_mirrors_poll(p);
	ps_update_durable_seq(p);
	return is_flush_overdue(p);
}

int ps_unwaited_await_all(struct perseas *p)
{
	struct ps_unwaited *u = &p->commit.unwaited;
	uint64_t since = 0;
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	ps_gather_send_if_any(p);
	if (u->last_unawaited_seq) {
		ps_mirrors_poll(p);
		ps_update_durable_seq(p);
	}
	if (u->last_unawaited_seq && p->commit.in_doubt_seq)
		rc = ps_fail_in_doubt(p, u->last_unawaited_seq);
	else if (u->last_unawaited_seq)
		rc = ps_commit_await_w_mirrors(p, u->last_unawaited_seq, &since);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* --- the collector --- */

/* Returns true if a mirror takes less at a time than there is to send. */
static bool is_any_mirror_behind(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].is_active && p->mirrors[i].posted_seq < p->commit.seq)
			return true;
	return false;
}

static unsigned fill_link_pollfds(struct perseas *p, struct pollfd *fds)
{
	unsigned count = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (m->is_active && m->chains_in_flight && m->fabric->waits(m->link, &fds[count]))
			count++;
	}
	return count;
}

/* Collects completions. Returns until when the collector may sleep, unless it is woken or one of
 * the *count descriptors is ready. */
static uint64_t collect_completions(struct perseas *p, struct pollfd *fds, unsigned *count)
{
	struct ps_unwaited *u = &p->commit.unwaited;
	const bool worked = u->last_unawaited_seq != 0;
	bool works;
	uint64_t look;

	*count = 0;
	u->is_collector_idle = u->collector_watches_links = false;
	if (ps_now(p) >= ps_gather_due_at(p))
		ps_gather_send(p);
	if (u->last_unawaited_seq && !ps_is_fenced(p)) {
		ps_mirrors_poll(p);
		ps_update_durable_seq(p);
		ps_unwaited_check_doubt(p);
	}
	works = !ps_is_fenced(p) && (ps_pace_recheck_blocking_mirrors(p) || u->last_unawaited_seq);
	look = ps_now(p) + (is_any_mirror_behind(p) ? LOOK_INTERVAL_SHORT : LOOK_INTERVAL);
	if (look > ps_gather_due_at(p))
		look = ps_gather_due_at(p);
	/* The collector stays awake for one more round, since the next commit may come soon: waking
	 * the collector would cost that commit a system call. */
	if (!works) {
		u->is_collector_idle = !worked || u->flag_fd >= 0;
		return u->is_collector_idle ? PS_NEVER : look;
	}
	/* If a committing thread leads, it sleeps on the links itself and reports completions. */
	if (u->flag_fd >= 0 && !p->commit.wait_line.has_leader) {
		u->collector_watches_links = true;
		*count = fill_link_pollfds(p, fds);
	}
	return look;
}

static void run_collector(void *arg)
{
	struct pollfd fds[PS_MIRRORS_MAX];
	struct perseas *p = arg;
	struct ps_unwaited *u = &p->commit.unwaited;
	unsigned count;
	uint64_t until;
	bool stopping;

	do {
		pthread_mutex_lock(&p->lock);
		until = u->collector_wakes_at = collect_completions(p, fds, &count);
		pthread_mutex_unlock(&p->lock);
		p->env->ops->pause(p->env, PS_COLLECTOR, fds, count, until);
		pthread_mutex_lock(&p->lock);
		stopping = p->is_stopping;
		pthread_mutex_unlock(&p->lock);
	} while (!stopping);
}

int ps_collector_start(struct perseas *p)
{
	struct ps_unwaited *u = &p->commit.unwaited;

	/* The fast path of nearly all unawaited commits. */
	if (u->has_collector_thread && !p->is_stopping)
		return 0;
	ps_assert_locked(p);
	/* No thread would end a collector that is started now. */
	if (p->is_stopping)
		return ps_fail(p, PERSEAS_EINVAL, "the handle is being closed");
	if (!u->has_collector_thread && p->env->ops->spawn(p->env, PS_COLLECTOR, run_collector, p))
		return ps_fail(
			p, PERSEAS_ESYSTEM,
			"the thread that collects completions could not be started: raise the "
			"limit on threads");
	u->has_collector_thread = true;
	return 0;
}

void ps_collector_end(struct perseas *p)
{
	struct ps_unwaited *u = &p->commit.unwaited;
	int flag;

	pthread_mutex_lock(&p->lock);
	p->is_stopping = true;
	/* The keeper still runs, and must not raise a descriptor number that may be reused after
	 * the close. */
	flag = u->flag_fd;
	u->flag_fd = -1;
	pthread_mutex_unlock(&p->lock);
	if (u->has_collector_thread) {
		p->env->ops->wake(p->env, PS_COLLECTOR);
		p->env->ops->join(p->env, PS_COLLECTOR);
	}
	u->has_collector_thread = false;
	if (flag >= 0)
		close(flag);
}
