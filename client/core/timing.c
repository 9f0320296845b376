/*
 * timing.c - chooses the commits that are timed, and records their times. commit.c calls it. It
 * must cost next to nothing for a commit that is not timed.
 */
#include "timing.h"

#include <string.h>

/* Returns how many transactions begin untimed before the next one: 0 to 2 * (EVERY - 1), with equal
 * probability. Marsaglia's xorshift is good enough, and repeatable where owners' ids are. */
static uint32_t draw_untimed_count(struct perseas *p)
{
	if (!p->commit.random_state) {
		memcpy(&p->commit.random_state, p->owner, sizeof(p->commit.random_state));
		p->commit.random_state |= 1;
	}
	p->commit.random_state ^= p->commit.random_state << 13;
	p->commit.random_state ^= p->commit.random_state >> 7;
	p->commit.random_state ^= p->commit.random_state << 17;
	return (uint32_t)((p->commit.random_state >> 32) % (2 * PS_TIMING_EVERY - 1));
}

void ps_timing_adapt(struct perseas *p)
{
	ps_assert_locked(p);
	if (p->commit.uses_ring)
		p->commit.untimed_left = 0;
	else if (!p->commit.untimed_left)
		p->commit.untimed_left = draw_untimed_count(p);
}

enum ps_timed ps_timing_draw_next(struct perseas *p)
{
	/* The count stays 0 meanwhile, so this function is called again for the next
	 * transaction. */
	if (p->commit.uses_ring)
		return PS_TIMED_ALWAYS;
	p->commit.untimed_left = draw_untimed_count(p);
	return PS_TIMED_DRAWN;
}

void ps_timing_record(struct perseas *p, ps_start_time_t start, int rc)
{
	const uint64_t now = ps_now(p);

	p->commit.stat.doubts += rc == PERSEAS_EINDOUBT;
	if (rc && rc != PERSEAS_EINDOUBT)
		return;
	p->commit.stat.timed++;
	ps_latency_add(&p->commit.latency, now - (start & ~(ps_start_time_t)1),
	               start & 1 ? PS_TIMING_EVERY : 1);
}
