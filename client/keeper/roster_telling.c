/*
 * roster_telling.c - tells rosters round by round, and counts who has recorded those of the present
 * round. change.c calls it. An answer to what was told before counts for nothing.
 */
#include "roster_telling.h"

#include "due.h"
#include "../core/quorum.h"
#include "roster.h"

#include <string.h>

#define AGAIN ps_ms(500) /* mirrors that did not take a roster are told again */

/* Another round begins where the rosters are others than were told. */
static void look(struct perseas *p)
{
	const Perseas__Roster *next = p->next_roster;
	const uint64_t what[] = { p->roster->epoch, p->roster->version, next ? next->epoch : 0,
		                  next ? next->version : 0, p->marked };
	struct ps_telling *t = &p->upkeep.telling;

	static_assert(sizeof(what) == sizeof(t->what), "all that is compared");
	if (t->round && !memcmp(t->what, what, sizeof(what)))
		return;
	memcpy(t->what, what, sizeof(what));
	t->round++;
	t->took = 0;
	t->again_at = 0;
}

/* Did it record what it was told in the present round? */
static void take_told(struct perseas *p, struct ps_mirror *m, const struct ps_due *due,
                      Perseas__Reply **reply, const struct ps_error *why)
{
	(void)why;
	if (*reply && (*reply)->status == PERSEAS__STATUS__STATUS_OK &&
	    due->ticket == p->upkeep.telling.round)
		p->upkeep.telling.took |= ps_bit(p, m);
}

uint32_t ps_tell(struct perseas *p, uint32_t set)
{
	struct ps_telling *t = &p->upkeep.telling;
	const uint64_t now = ps_now(p);
	Perseas__RosterRequest ask;
	Perseas__Request request;
	bool again;

	look(p);
	again = now >= t->again_at;
	if (again)
		t->again_at = now + AGAIN;
	ps_roster_request(p, &ask, &request);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		/* One that was not there before is told at once, one that refused in a while. */
		if (set & ~t->took & ps_bit(p, m) &&
		    (m->told != t->round || (again && !ps_due_count(m, take_told))) &&
		    ps_due_ask(p, m, &request, (struct ps_due){ take_told, NULL, t->round }))
			m->told = t->round;
	}
	return t->took;
}

void ps_telling_ended(struct perseas *p, struct ps_mirror *m)
{
	/* One that never was told may be none of the store's: a making visits others. */
	if (m->told)
		p->upkeep.telling.took &= ~ps_bit(p, m);
	m->told = 0;
}

uint64_t ps_telling_due(const struct perseas *p)
{
	return p->upkeep.telling.again_at;
}
