/*
 * stuck_quorum.c - see stuck_quorum.h. The keeper asks in each round; it must not take a mirror
 * whose connection was only reset for one that is gone.
 */
#include "stuck_quorum.h"

#include "../core/mirror.h"
#include "../core/quorum.h"

bool ps_stuck_counts(const struct perseas *p, const struct ps_mirror *m)
{
	/* A member of the next roster alone has no vote that an owner of before could use. */
	if (!ps_roster_member(p->roster, m->image_id))
		return true;
	return ps_quorum_anew(p, ps_mirrors_whole(p) & ~ps_bit(p, m), m);
}

/* Is it stale, and was it not this owner's in this epoch? */
static bool waits_for_others(const struct perseas *p, const struct ps_mirror *m)
{
	return m->state == PERSEAS_MIRROR_STALE && m->own.live_epoch != p->epoch &&
	       !ps_stuck_counts(p, m);
}

static bool is_to_be_tried(const struct ps_mirror *m)
{
	return ps_session_under_way(m) || (m->state == PERSEAS_MIRROR_DOWN && !m->retry.delay);
}

bool ps_stuck(struct perseas *p)
{
	bool waits = false, tried = true;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (!m->votes || m->active)
			continue;
		waits |= waits_for_others(p, m);
		tried &= !is_to_be_tried(m);
	}
	if (p->upkeep.resync.mirror || ps_quorum_acks(p, ps_mirrors_whole(p)))
		waits = false;
	pthread_mutex_unlock(&p->lock);
	return waits && tried;
}
