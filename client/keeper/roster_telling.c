/*
 * roster_telling.c - tells rosters in rounds, and collects the mirrors that recorded those of the
 * present round. change.c and keeper.c call this. An answer to an earlier round must count for
 * nothing.
 */
#include "roster_telling.h"

#include "pending_answers.h"
#include "../core/quorum.h"
#include "roster.h"

#include <string.h>

/* mirrors that did not record a roster are told again after this time */
#define TELL_AGAIN ps_ms(500)

/* Begins another round if the rosters have changed since the last one. */
static void begin_round_if_rosters_changed(struct perseas *p)
{
	const Perseas__Roster *next = p->next_roster;
	const uint64_t what[] = { p->roster->epoch, p->roster->version, next ? next->epoch : 0,
		                  next ? next->version : 0, p->is_change_decided };
	struct ps_telling *t = &p->upkeep.telling;

	static_assert(sizeof(what) == sizeof(t->roster_versions), "all that is compared");
	if (t->round_number && !memcmp(t->roster_versions, what, sizeof(what)))
		return;
	memcpy(t->roster_versions, what, sizeof(what));
	t->round_number++;
	t->recorded_mirrors = 0;
	t->tell_again_at = 0;
}

/* Notes that the mirror recorded the rosters, unless it was told them in an earlier round. */
static void take_roster_answer(struct perseas *p, struct ps_mirror *m,
                               const struct ps_pending_answer *pending, Perseas__Reply **reply,
                               const struct ps_error *why)
{
	(void)why;
	if (*reply && (*reply)->status == PERSEAS__STATUS__STATUS_OK &&
	    pending->ticket == p->upkeep.telling.round_number)
		p->upkeep.telling.recorded_mirrors |= ps_mirror_bit(p, m);
}

uint32_t ps_roster_tell_mirrors(struct perseas *p, uint32_t set)
{
	struct ps_telling *t = &p->upkeep.telling;
	const uint64_t now = ps_now(p);
	Perseas__RosterRequest ask;
	Perseas__Request request;
	bool again;

	ps_assert_admin(p);
	begin_round_if_rosters_changed(p);
	again = now >= t->tell_again_at;
	if (again)
		t->tell_again_at = now + TELL_AGAIN;
	ps_roster_make_request(p, &ask, &request);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		/* A mirror that was not told in this round is told at once, one that refused after
		 * a pause. */
		if (set & ~t->recorded_mirrors & ps_mirror_bit(p, m) &&
		    (m->last_told_roster_round != t->round_number ||
		     (again && !ps_pending_count_for_handler(m, take_roster_answer))) &&
		    ps_pending_send_request(p, m, &request,
		                            (struct ps_pending_answer){ take_roster_answer, NULL,
		                                                        t->round_number }))
			m->last_told_roster_round = t->round_number;
	}
	return t->recorded_mirrors;
}

void ps_roster_forget_what_mirror_recorded(struct perseas *p, struct ps_mirror *m)
{
	/* A mirror that never was told may be another store's: creating a store visits such
	 * mirrors. */
	if (m->last_told_roster_round)
		p->upkeep.telling.recorded_mirrors &= ~ps_mirror_bit(p, m);
	m->last_told_roster_round = 0;
}

uint64_t ps_roster_tell_due_at(const struct perseas *p)
{
	return p->upkeep.telling.tell_again_at;
}
