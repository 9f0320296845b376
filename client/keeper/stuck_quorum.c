/*
 * stuck_quorum.c - see stuck_quorum.h. The keeper asks in each round. It must not take a mirror
 * whose connection was only reset for a lost one.
 */
#include "stuck_quorum.h"

#include "../core/mirror.h"
#include "../core/quorum.h"
#include "session.h"

bool ps_image_would_count_after_copy(struct perseas *p, const struct ps_mirror *m)
{
	ps_assert_locked(p);
	/* No earlier owner can use the vote of a mirror that only the next roster lists. */
	if (!ps_roster_member(p->roster, m->image_id))
		return true;
	return ps_quorum_can_remake_mirror(p, ps_mirrors_with_whole_image(p) & ~ps_mirror_bit(p, m),
	                                   m);
}

/* Returns true if the mirror is stale, was not live under this owner in this epoch, and would not
 * count after a copy. */
static bool image_would_not_count_after_copy(struct perseas *p, const struct ps_mirror *m)
{
	return m->state == PERSEAS_MIRROR_STALE && m->own_image.live_epoch != p->epoch &&
	       !ps_image_would_count_after_copy(p, m);
}

/* Returns true if a session with the mirror is in progress, or has not been tried since the last
 * one broke. A repeated try counts as in progress only once the mirror has answered: of two mirrors
 * that hang, one is being tried at any time. */
static bool is_session_untried(const struct ps_mirror *m)
{
	const bool under_way = ps_session_under_way(m);

	if (m->state != PERSEAS_MIRROR_DOWN)
		return under_way;
	if (!under_way)
		return !m->retry.delay_ns;
	return m->session.state != PS_SESSION_ASKING || m->retry.delay_ns <= PS_RETRY_MIN;
}

bool ps_quorum_is_stuck(struct perseas *p)
{
	bool waits = false, tried = true;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (!m->has_vote || m->is_active)
			continue;
		waits |= image_would_not_count_after_copy(p, m);
		tried &= !is_session_untried(m);
	}
	if (p->upkeep.resync.target || ps_quorum_is_w(p, ps_mirrors_with_whole_image(p)))
		waits = false;
	pthread_mutex_unlock(&p->lock);
	return waits && tried;
}
