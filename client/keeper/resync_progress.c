/*
 * resync_progress.c - see resync_progress.h. resync.c reports to it, and stat.c and heartbeat.c
 * read it. It decides nothing.
 */
#include "resync_progress.h"

#include "../core/mirror.h"

/* The present rate is that of the last one or two of these periods. */
#define RATE_PERIOD ps_ms(5000)

void ps_resync_progress_begin(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;

	ps_assert_locked(p);
	r->recent_mark = r->previous_mark = (struct ps_resync_mark){ ps_now(p), 0 };
	if (r->target->is_joining)
		p->upkeep.change.copy.whole_reason = r->whole_reason;
}

void ps_resync_progress_add(struct perseas *p, uint64_t bytes)
{
	struct ps_resync *r = &p->upkeep.resync;
	const uint64_t now = ps_now(p);

	ps_assert_locked(p);
	if (now - r->recent_mark.noted_at >= RATE_PERIOD) {
		r->previous_mark = r->recent_mark;
		r->recent_mark = (struct ps_resync_mark){ now, r->sent_bytes };
	}
	r->sent_bytes += bytes;
	p->commit.stat.resync_bytes += bytes;
	if (r->target->is_joining)
		p->upkeep.change.copy.sent_bytes += bytes;
}

/* Returns bytes per second since the mark, or 0 if none were sent or no time has passed. */
static uint64_t rate_since(const struct ps_resync_mark *mark, uint64_t now, uint64_t done)
{
	const uint64_t took_ms = (now - mark->noted_at) / ps_ms(1);

	return took_ms ? (done - mark->sent_bytes) * 1000 / took_ms : 0;
}

/* Returns the time for `bytes` at that rate, rounded up. */
static uint64_t copy_duration_ms(uint64_t bytes, uint64_t rate)
{
	return bytes / rate * 1000 + (bytes % rate * 1000 + rate - 1) / rate;
}

void ps_resync_progress(struct perseas *p, const struct ps_mirror *m,
                        struct ps_resync_progress *progress)
{
	const struct ps_resync *r = &p->upkeep.resync;

	ps_assert_locked(p);
	*progress = (struct ps_resync_progress){ .whole_reason_name = "" };
	if (r->target != m || m->state != PERSEAS_MIRROR_RESYNCING)
		return;
	progress->sent_bytes = r->sent_bytes;
	progress->total_bytes = r->total_bytes;
	progress->whole_reason_name = r->whole_reason ? r->whole_reason->name : "";
	progress->bytes_per_s = rate_since(&r->previous_mark, ps_now(p), r->sent_bytes);
	if (progress->bytes_per_s && r->is_comparison_done && r->total_bytes > r->sent_bytes)
		progress->left_ms = copy_duration_ms(r->total_bytes - r->sent_bytes,
		                                     progress->bytes_per_s);
}
