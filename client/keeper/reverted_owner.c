/*
 * reverted_owner.c - recognizes a reverted owner by what mirrors hold (reverted_owner.h). It must
 * never change an image.
 */
#include "reverted_owner.h"

#include "../core/mirror.h"
#include "session.h"
#include "../../proto/base/text.h"

/* Returns the record of a transaction that this owner sent, or NULL if the ring no longer holds
 * it. */
static const struct ps_record *find_sent_record(const struct perseas *p, uint64_t seq)
{
	const struct ps_ring_entry *entry = ps_ring_find_entry(&p->commit.ring, seq);

	return entry ? (const void *)entry->writes[0].src : NULL;
}

/* Returns true if the slot's record begins at another place than this owner's. */
static bool is_at_other_log_position(const struct perseas *p, const struct ps_image_position *at)
{
	const struct ps_record *next = find_sent_record(p, at->seq + 1);

	if (at->seq == p->commit.seq)
		return at->next_position != p->commit.next_position ||
		       at->last_position != p->commit.last_position;
	return next && next->previous != at->last_position;
}

static bool differs_from_sent_record(const struct perseas *p, const struct ps_image_position *at,
                                     uint32_t record_crc)
{
	const struct ps_record *sent = find_sent_record(p, at->seq);

	return record_crc && sent && sent->epoch == at->epoch && sent->crc != record_crc;
}

bool ps_slot_shows_reverted_owner(struct perseas *p, const struct ps_image_position *at,
                                  uint32_t record_crc)
{
	ps_assert_locked(p);
	return at->seq > p->commit.seq || is_at_other_log_position(p, at) ||
	       differs_from_sent_record(p, at, record_crc);
}

static bool is_unknown_roster(const struct perseas *p, const Perseas__Roster *roster)
{
	return roster && roster->epoch == p->epoch && ps_roster_newer(roster, p->roster) &&
	       ps_roster_newer(roster, p->next_roster);
}

bool ps_roster_shows_reverted_owner(struct perseas *p, const Perseas__Header *header)
{
	ps_assert_locked(p);
	return is_unknown_roster(p, header->roster) || is_unknown_roster(p, header->next_roster);
}

void ps_reverted_note_evidence(struct perseas *p, const struct ps_mirror *m,
                               const struct ps_image_position *at)
{
	struct ps_renewal *r = &p->upkeep.renewal;

	ps_assert_locked(p);
	ps_text_format(r->reverted_text, sizeof(r->reverted_text),
	               "this process went back in time (its machine was reverted, or runs twice): "
	               "close this handle. Mirror %s holds its transaction %llu:%llu, and it knows "
	               "only %llu:%llu",
	               m->address.text, (unsigned long long)at->epoch, (unsigned long long)at->seq,
	               (unsigned long long)p->epoch, (unsigned long long)p->commit.seq);
}

bool ps_claim_shows_reverted_owner(struct perseas *p, const struct ps_mirror *m,
                                   struct ps_image_position *at)
{
	const Perseas__ClaimReply *claim = m->session.claim_reply->claim;
	const Perseas__Slot *slot = claim->slot;
	bool past;

	/* Any client that may create stores can make an image without the store's key. */
	if (!ps_image_is_of_store(claim->header, p->store_id, p->roster))
		return false;
	if (slot)
		*at = (struct ps_image_position){ slot->epoch, slot->seq, slot->next, slot->last,
			                          (int)slot->index };
	pthread_mutex_lock(&p->lock);
	/* Only this owner had the promise of this epoch, so it wrote that slot. */
	past = (at->epoch == p->epoch && ps_slot_shows_reverted_owner(p, at, claim->record)) ||
	       ps_roster_shows_reverted_owner(p, claim->header);
	pthread_mutex_unlock(&p->lock);
	return past;
}

bool ps_status_shows_reverted_owner(struct perseas *p, const struct ps_mirror *m)
{
	const struct ps_image_position *at = &m->probe.position;
	bool past;

	if (at->epoch != p->opened_epoch && !ps_mirror_may_have_own_slot(m, at->epoch))
		return false;
	pthread_mutex_lock(&p->lock);
	past = ps_slot_shows_reverted_owner(p, at, 0);
	if (past && !p->is_superseded)
		ps_reverted_note_evidence(p, m, at);
	pthread_mutex_unlock(&p->lock);
	return past;
}

bool ps_image_was_reverted(const struct perseas *p, const struct ps_mirror *m,
                           const Perseas__ClaimReply *claim)
{
	return ps_mirror_was_live(p, m, claim->header) &&
	       claim->header->state == PERSEAS__STATE__STATE_CONSISTENT && claim->slot &&
	       claim->slot->epoch != p->epoch;
}

void ps_reverted_end_sessions(struct perseas *p)
{
	static const char why[] = "this owner went back in time";

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (m->is_active)
			ps_mirror_break_link(p, m, PS_LINK_BROKEN, why);
		if (m->state != PERSEAS_MIRROR_FENCED && m->state != PERSEAS_MIRROR_REMOVED)
			ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_FENCED, why);
	}
	pthread_mutex_unlock(&p->lock);
	p->env->ops->wake(p->env, PS_COMMITTER);
	for (unsigned i = 0; i < p->mirror_count; i++)
		ps_mirror_disconnect(p, &p->mirrors[i]);
}
