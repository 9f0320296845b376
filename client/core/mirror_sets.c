/*
 * mirror_sets.c - sets of mirrors by what they hold: which have a transaction, and which are whole.
 * The functions change nothing, and use no link.
 */
#include "mirror.h"
#include "quorum.h"

uint32_t ps_mirrors_holding(const struct perseas *p, uint64_t seq)
{
	uint32_t holding = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->acked_seq >= seq && !ps_mirror_holds_nothing(m))
			holding |= (uint32_t)1 << i;
	}
	return holding;
}

bool ps_w_mirrors_hold(const struct perseas *p, uint64_t seq)
{
	return ps_quorum_is_w(p, ps_mirrors_holding(p, seq));
}

uint32_t ps_mirrors_with_whole_image(const struct perseas *p)
{
	uint32_t whole = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->is_active && m->state != PERSEAS_MIRROR_RESYNCING)
			whole |= (uint32_t)1 << i;
	}
	return whole;
}

uint32_t ps_mirrors_that_confirmed_call(const struct perseas *p, uint64_t call)
{
	uint32_t confirmed = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		confirmed |= (uint32_t)(p->mirrors[i].confirm.confirmed_call >= call) << i;
	return confirmed & ps_mirrors_with_whole_image(p);
}

uint32_t ps_mirrors_live(const struct perseas *p)
{
	uint32_t live = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].state == PERSEAS_MIRROR_LIVE)
			live |= (uint32_t)1 << i;
	return live;
}
