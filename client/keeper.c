/*
 * keeper.c - runs beside the application: takes broken sessions up again, has what was missed
 * sent from the ring, or else the image copied whole, and moves on what lags when nobody commits.
 *
 * RETRY and flushes mean unknown, never "not applied": a session is always taken up by asking the
 * mirror where it stands, and replaying from there by seq.
 */
#include "change.h"
#include "event.h"
#include "mirror.h"
#include "pulse.h"
#include "quorum.h"
#include "rejoin.h"
#include "resync.h"
#include "roster.h"

#include <stdio.h>
#include <string.h>

#define RETRY_FIRST ps_ms(10)
#define RETRY_MOST ps_ms(1000)
#define ANSWER_WITHIN ps_ms(1000)
#define TICK ps_ms(500)

/* Can the ring bring a mirror from `seq` to where the owner is? Publishing cannot be replayed:
 * the contents did not go through the ring. */
static bool replayable(const struct perseas *p, uint64_t seq)
{
	for (uint64_t s = seq + 1; s <= p->seq; s++) {
		const struct ps_entry *entry = ps_ring_find(&p->ring, s);

		if (!entry || entry->kind != PS_RECORD_TRANSACTION)
			return false;
	}
	return true;
}

/* What a mirror that granted the claim again says of itself decides how it goes on. */
static enum perseas_mirror_state judge(const struct perseas *p, const struct ps_mirror *m,
                                       const Perseas__ClaimReply *claim, const char **why)
{
	const Perseas__Header *header = claim->header;
	const Perseas__Slot *slot = claim->slot;

	*why = "";
	if (!ps_id_equal(header->image_id, m->image_id) &&
	    (!header->parent_id.len || !ps_id_equal(header->parent_id, m->image_id))) {
		*why = "it has another image now: the one that it had is lost";
		return PERSEAS_MIRROR_LOST;
	}
	if (!slot || header->state != PERSEAS__STATE__STATE_CONSISTENT || slot->epoch != p->epoch) {
		*why = "it was not adopted by this owner; it waits to be copied whole";
		return PERSEAS_MIRROR_STALE;
	}
	if (slot->seq < m->acked || slot->seq > p->seq) {
		*why = "it does not hold what it had acknowledged";
		return PERSEAS_MIRROR_LOST;
	}
	if (!replayable(p, slot->seq)) {
		*why = "it missed more than the ring holds; it waits to be copied whole";
		return PERSEAS_MIRROR_STALE;
	}
	return PERSEAS_MIRROR_REPLAYING;
}

/* Nothing more can be done with this mirror now; what it is in says what it lacks. */
static void set_aside(struct perseas *p, struct ps_mirror *m, enum perseas_mirror_state state,
                      const char *why)
{
	pthread_mutex_lock(&p->lock);
	if (m->link)
		m->fabric->detach(m->link);
	m->link = NULL;
	ps_mirror_move(p, m, state, why);
	pthread_mutex_unlock(&p->lock);
	ps_mirror_hang_up(p, m);
	p->env->ops->wake(p->env, PS_COMMITTER);
}

/* The ring holds what the mirror missed: it goes on from its slot. */
static void replay(struct perseas *p, struct ps_mirror *m, const Perseas__ClaimReply *claim)
{
	const Perseas__Slot *slot = claim->slot;

	ps_mirror_loaded(m, claim->header);
	m->slot = (int)slot->index;
	m->posted = slot->seq;
	if (m->posted > m->acked)
		m->acked = m->posted;
	p->stat.reconnects++;
	ps_mirror_move(p, m, PERSEAS_MIRROR_REPLAYING, "");
	ps_mirrors_settle_doubt(p);
	ps_mirror_pump(p, m);
}

/* It must be copied whole: now, or after the one that is being copied. claim is NULL where there is
 * no image. */
static void copy_whole(struct perseas *p, struct ps_mirror *m, const Perseas__ClaimReply *claim,
                       enum perseas_mirror_state state, const char *why)
{
	struct ps_error error = { 0 };

	if (p->resync.mirror) {
		set_aside(p, m, state, why);
		return;
	}
	m->loaded = false;
	if (claim && state == PERSEAS_MIRROR_STALE)
		ps_mirror_loaded(m, claim->header);
	if (ps_resync_begin(p, m, claim, state == PERSEAS_MIRROR_LOST,
	                    m->joins ? "it joins the roster" : why, &error))
		set_aside(p, m, state, error.text);
}

static void record_loaded(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		uint32_t whole;

		pthread_mutex_lock(&p->lock);
		whole = ps_mirrors_whole(p);
		pthread_mutex_unlock(&p->lock);
		if (m->loaded && whole & ps_bit(p, m) && ps_quorum_acks(p, whole))
			ps_roster_rename_loaded(p, m, whole);
	}
}

/* The claim was granted: connects the data path and goes on from the mirror's slot. */
static void resume(struct perseas *p, struct ps_mirror *m, const Perseas__ClaimReply *claim,
                   int *fds)
{
	struct ps_error error = { 0 };
	enum perseas_mirror_state state;
	const char *why;

	/* The link is not active yet: nothing is posted to it while this goes on. */
	if (ps_mirror_attach(p, m, claim->grant, fds, &error)) {
		set_aside(p, m, PERSEAS_MIRROR_DOWN, error.text);
		return;
	}
	/* Transactions go on meanwhile: the verdict counts only while nobody can overwrite what it
	 * found in the ring. */
	pthread_mutex_lock(&p->lock);
	state = judge(p, m, claim, &why);
	pthread_mutex_unlock(&p->lock);
	if (state != PERSEAS_MIRROR_REPLAYING) {
		copy_whole(p, m, claim, state, why);
		return;
	}
	if (ps_rejoin_unpublished(p, m, &error)) {
		set_aside(p, m, PERSEAS_MIRROR_DOWN, error.text);
		return;
	}
	pthread_mutex_lock(&p->lock);
	state = judge(p, m, claim, &why);
	if (state == PERSEAS_MIRROR_REPLAYING)
		replay(p, m, claim);
	pthread_mutex_unlock(&p->lock);
	if (state != PERSEAS_MIRROR_REPLAYING)
		set_aside(p, m, state, why);
	/* Whoever waits for a commit sleeps on other links. */
	p->env->ops->wake(p->env, PS_COMMITTER);
}

static void refused(struct perseas *p, struct ps_mirror *m, const struct ps_error *error)
{
	if (error->code == PERSEAS_ENOSTORE)
		copy_whole(p, m, NULL, PERSEAS_MIRROR_LOST, error->text);
	else if (error->code == PERSEAS_EFENCED || error->code == PERSEAS_EBUSY)
		set_aside(p, m, PERSEAS_MIRROR_FENCED, error->text);
	else if (error->code == PERSEAS_EDAMAGED)
		set_aside(p, m, PERSEAS_MIRROR_LOST, error->text);
	else
		set_aside(p, m, PERSEAS_MIRROR_DOWN, error->text);
}

static bool unconnected(const struct perseas *p, const struct ps_mirror *m)
{
	if (p->salvage || !(m->votes || m->joins))
		return false;
	/* Those that must be copied whole wait for their turn. */
	return m->state == PERSEAS_MIRROR_DOWN ||
	       (!p->resync.mirror &&
	        (m->state == PERSEAS_MIRROR_STALE || m->state == PERSEAS_MIRROR_LOST));
}

static bool due(const struct perseas *p, const struct ps_mirror *m, uint64_t now)
{
	return unconnected(p, m) && m->retry_at <= now;
}

static void back_off(struct ps_mirror *m, uint64_t now)
{
	m->retry_delay = m->retry_delay ? 2 * m->retry_delay : RETRY_FIRST;
	if (m->retry_delay > RETRY_MOST)
		m->retry_delay = RETRY_MOST;
	m->retry_at = now + m->retry_delay;
}

/* Connects to every mirror whose time has come, and claims it again for this same owner. */
static void reconnect(struct perseas *p, uint64_t now)
{
	Perseas__ClaimRequest claims[PS_MIRRORS_MAX];
	Perseas__Request requests[PS_MIRRORS_MAX];
	struct ps_round round;
	bool any = false;

	memset(round.ask, 0, sizeof(round.ask));
	memset(round.errors, 0, sizeof(round.errors));
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!due(p, m, now))
			continue;
		/* The session before is over at this end too, with all the memory it had. */
		ps_mirror_disconnect(p, m);
		m->control = p->env->ops->connect(p->env, &m->address, &round.errors[i]);
		ps_claim_request(p, m, true, &claims[i], &requests[i]);
		/* This owner has R claims: one of before that still lives there is to be fenced. */
		claims[i].takeover = true;
		round.requests[i] = &requests[i];
		round.ask[i] = any = true;
		back_off(m, now);
	}
	if (!any)
		return;
	ps_round_run(p, &round, now + ANSWER_WITHIN);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		if (round.replies[i]) {
			resume(p, &p->mirrors[i], round.replies[i]->claim, round.fds[i]);
			memset(round.fds[i], 0xff, sizeof(round.fds[i]));
		} else if (round.ask[i]) {
			refused(p, &p->mirrors[i], &round.errors[i]);
		}
	}
	ps_round_free(&round);
}

/* A mirror whose daemon is gone takes no part, even where its memory is still mapped here. */
static void watch_sessions(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!m->control || !p->env->ops->ended(m->control))
			continue;
		pthread_mutex_lock(&p->lock);
		if (m->active)
			ps_mirror_break(p, m, PS_LINK_BROKEN, "the mirror ended the session");
		pthread_mutex_unlock(&p->lock);
		p->env->ops->wake(p->env, PS_COMMITTER);
		ps_mirror_hang_up(p, m);
	}
}

/* Until when the keeper has nothing to do, if nothing happens. */
static uint64_t next_due(const struct perseas *p, uint64_t now)
{
	uint64_t until = now + TICK;

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (unconnected(p, &p->mirrors[i]) && p->mirrors[i].retry_at < until)
			until = p->mirrors[i].retry_at;
	if (ps_resync_due(p) < until)
		until = ps_resync_due(p);
	return ps_change_due(p) < until ? ps_change_due(p) : until;
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
	uint64_t now = ps_now(p);
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
	ps_pulse(p, now);
	reconnect(p, now);
	ps_resync_step(p);
	record_loaded(p);
	ps_change_step(p, now);
	pthread_mutex_lock(&p->lock);
	p->admin = false;
	ps_progress(p);
	pthread_mutex_unlock(&p->lock);
	return next_due(p, ps_now(p));
}

/* What the keeper sleeps on: the control connections, and links that lag while nobody waits. */
static unsigned collect(struct perseas *p, struct pollfd *fds)
{
	unsigned count = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count && !p->admin; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		int fd = m->control ? p->env->ops->control_fd(m->control) : -1;

		if (fd >= 0)
			fds[count++] = (struct pollfd){ fd, POLLIN, 0 };
		if (m->active && (m->outstanding || m->fabric->beat) && !p->leader &&
		    m->fabric->waits(m->link, &fds[count]))
			count++;
	}
	pthread_mutex_unlock(&p->lock);
	return count;
}

void ps_keeper(void *arg)
{
	struct perseas *p = arg;
	struct pollfd fds[2 * PS_MIRRORS_MAX];
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
