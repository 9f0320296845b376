/*
 * exclusive.c - the turns of threads that talk to mirrors outside of commits (exclusive.h).
 */
#include "exclusive.h"

#include "../core/commit.h"
#include "../core/gather.h"
#include "keeper.h"
#include "../core/mirror.h"

/* ps_exclusive_enter sleeps this long between two checks for silent mirrors, which no descriptor of
 * a link reports. */
#define SILENCE_POLL ps_ms(50)

static void wait_for_change(struct perseas *p)
{
	p->commit.wait_line.waiting_count++;
	p->env->ops->wait(p->env, &p->commit.wait_line.changed, &p->lock, PS_NEVER);
	p->commit.wait_line.waiting_count--;
}

void ps_admin_enter(struct perseas *p)
{
	pthread_mutex_lock(&p->lock);
	while (p->is_admin_taken)
		wait_for_change(p);
	p->is_admin_taken = true;
	pthread_mutex_unlock(&p->lock);
}

void ps_admin_leave(struct perseas *p)
{
	pthread_mutex_lock(&p->lock);
	assert(p->is_admin_taken && !p->is_gate_raised);
	p->is_admin_taken = false;
	ps_wake_waiters(p);
	pthread_mutex_unlock(&p->lock);
	if (p->has_keeper)
		p->env->ops->wake(p->env, PS_KEEPER);
}

/* Returns the deadline by which links must have drained. Unawaited commits may leave a long
 * backlog: as long as it shrinks, the deadline moves. *backlog is the backlog at the last call. */
static uint64_t extend_deadline_if_backlog_shrank(struct perseas *p, uint64_t deadline,
                                                  uint64_t *backlog)
{
	uint64_t new_backlog = 0;

	ps_mirrors_poll(p);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].is_active)
			new_backlog += p->commit.seq - p->mirrors[i].acked_seq;
	if (*backlog > new_backlog)
		deadline = ps_now(p) + ps_ms(p->options.commit_timeout_ms);
	*backlog = new_backlog;
	return deadline;
}

/* Returns true if every active mirror has completed all that was posted. `disconnects_undrained`:
 * disconnects the mirrors that have not. */
static bool have_links_drained(struct perseas *p, bool disconnects_undrained)
{
	bool all = true;

	ps_mirrors_poll(p);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!m->is_active || (!m->chains_in_flight && m->posted_seq == p->commit.seq))
			continue;
		if (disconnects_undrained)
			ps_mirror_break_stalled_link(
				p, m, "it did not complete its writes within commit_timeout_ms");
		else
			all = false;
	}
	return all;
}

void ps_exclusive_enter(struct perseas *p)
{
	uint64_t deadline, backlog = 0;
	const bool looks = p->options.mirror_timeout_ms && p->env->ops->silent;
	bool unwaited;

	ps_admin_enter(p);
	pthread_mutex_lock(&p->lock);
	/* The deadline counts from here: admin may have come late, and what is posted now has had
	 * no time. */
	deadline = ps_now(p) + ps_ms(p->options.commit_timeout_ms);
	ps_gather_send_if_any(p);
	assert(!p->is_gate_raised);
	p->is_gate_raised = true;
	unwaited = p->commit.unwaited.last_unawaited_seq != 0;
	extend_deadline_if_backlog_shrank(p, deadline, &backlog);
	while (!have_links_drained(p, ps_now(p) >= deadline)) {
		const uint64_t look_at = looks ? ps_now(p) + SILENCE_POLL : deadline;

		ps_commit_sleep_on_links(p, look_at < deadline ? look_at : deadline);
		if (unwaited)
			deadline = extend_deadline_if_backlog_shrank(p, deadline, &backlog);
		if (!looks)
			continue;
		pthread_mutex_unlock(&p->lock);
		/* No other thread watches the sessions while this one holds admin. */
		ps_sessions_break_ended(p);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
}

void ps_exclusive_leave(struct perseas *p)
{
	pthread_mutex_lock(&p->lock);
	assert(p->is_gate_raised);
	p->is_gate_raised = false;
	pthread_mutex_unlock(&p->lock);
	ps_admin_leave(p);
}
