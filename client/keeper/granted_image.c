/*
 * granted_image.c - judges the image with which a mirror granted its claim (granted_image.h). It
 * must never change the image or the mirror.
 */
#include "granted_image.h"

#include "../core/unsent_granules.h"
#include "../core/mirror.h"
#include "../core/segment.h"
#include "reverted_owner.h"

#include <assert.h>

/* Says why the ring cannot bring the image up to date, although it has transactions. */
static const char *reason_to_copy(const struct ps_mirror *m, const Perseas__Header *header,
                                  const Perseas__Slot *slot)
{
	if (header->state != PERSEAS__STATE__STATE_CONSISTENT)
		return "a copy to it did not end; it waits to be brought up to date";
	if (slot && ps_mirror_may_have_own_slot(m, slot->epoch))
		return "the owner's claim was renewed while it was away; it waits to be brought up "
		       "to date";
	return "it was not adopted by this owner; it waits to be brought up to date";
}

enum perseas_mirror_state ps_granted_image_judge(struct perseas *p, const struct ps_mirror *m,
                                                 const Perseas__ClaimReply *claim, const char **why)
{
	const Perseas__Header *header = claim->header;
	const Perseas__Slot *slot = claim->slot;

	ps_assert_locked(p);
	*why = "";
	if (!ps_image_is_of_store(header, p->store_id, p->roster)) {
		*why = "it has an image that was made without the store's key, and counts for "
		       "nothing";
		return PERSEAS_MIRROR_LOST;
	}
	if (!ps_id_equal(header->image_id, m->image_id) &&
	    (!header->parent_id.len || !ps_id_equal(header->parent_id, m->image_id))) {
		*why = "it has another image now: the one that it had is lost";
		return PERSEAS_MIRROR_LOST;
	}
	if (ps_image_was_reverted(p, m, claim)) {
		*why = "an older image was put back on it: the one that this owner adopted is gone";
		return PERSEAS_MIRROR_LOST;
	}
	if (!slot || header->state != PERSEAS__STATE__STATE_CONSISTENT || slot->epoch != p->epoch) {
		*why = reason_to_copy(m, header, slot);
		return PERSEAS_MIRROR_STALE;
	}
	assert(slot->seq <= p->commit.seq); /* else ps_claim_shows_reverted_owner() was true */
	if (slot->seq < m->acked_seq) {
		*why = "its image lacks transactions that it had acknowledged";
		return PERSEAS_MIRROR_LOST;
	}
	if (ps_unsent_has_wrong_granules(m)) {
		*why = "it differed from the others; it waits to be repaired";
		return PERSEAS_MIRROR_STALE;
	}
	/* The ring replays no publish or destroy: an image that missed one is STALE. */
	if (!ps_ring_can_replay(&p->commit.ring, slot->seq, p->commit.seq)) {
		*why = "it missed more than the ring holds; it waits to be brought up to date";
		return PERSEAS_MIRROR_STALE;
	}
	if (!ps_segments_match_header(p, header)) {
		*why = "its segments are not those of the store; it waits to be copied whole";
		return PERSEAS_MIRROR_STALE;
	}
	return PERSEAS_MIRROR_REPLAYING;
}

const char *ps_granted_image_reason_to_keep(const struct perseas *p, const struct ps_mirror *m)
{
	const Perseas__Header *header = m->session.claim_reply->claim->header;

	if (!ps_image_is_of_store(header, p->store_id, p->roster) &&
	    !ps_image_is_of_level_0(header, p->store_id))
		return "it has another store of this name and id, with another key: perseas drop, "
		       "of this mirror alone, deletes that store";
	if (ps_image_is_forked(header, p->roster, p->next_roster))
		return PS_FORK_NOTE;
	if (m->is_joining && ps_roster_newer(header->roster, p->roster))
		return "it has the store by a newer roster, and is not copied over: open the store "
		       "by its list, or drop that image first";
	return NULL;
}
