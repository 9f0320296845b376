/*
 * misled.c - see misled.h.
 */
#include "misled.h"

#include "../../proto/control/judge.h"
#include "aim.h"
#include "env_sim.h"
#include "mirror.h"
#include "mistakes.h"
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

struct sim_mirror *sim_misled_leads(struct sim_mirror *called)
{
	const struct sim_schedule *s = called->world->schedule;

	return s->ending || !s->leads[called->index] ? called : s->leads[called->index];
}

static void lead(struct sim_world *w, unsigned from, unsigned to)
{
	sim_trace(w, "the address of mirror %u leads to mirror %u", from, to);
	w->schedule->leads[from] = w->mirrors[to];
	for (unsigned i = 0; i < w->owner_count; i++)
		for (struct ps_control *c = w->owners[i]->controls; c; c = c->next)
			if (c->called == w->mirrors[from])
				sim_control_reset(c);
}

static void mislead(struct sim_world *w)
{
	const unsigned one = (unsigned)sim_below(w, w->members);
	const unsigned other = (unsigned)sim_below(w, w->members);

	sim_count(w, SIM_MISLED, 1);
	switch (sim_below(w, 3)) {
	case 0:
		lead(w, one, one);
		break;
	case 1:
		lead(w, one, other);
		break;
	default:
		lead(w, one, other);
		lead(w, other, one);
	}
}

/* ticket: the store was made, for which each mirror was needed at its own address. */
static void turn(struct sim_world *w, void *arg, uint64_t ticket)
{
	const bool made = ticket || sim_aim_owner(w, 0);

	(void)arg;
	if (w->schedule->ending)
		return;
	if (made)
		mislead(w);
	sim_at(w, w->now + sim_between(w, 5, 800) * SIM_MS, turn, NULL, made);
}

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = 2 + w->seed / SIM_AIM_TURNS % 4;
	*spares = 0;
	w->acks = 1 + (unsigned)(w->seed / SIM_AIM_TURNS / 4 % *mirrors);
	s->changes = 0;
	s->calm = false;
	s->left += 200;
	sim_at(w, w->now + sim_between(w, 5, 800) * SIM_MS, turn, NULL, false);
}

static Perseas__Header *header_in(const Perseas__Reply *reply)
{
	if (reply->body_case == PERSEAS__REPLY__BODY_CLAIM)
		return reply->claim->header;
	return reply->body_case == PERSEAS__REPLY__BODY_STORE ? reply->store->status->header : NULL;
}

void sim_misled_reply(const struct ps_control *control, Perseas__Reply *reply)
{
	Perseas__Header *header = header_in(reply);
	const Perseas__Member *member;

	if (!sim_mistake_is(control->owner->world, SIM_MISTAKE_MISLED))
		return;
	free(reply->daemon.data);
	reply->daemon = (ProtobufCBinaryData){ 0, NULL };
	member = header ? ps_roster_member_at(header->roster, control->called->address) : NULL;
	if (member)
		memcpy(header->image_id.data, member->image_id.data, PS_ID_SIZE);
}

const struct sim_aim sim_misled_aim = {
	.turn = 9,
	.mistakes = { SIM_MISTAKE_MISLED },
	.shape = shape,
};
