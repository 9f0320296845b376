/*
 * mirror.c - moves mirrors between states, posts to them, and collects what they completed.
 */
#include "mirror.h"

#include "broken_copy.h"
#include "demand.h"
#include "detour.h"
#include "unsent_granules.h"
#include "event.h"
#include "wait_line.h"
#include "nowait.h"
#include "pace.h"
#include "quorum.h"
#include "timing.h"
#include "../../proto/base/text.h"
#include "cancel.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Maximum number of chains in flight to a mirror: bounds what a fabric has to queue. */
enum { WINDOW = 128 };

#define FROM(state) (1u << (state))

/* In these states a mirror has no data path: the keeper connects to it again, or judges it
 * again. */
#define UNCONNECTED \
	(FROM(PERSEAS_MIRROR_DOWN) | FROM(PERSEAS_MIRROR_STALE) | FROM(PERSEAS_MIRROR_LOST))

#define ANY ((1u << (PERSEAS_MIRROR_REMOVED + 1)) - 1)

/* The states from which each state may be entered. */
static const unsigned entered_from[] = {
	[PERSEAS_MIRROR_DOWN] = UNCONNECTED | FROM(PERSEAS_MIRROR_LIVE) |
	                        FROM(PERSEAS_MIRROR_REPLAYING) | FROM(PERSEAS_MIRROR_RESYNCING) |
	                        FROM(PERSEAS_MIRROR_FENCED),
	[PERSEAS_MIRROR_REPLAYING] = UNCONNECTED,
	[PERSEAS_MIRROR_LIVE] = FROM(PERSEAS_MIRROR_DOWN) | FROM(PERSEAS_MIRROR_REPLAYING) |
	                        FROM(PERSEAS_MIRROR_RESYNCING),
	[PERSEAS_MIRROR_STALE] = UNCONNECTED,
	[PERSEAS_MIRROR_FENCED] = UNCONNECTED,
	[PERSEAS_MIRROR_LOST] = UNCONNECTED,
	[PERSEAS_MIRROR_RESYNCING] = UNCONNECTED,
	[PERSEAS_MIRROR_REMOVED] = ANY,
};

struct ps_mirror *ps_mirror_add(struct perseas *p, const struct ps_address *address)
{
	struct ps_mirror *m = NULL;

	ps_assert_locked(p);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].state == PERSEAS_MIRROR_REMOVED &&
		    (!m || !strcmp(p->mirrors[i].address.text, address->text)))
			m = &p->mirrors[i];
	if (!m && p->mirror_count == PS_MIRRORS_MAX)
		return NULL;
	if (!m)
		m = &p->mirrors[p->mirror_count++];
	else if (m->probe.header)
		perseas__header__free_unpacked(m->probe.header, NULL);
	assert(!m->control && !m->link && !m->is_active);
	ps_unsent_free(m);
	memset(m, 0, sizeof(*m));
	m->address = *address;
	return m;
}

/* Makes the mirror's copy count no more, after noting which transactions W held with it. */
static void lose_copy(struct perseas *p, struct ps_mirror *m)
{
	ps_update_durable_seq(p);
	m->is_copy_lost = true;
}

void ps_mirror_move_to_state(struct perseas *p, struct ps_mirror *m,
                             enum perseas_mirror_state state, const char *why)
{
	ps_assert_locked(p);
	assert(entered_from[state] & FROM(m->state));
	ps_event_note_move(p, m, state, why);
	/* A half-overwritten image holds no transaction. */
	if (m->state == PERSEAS_MIRROR_RESYNCING && state != PERSEAS_MIRROR_LIVE)
		m->acked_seq = 0;
	if (state != PERSEAS_MIRROR_STALE && state != PERSEAS_MIRROR_LOST)
		m->copy_place = 0;
	m->state = state;
	ps_pace_clear_blocking(p, m);
	p->commit.fenced_mirrors &= ~ps_mirror_bit(p, m);
	if (state == PERSEAS_MIRROR_FENCED)
		p->commit.fenced_mirrors |= ps_mirror_bit(p, m);
	m->is_active = state == PERSEAS_MIRROR_LIVE || state == PERSEAS_MIRROR_REPLAYING ||
	               state == PERSEAS_MIRROR_RESYNCING;
	assert(!m->is_active || m->link);
	if (m->is_active)
		ps_mirror_note_own_slot(m, p->epoch);
	if (state == PERSEAS_MIRROR_LOST)
		lose_copy(p, m);
	if (state == PERSEAS_MIRROR_LIVE) {
		memset(&m->broken_copies, 0, sizeof(m->broken_copies));
		m->own_image.live_epoch = p->epoch;
		memcpy(m->own_image.live_id, m->image_id, PS_ID_SIZE);
	}
	ps_text_format(m->trouble_text, sizeof(m->trouble_text), "%s",
	               state == PERSEAS_MIRROR_LIVE ? m->detour_reason : why);
	ps_mirrors_decide_staging(p);
	ps_wake_waiters(p);
}

bool ps_mirror_was_live(const struct perseas *p, const struct ps_mirror *m,
                        const Perseas__Header *header)
{
	const uint8_t *id = m->own_image.live_id;

	return m->own_image.live_epoch == p->epoch &&
	       (ps_id_equal(header->image_id, id) || ps_id_equal(header->parent_id, id));
}

void ps_mirror_note_loaded(struct ps_mirror *m, const Perseas__Header *header)
{
	const bool unrecorded = m->is_from_spill &&
	                        ps_id_equal(header->image_id, m->image_id_after_spill_load);

	m->is_from_spill = unrecorded || !ps_id_equal(header->image_id, m->image_id);
	if (m->is_from_spill)
		memcpy(m->image_id_after_spill_load, header->image_id.data, PS_ID_SIZE);
}

void ps_link_end(struct perseas *p, struct ps_mirror *m)
{
	PS_UNCANCELLED;

	ps_demand_drop_link(p, m);
	if (m->link)
		m->fabric->detach(m->link);
	m->link = NULL;
	m->chains_in_flight = m->completions_until_chunk = 0;
	m->has_link_completed_chain = false;
	if (!m->is_active)
		return;
	ps_assert_locked(p);
	m->is_active = false;
	/* Wakes the committing thread and the collector, which may sleep on this link, and the
	 * keeper, which ends the session and a copy. */
	if (p->commit.wait_line.has_leader)
		p->env->ops->wake(p->env, PS_COMMITTER);
	if (p->commit.unwaited.collector_watches_links)
		p->env->ops->wake(p->env, PS_COLLECTOR);
	if (p->has_keeper)
		p->env->ops->wake(p->env, PS_KEEPER);
}

void ps_mirror_break_link(struct perseas *p, struct ps_mirror *m, int rc, const char *why)
{
	char text[sizeof(m->trouble_text)];

	ps_link_end(p, m);
	m->retry.delay_ns = m->retry.next_try_at = 0;
	if (m->state == PERSEAS_MIRROR_RESYNCING)
		why = ps_broken_copy_note_and_explain(p, m, why, text, sizeof(text));
	ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_DOWN, why);
	if (rc == PS_LINK_FENCED)
		ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_FENCED,
		                        "another owner has claimed the store on this mirror");
}

void ps_mirror_break_silent_link(struct perseas *p, struct ps_mirror *m)
{
	char why[64];

	ps_text_format(why, sizeof(why), "it has said nothing for %u ms",
	               p->options.mirror_timeout_ms);
	ps_mirror_break_link(p, m, PS_LINK_BROKEN, why);
}

void ps_mirror_note_position(struct ps_mirror *m, unsigned slot, uint64_t seq)
{
	/* Chains in flight would count from the position that they were posted at. */
	assert(slot <= 1 && !m->chains_in_flight);
	m->valid_slot = slot;
	m->posted_seq = m->acked_seq = seq;
	m->is_copy_lost = false;
}

void ps_mirror_note_lost_copy(struct perseas *p, struct ps_mirror *m, int code)
{
	if (code != PERSEAS_ENOSTORE && code != PERSEAS_EDAMAGED)
		return;
	pthread_mutex_lock(&p->lock);
	lose_copy(p, m);
	pthread_mutex_unlock(&p->lock);
}

const char *ps_link_trouble_text(int rc)
{
	if (rc == PS_LINK_LOST)
		return PS_NOTHING_ARRIVED;
	return rc == PS_LINK_FENCED ? "fenced" : "the data connection broke";
}

int ps_mirror_handle_lost_link(struct perseas *p, struct ps_mirror *m, int rc)
{
	ps_detour_note_break(p, m, rc);
	m->is_after_lost_link = rc == PS_LINK_LOST;
	ps_mirror_break_link(p, m, rc, ps_link_trouble_text(rc));
	return rc;
}

void ps_mirror_break_stalled_link(struct perseas *p, struct ps_mirror *m, const char *why)
{
	char text[sizeof(m->trouble_text)];

	if (!m->has_link_completed_chain)
		ps_detour_note_break(p, m, PS_LINK_BROKEN);
	if (m->state == PERSEAS_MIRROR_RESYNCING)
		why = ps_broken_copy_blame_link(p, m, why, text, sizeof(text));
	ps_mirror_break_link(p, m, PS_LINK_BROKEN, why);
}

void ps_mirrors_decide_staging(struct perseas *p)
{
	bool staged = false;

	ps_assert_locked(p);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->state == PERSEAS_MIRROR_DOWN || m->state == PERSEAS_MIRROR_REPLAYING ||
		    m->state == PERSEAS_MIRROR_FENCED)
			staged |= m->has_vote;
		else if (m->is_active)
			staged |= m->fabric->staged;
	}
	/* The ring must hold a contiguous history: if it lacks the last transaction, it starts
	 * empty at the next one. The transaction being sent can be the last one that it has. */
	if (staged && !p->commit.uses_ring && p->commit.ring.last_seq != p->commit.seq)
		ps_ring_drop_all(&p->commit.ring, p->commit.seq + 1);
	p->commit.uses_ring = staged;
	ps_timing_adapt(p);
}

/* Wakes the threads that sleep on links: they watch only links that had chains in flight when they
 * went to sleep. */
static void wake_link_sleepers(struct perseas *p, const struct ps_mirror *m)
{
	if (m->chains_in_flight)
		return;
	if (p->commit.wait_line.has_leader)
		p->env->ops->wake(p->env, PS_COMMITTER);
	if (p->commit.unwaited.collector_watches_links)
		p->env->ops->wake(p->env, PS_COLLECTOR);
}

static void post_entry(struct perseas *p, struct ps_mirror *m, const struct ps_ring_entry *entry)
{
	struct ps_chain chain = { entry->writes,
		                  entry->write_count,
		                  1,
		                  { &entry->slot, ps_slot_offset(!m->valid_slot), PS_REGION_LOG,
		                    sizeof(entry->slot) } };

	wake_link_sleepers(p, m);
	if (ps_mirror_post(p, m, &chain))
		return;
	m->posted_seq = entry->seq;
	p->commit.stat.bytes_sent += entry->fabric_bytes_of_entry;
}

void ps_mirror_post_from_ring(struct perseas *p, struct ps_mirror *m)
{
	const bool several = m->is_active && m->posted_seq + 1 < p->commit.seq && m->fabric->cork;

	if (several)
		m->fabric->cork(m->link, true);
	while (m->is_active && m->posted_seq < p->commit.seq && m->chains_in_flight < WINDOW) {
		const struct ps_ring_entry *entry = ps_ring_find_entry(&p->commit.ring,
		                                                       m->posted_seq + 1);

		/* The ring has the entry: a commit makes room only when no connected mirror needs
		 * what its entry overwrites. */
		assert(entry);
		if (m->state == PERSEAS_MIRROR_REPLAYING)
			p->commit.stat.replayed++;
		post_entry(p, m, entry);
	}
	if (several && m->is_active)
		m->fabric->cork(m->link, false);
	if (m->state == PERSEAS_MIRROR_REPLAYING && m->posted_seq == p->commit.seq)
		ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_LIVE, "");
}

/* Returns true if new transactions may stay in the ring for now: woken threads come here next, and
 * the last of them posts everything committed meanwhile (wait_line.h). The mirror's pending answer
 * triggers sending at the latest, no matter when these threads run. */
static bool may_new_entries_stay_in_ring(const struct perseas *p, const struct ps_mirror *m)
{
	return p->commit.wait_line.woken_count && m->chains_in_flight && m->fabric->cork;
}

void ps_mirrors_post_from_ring(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (m->is_active && m->posted_seq < p->commit.seq &&
		    !may_new_entries_stay_in_ring(p, m))
			ps_mirror_post_from_ring(p, m);
	}
}

/* Accounts for `done` chains that the mirror completed. Chains complete in order, and all but the
 * chunk of a resync are transactions. */
static void take_completions(struct perseas *p, struct ps_mirror *m, unsigned done)
{
	const bool copying = m->completions_until_chunk != 0;
	uint64_t acked;

	assert(done <= m->chains_in_flight);
	m->chains_in_flight -= done;
	m->has_link_completed_chain = true;
	m->is_after_lost_link = false;
	m->completions_until_chunk -= m->completions_until_chunk < done ? m->completions_until_chunk
	                                                                : done;
	/* Wakes the keeper only when the chunk or the whole copy is complete: commits would pay for
	 * a wake after every transaction. */
	if (copying ? !m->completions_until_chunk
	            : p->upkeep.resync.target == m && p->upkeep.resync.is_all_posted)
		p->env->ops->wake(p->env, PS_KEEPER);
	acked = m->posted_seq - (m->chains_in_flight - (m->completions_until_chunk != 0));
	/* I3, I4: within a session, a mirror never holds less than it acknowledged. */
	assert(acked >= m->acked_seq);
	m->acked_seq = acked;
}

int ps_mirror_post_bulk(struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain)
{
	int rc;

	ps_assert_locked(p);
	wake_link_sleepers(p, m);
	rc = ps_mirror_post(p, m, chain);
	if (!rc)
		m->completions_until_chunk = m->chains_in_flight;
	return rc;
}

static void poll_mirror(struct perseas *p, struct ps_mirror *m)
{
	int done = m->fabric->poll(m->link);

	if (done < 0) {
		ps_mirror_handle_lost_link(p, m, done);
		return;
	}
	if (!done) {
		if (m->fabric->poll_consumes_event)
			ps_wait_line_wake_leader(p);
		return;
	}
	take_completions(p, m, (unsigned)done);
	if (p->commit.unwaited.updates_durable_seq_at_completions || p->commit.in_doubt_seq)
		ps_end_doubt_if_durable(p);
	if (p->commit.wait_line.waiting_count)
		ps_wait_line_wake_durable(p);
}

void ps_mirrors_poll(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		/* A heartbeat is answered through poll(), so idle links are polled, too. They are
		 * not while the gate is up: the thread that raised it uses the links without the
		 * lock. */
		if (m->is_active &&
		    (m->chains_in_flight || (m->fabric->beat && !p->is_gate_raised)))
			poll_mirror(p, m);
		if (m->is_active && m->posted_seq < p->commit.seq &&
		    !may_new_entries_stay_in_ring(p, m))
			ps_mirror_post_from_ring(p, m);
	}
}

void ps_mirrors_send_heartbeats(struct perseas *p)
{
	ps_assert_locked(p);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->is_active && !m->chains_in_flight && m->fabric->beat)
			m->fabric->beat(m->link);
	}
}
