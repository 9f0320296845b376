/*
 * keeper.c - runs beside the application: has broken sessions taken up again (session.c), an image
 * copied whole (resync.c) and the roster changed (change.c), each as far as it goes without
 * waiting, and moves on what lags when nobody commits. It never waits for one mirror: it sleeps on
 * all of them.
 */
#include "change.h"
#include "confirm.h"
#include "../core/detour.h"
#include "due.h"
#include "../core/event.h"
#include "expiry_watch.h"
#include "keeper.h"
#include "lifeline.h"
#include "../core/mirror.h"
#include "operator_orders.h"
#include "heartbeat.h"
#include "../core/quorum.h"
#include "renew.h"
#include "resync.h"
#include "roster.h"
#include "session.h"
#include "roster_telling.h"

#include <string.h>

#define TICK ps_ms(500)
#define GATHER_AGAIN ps_ms(50) /* the kernel copies some megabytes each time */

/* Does this image, which was loaded from a spill, count under its own id, and know it? False where
 * W are not there to record that. */
static bool record_own_id(struct perseas *p, struct ps_mirror *m)
{
	const uint32_t self = ps_bit(p, m);
	uint32_t whole, others;

	pthread_mutex_lock(&p->lock);
	whole = ps_mirrors_whole(p);
	pthread_mutex_unlock(&p->lock);
	if (!(whole & self) || !ps_quorum_acks(p, whole))
		return false;
	if (memcmp(m->image_id, m->loaded_id, PS_ID_SIZE) != 0)
		ps_roster_replace(p, m, m->loaded_id);
	others = whole & ~ps_roster_unrecorded(p);
	if (!ps_quorum_acks(p, others | self))
		others = whole & ~self;
	if (ps_quorum_acks(p, (ps_tell(p, others) & whole) | self) &&
	    ps_tell(p, others | self) & self)
		m->loaded = false;
	return true;
}

/* One after the other, since each is told the ids of the others. */
static void record_loaded(struct perseas *p)
{
	bool going = false;

	for (unsigned i = 0; i < p->mirror_count && !going; i++)
		going = p->mirrors[i].loaded && record_own_id(p, &p->mirrors[i]);
}

/* Is the session of a mirror over? One whose daemon is gone takes no part, even where its memory is
 * still mapped here. */
static bool has_left(struct perseas *p, struct ps_mirror *m)
{
	bool silent;

	if (m->session.state != PS_SESSION_UP || !p->env->ops->ended(m->control))
		return false;
	silent = p->env->ops->silent && p->env->ops->silent(m->control);
	pthread_mutex_lock(&p->lock);
	if (m->active && silent)
		ps_mirror_silent(p, m);
	else if (m->active)
		ps_mirror_break(p, m, PS_LINK_BROKEN, "the mirror ended the session");
	pthread_mutex_unlock(&p->lock);
	return true;
}

void ps_sessions_look(struct perseas *p)
{
	ps_assert_admin(p);
	ps_dues_take(p, ps_now(p));
	for (unsigned i = 0; i < p->mirror_count; i++)
		has_left(p, &p->mirrors[i]);
}

static void watch_sessions(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (has_left(p, &p->mirrors[i]))
			ps_mirror_disconnect(p, &p->mirrors[i]);
}

/* Until when the keeper has nothing to do, if nothing happens. */
static uint64_t next_due(const struct perseas *p, uint64_t now)
{
	uint64_t until = now + TICK;

	if (ps_renew_due(p) < until)
		until = ps_renew_due(p);
	/* Nothing else is done then. */
	if (p->renewing)
		return until;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const uint64_t due = ps_session_due(p, &p->mirrors[i]);
		const uint64_t line = ps_lifeline_due(&p->mirrors[i]);

		until = due < until ? due : until;
		until = line < until ? line : until;
	}
	if (ps_resync_due(p) < until)
		until = ps_resync_due(p);
	if (ps_detour_due(p) < until)
		until = ps_detour_due(p);
	return ps_change_due(p, now) < until ? ps_change_due(p, now) : until;
}

/* The ring's small pages hold up the end of this process, for which the next owner may wait.
 * Returns when there is more to do. */
static uint64_t gather(struct perseas *p)
{
	uint64_t head;

	pthread_mutex_lock(&p->lock);
	head = p->commit.ring.head;
	pthread_mutex_unlock(&p->lock);
	return ps_ring_gather(&p->commit.ring, head) ? ps_now(p) + GATHER_AGAIN : PS_NEVER;
}

/* Links on which nothing happens are asked for a sign of life now and then: else a mirror whose
 * host is gone would be noticed by the next commit only. */
static void beat(struct perseas *p, uint64_t now, uint64_t *next)
{
	if (now < *next)
		return;
	ps_mirrors_beat(p);
	*next = now + TICK;
}

/* One round, unless another thread is at the mirrors: it wakes the keeper when it leaves. */
static uint64_t step(struct perseas *p, uint64_t *next_beat)
{
	uint64_t now = ps_now(p), due, again;
	bool busy;

	pthread_mutex_lock(&p->lock);
	busy = p->admin || p->stopping;
	if (!busy) {
		p->admin = true;
		ps_mirrors_poll(p);
		beat(p, now, next_beat);
	}
	pthread_mutex_unlock(&p->lock);
	if (busy)
		return now + TICK;
	watch_sessions(p);
	ps_expiry_watch(p);
	ps_pulse(p, now);
	if (!p->renewing) {
		ps_orders_obey(p);
		ps_detour_step(p, now);
		ps_sessions_step(p);
	}
	ps_lifelines_step(p);
	if (!ps_renew_step(p, ps_now(p))) {
		ps_resync_step(p);
		record_loaded(p);
		ps_change_step(p, now);
	}
	/* Mirrors may be live, or claimed again, only now. */
	ps_confirm_step(p);
	ps_demand_step(p);
	pthread_mutex_lock(&p->lock);
	p->admin = false;
	ps_progress(p);
	pthread_mutex_unlock(&p->lock);
	due = next_due(p, ps_now(p));
	again = gather(p);
	return again < due ? again : due;
}

/* What the keeper sleeps on: the control connections, and links that lag while nobody waits. What
 * commits left under way that nobody waits for is the collector's to take. */
static unsigned collect(struct perseas *p, struct pollfd *fds)
{
	unsigned count = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count && !p->admin; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		const bool attaching = m->session.state == PS_SESSION_ATTACHING ||
		                       ps_resync_is_attaching(p, m);

		if (m->session.state != PS_SESSION_NONE &&
		    p->env->ops->control_waits(m->control, &fds[count]))
			count++;
		if (attaching && m->fabric->waits(m->link, &fds[count]))
			count++;
		if (ps_lifeline_waits(p, m, &fds[count]))
			count++;
		if (ps_detour_waits(m, &fds[count]))
			count++;
		if (m->active && (m->outstanding || m->fabric->beat) && !p->commit.line.leader &&
		    (m->bulk || !p->commit.unwaited.seq) && m->fabric->waits(m->link, &fds[count]))
			count++;
	}
	pthread_mutex_unlock(&p->lock);
	return count;
}

void ps_keeper(void *arg)
{
	struct perseas *p = arg;
	struct pollfd fds[4 * PS_MIRRORS_MAX];
	uint64_t next_beat = 0;
	bool stopping;

	do {
		uint64_t until = step(p, &next_beat);

		ps_events_tell(p);
		p->env->ops->pause(p->env, PS_KEEPER, fds, collect(p, fds), until);
		pthread_mutex_lock(&p->lock);
		stopping = p->stopping;
		pthread_mutex_unlock(&p->lock);
	} while (!stopping);
}
