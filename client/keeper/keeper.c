/*
 * keeper.c - the thread that runs next to the application: takes up broken sessions (session.c),
 * copies an image whole (resync.c), changes the roster (change.c), and moves mirrors on that lag
 * while nothing commits. It never waits for one mirror: it sleeps on all of them at once.
 */
#include "change.h"
#include "confirm.h"
#include "../core/detour.h"
#include "pending_answers.h"
#include "../core/event.h"
#include "expiry_watch.h"
#include "keeper.h"
#include "lifeline.h"
#include "../core/mirror.h"
#include "operator_orders.h"
#include "heartbeat.h"
#include "../core/quorum.h"
#include "renew.h"
#include "repair.h"
#include "resync.h"
#include "roster.h"
#include "session.h"
#include "roster_telling.h"

#include <string.h>

#define ROUND_PAUSE ps_ms(500)
#define ENLARGE_PAUSE ps_ms(50) /* the kernel copies some megabytes each time */

/* Has W mirrors record the own id of an image that was loaded from a spill, and then the mirror
 * itself. Returns false if too few mirrors are connected for that. */
static bool record_loaded_id(struct perseas *p, struct ps_mirror *m)
{
	const uint32_t self = ps_mirror_bit(p, m);
	uint32_t whole, others;

	pthread_mutex_lock(&p->lock);
	whole = ps_mirrors_with_whole_image(p);
	pthread_mutex_unlock(&p->lock);
	if (!(whole & self) || !ps_quorum_is_w(p, whole))
		return false;
	if (memcmp(m->image_id, m->image_id_after_spill_load, PS_ID_SIZE) != 0)
		ps_roster_set_image_id(p, m, m->image_id_after_spill_load);
	others = whole & ~ps_roster_mirrors_to_tell_last(p);
	if (!ps_quorum_is_w(p, others | self))
		others = whole & ~self;
	if (ps_quorum_is_w(p, (ps_roster_tell_mirrors(p, others) & whole) | self) &&
	    ps_roster_tell_mirrors(p, others | self) & self)
		m->is_from_spill = false;
	return true;
}

/* Records the ids of loaded images one at a time, because each mirror is told the ids of the
 * others. */
static void record_loaded_ids(struct perseas *p)
{
	bool going = false;

	for (unsigned i = 0; i < p->mirror_count && !going; i++)
		going = p->mirrors[i].is_from_spill && record_loaded_id(p, &p->mirrors[i]);
}

/* Breaks the mirror's link if its session is over, and returns true. A mirror whose daemon is gone
 * takes no part, even if its memory is still mapped here. */
static bool break_link_if_session_ended(struct perseas *p, struct ps_mirror *m)
{
	bool silent;

	if (m->session.state != PS_SESSION_UP || !p->env->ops->ended(m->control))
		return false;
	silent = p->env->ops->silent && p->env->ops->silent(m->control);
	pthread_mutex_lock(&p->lock);
	if (m->is_active && silent)
		ps_mirror_break_silent_link(p, m);
	else if (m->is_active)
		ps_mirror_break_link(p, m, PS_LINK_BROKEN, "the mirror ended the session");
	pthread_mutex_unlock(&p->lock);
	return true;
}

void ps_sessions_break_ended(struct perseas *p)
{
	ps_assert_admin(p);
	ps_pending_take_all_answers(p, ps_now(p));
	for (unsigned i = 0; i < p->mirror_count; i++)
		break_link_if_session_ended(p, &p->mirrors[i]);
}

static void end_broken_sessions(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (break_link_if_session_ended(p, &p->mirrors[i]))
			ps_mirror_disconnect(p, &p->mirrors[i]);
}

/* Returns when the keeper next has work if nothing arrives. */
static uint64_t next_round_due_at(const struct perseas *p, uint64_t now)
{
	uint64_t until = now + ROUND_PAUSE;

	if (ps_renew_due_at(p) < until)
		until = ps_renew_due_at(p);
	/* While the owner renews its claims, the keeper does nothing else. */
	if (p->is_renewing)
		return until;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const uint64_t due = ps_session_due_at(p, &p->mirrors[i]);
		const uint64_t line = ps_lifeline_due_at(&p->mirrors[i]);

		until = due < until ? due : until;
		until = line < until ? line : until;
	}
	if (ps_resync_due_at(p) < until)
		until = ps_resync_due_at(p);
	if (ps_repair_due_at(p, now) < until)
		until = ps_repair_due_at(p, now);
	if (ps_detour_next_test_at(p) < until)
		until = ps_detour_next_test_at(p);
	return ps_change_due_at(p, now) < until ? ps_change_due_at(p, now) : until;
}

/* Replaces small pages of the ring by large ones. Small pages delay the end of this process, for
 * which the next owner may wait. Returns when to call this again. */
static uint64_t make_large_ring_pages(struct perseas *p)
{
	uint64_t head;

	pthread_mutex_lock(&p->lock);
	head = p->commit.ring.append_position;
	pthread_mutex_unlock(&p->lock);
	return ps_ring_make_large_pages(&p->commit.ring, head) ? ps_now(p) + ENLARGE_PAUSE
	                                                       : PS_NEVER;
}

/* Asks idle links for a sign of life. Otherwise only the next commit would notice a dead host. */
static void send_link_heartbeats(struct perseas *p, uint64_t now, uint64_t *next)
{
	if (now < *next)
		return;
	ps_mirrors_send_heartbeats(p);
	*next = now + ROUND_PAUSE;
}

/* Runs one round of all the keeper's work, unless another thread holds admin: that thread wakes the
 * keeper when it is done. Returns when the next round is due. */
static uint64_t run_keeper_round(struct perseas *p, uint64_t *next_beat)
{
	uint64_t now = ps_now(p), due, again;
	bool busy;

	pthread_mutex_lock(&p->lock);
	busy = p->is_admin_taken || p->is_stopping;
	if (!busy) {
		p->is_admin_taken = true;
		ps_mirrors_poll(p);
		send_link_heartbeats(p, now, next_beat);
	}
	pthread_mutex_unlock(&p->lock);
	if (busy)
		return now + ROUND_PAUSE;
	end_broken_sessions(p);
	ps_certificate_check_expiry_if_due(p);
	ps_heartbeat_step(p, now);
	if (!p->is_renewing) {
		ps_orders_carry_out_waiting_order(p);
		ps_detour_step(p, now);
		ps_repair_step(p);
		ps_sessions_step(p);
	}
	ps_lifelines_step(p);
	if (!ps_renew_step(p, ps_now(p))) {
		ps_resync_step(p);
		record_loaded_ids(p);
		ps_change_step(p, now);
	}
	/* A copy or a renewal that has ended may let more mirrors confirm this owner's claim
	 * (confirm.h). */
	ps_confirm_step(p);
	ps_demand_step(p);
	pthread_mutex_lock(&p->lock);
	p->is_admin_taken = false;
	ps_wake_waiters(p);
	pthread_mutex_unlock(&p->lock);
	due = next_round_due_at(p, ps_now(p));
	again = make_large_ring_pages(p);
	return again < due ? again : due;
}

/* Fills in what the keeper sleeps on: control connections, data paths that are being attached, and
 * links that lag while no thread waits for a commit. The collector takes the completions of
 * unawaited commits. Returns the number of descriptors. */
static unsigned fill_keeper_pollfds(struct perseas *p, struct pollfd *fds)
{
	unsigned count = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count && !p->is_admin_taken; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		const bool attaching = m->session.state == PS_SESSION_ATTACHING ||
		                       ps_resync_is_attaching(p, m);

		if (m->session.state != PS_SESSION_NONE &&
		    p->env->ops->fill_control_pollfd(m->control, &fds[count]))
			count++;
		if (attaching && m->fabric->waits(m->link, &fds[count]))
			count++;
		if (ps_lifeline_fill_pollfd(p, m, &fds[count]))
			count++;
		if (ps_detour_fill_test_pollfd(m, &fds[count]))
			count++;
		if (m->is_active && (m->chains_in_flight || m->fabric->beat) &&
		    !p->commit.wait_line.has_leader &&
		    (m->completions_until_chunk || !p->commit.unwaited.last_unawaited_seq) &&
		    m->fabric->waits(m->link, &fds[count]))
			count++;
	}
	pthread_mutex_unlock(&p->lock);
	return count;
}

void ps_keeper_run(void *arg)
{
	struct perseas *p = arg;
	struct pollfd fds[4 * PS_MIRRORS_MAX];
	uint64_t next_beat = 0;
	bool stopping;

	do {
		uint64_t until = run_keeper_round(p, &next_beat);

		ps_events_deliver(p);
		p->env->ops->pause(p->env, PS_KEEPER, fds, fill_keeper_pollfds(p, fds), until);
		pthread_mutex_lock(&p->lock);
		stopping = p->is_stopping;
		pthread_mutex_unlock(&p->lock);
	} while (!stopping);
}
