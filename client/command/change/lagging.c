/*
 * lagging.c - see lagging.h. An open ends as soon as W mirrors hold the store. Without this wait, a
 * command that closes the store again would leave the other mirrors behind.
 */
#include "lagging.h"

#include "../../../proto/image/layout.h"
#include "../ui/ui.h"

enum {
	POLL_MS = 20,
	PATIENCE_MS = 10000, /* as long as a daemon keeps a turn for a copy without progress */
};

/* The furthest that a mirror has come. It only moves on, so that a copy which breaks again and
 * again is not waited for forever. */
struct furthest {
	uint64_t resync_done;
	bool has_lagged, is_up_to_date;
};

/* Returns true if the library is still to bring the mirror up to date. That includes a mirror that
 * went down while it lagged, since it may come back. */
static bool is_lagging(const struct furthest *furthest, enum perseas_mirror_state state)
{
	if (state == PERSEAS_MIRROR_DOWN)
		return furthest->has_lagged && !furthest->is_up_to_date;
	return state == PERSEAS_MIRROR_REPLAYING || state == PERSEAS_MIRROR_STALE ||
	       state == PERSEAS_MIRROR_LOST || state == PERSEAS_MIRROR_RESYNCING;
}

/* Notes where the mirror is. Returns true if it has come further, or waits in its daemon's line:
 * the daemon sees to it that the line moves on. */
static bool note_progress(struct furthest *furthest, const struct perseas_mirror_stat *mirror)
{
	const struct furthest before = *furthest;

	if (mirror->resync_done > before.resync_done)
		furthest->resync_done = mirror->resync_done;
	furthest->has_lagged |= is_lagging(furthest, mirror->state);
	furthest->is_up_to_date |= mirror->state == PERSEAS_MIRROR_LIVE;
	return mirror->copy_place || furthest->resync_done != before.resync_done ||
	       furthest->is_up_to_date != before.is_up_to_date;
}

/* Looks at all mirrors. Returns true if any lags. Sets *has_moved if any has come further. */
static bool look_at_mirrors(perseas_t *p, struct furthest furthest[PS_MIRRORS_MAX], bool *has_moved)
{
	struct perseas_mirror_stat mirror;
	bool any = false;

	*has_moved = false;
	for (unsigned i = 0; !perseas_mirror_stat(p, i, &mirror); i++) {
		*has_moved |= note_progress(&furthest[i], &mirror);
		any |= is_lagging(&furthest[i], mirror.state);
		if (mirror.resync_total)
			ps_bar_show(mirror.address, mirror.resync_done, mirror.resync_total);
	}
	return any;
}

void ps_lagging_await(perseas_t *p)
{
	struct furthest furthest[PS_MIRRORS_MAX] = { 0 };
	unsigned idle_ms = 0;
	bool has_moved;

	while (look_at_mirrors(p, furthest, &has_moved) && !ps_stop_requested()) {
		idle_ms = has_moved ? 0 : idle_ms + POLL_MS;
		if (idle_ms >= PATIENCE_MS)
			break;
		ps_stop_pause(POLL_MS);
	}
	ps_bar_clear();
}
