/*
 * creators.c - see creators.h. The schedule starts them, the application asks for its list, the
 * mirrors tell of losses and of what they settled. It must draw nothing from the schedule's chance
 * where no second creator comes.
 */
#include "creators.h"

#include "../../server/store/store_private.h"
#include "fabric_sim.h"
#include "mirror.h"
#include "mistakes.h"
#include "process.h"
#include "rosters.h"
#include "schedule.h"

enum {
	ONE_OF = 4,       /* so many schedules has second creators */
	TROUBLES_MAX = 4, /* things that go wrong while the store is made */
};

unsigned sim_creators_count(const struct sim_world *w)
{
	bool wanted = w->mistake ? sim_mistake_creates(w) : w->seed % ONE_OF == 3;

	return wanted ? 1 + (unsigned)(w->seed / ONE_OF % 2) : 0;
}

bool sim_creators_at_work(const struct sim_world *w)
{
	for (unsigned i = 0; i < w->owner_count; i++)
		if (w->owners[i]->creates && !w->owners[i]->opened && !w->owners[i]->dead)
			return true;
	return false;
}

void sim_creators_list(const struct sim_world *w, const struct sim_owner *o, char *list,
                       size_t size)
{
	bool reversed = o->index && (w->seed >> (4 + o->index)) % 4 == 0;
	size_t used = 0;

	for (unsigned k = 0; k < w->members && used < size; k++) {
		unsigned i = reversed ? w->members - 1 - k : k;

		used += (size_t)snprintf(list + used, size - used, "%s%s", k ? "," : "",
		                         w->mirrors[i]->address);
	}
}

/* --- what goes wrong --- */

static struct sim_owner *some_creator(struct sim_world *w)
{
	struct sim_owner *o = w->owners[sim_below(w, w->owner_count)];

	return o->creates && !o->dead && !o->opened ? o : NULL;
}

/* Loses one mirror while the store is created, if W others keep what they hold. */
static void lose_one(struct sim_world *w)
{
	struct sim_mirror *m = w->mirrors[sim_chance(w, 60) ? 0 : sim_below(w, w->members)];

	if (w->acks < 2 || !w->schedule->losses || !m->stores)
		return;
	w->schedule->losses = 0;
	m->troubled = true;
	sim_mirror_crash(m, sim_chance(w, 30), true);
	sim_at(w, w->now + sim_below(w, 20 * SIM_MS), sim_mirror_start_again, m, 0);
}

/* Delays messages to one mirror, some beyond their timeout. */
static void delay(struct sim_world *w, struct sim_owner *o)
{
	const uint64_t mirror = sim_below(w, w->members);
	struct sim_path *path = &o->paths[mirror];
	uint64_t most = sim_chance(w, 50) ? 2 : 3 * w->schedule->connect_timeout_ms;

	o->troubled[mirror] = true;
	sim_path_block(path, true, sim_chance(w, 50));
	sim_at(w, w->now + sim_below(w, most * SIM_MS), sim_path_unblock, path, 0);
}

static void reset_all(struct sim_owner *o)
{
	for (struct ps_control *c = o->controls; c; c = c->next) {
		if (!c->closed)
			o->troubled[c->mirror->index] = true;
		sim_control_reset(c);
	}
}

static void trouble(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_owner *o = some_creator(w);
	uint64_t what = sim_below(w, 100);

	(void)arg;
	(void)ticket;
	if (!o)
		return;
	sim_trace(w, "owner %u creates, and something goes wrong (%llu)", o->index,
	          (unsigned long long)what);
	if (what < 45)
		delay(w, o);
	else if (what < 65)
		sim_owner_stop(o, sim_below(w, 5 * SIM_MS));
	else if (what < 80)
		sim_owner_kill(o, false);
	else if (what < 90)
		lose_one(w);
	else
		reset_all(o);
}

/* --- from beginning to end --- */

static void start_one(struct sim_world *w, void *arg, uint64_t ticket)
{
	(void)arg;
	(void)ticket;
	sim_count(w, SIM_CREATORS, sim_schedule_creator(w));
}

void sim_creators_begin(struct sim_world *w)
{
	unsigned count = sim_creators_count(w), troubles;

	if (!count)
		return;
	for (unsigned i = 0; i < count; i++)
		sim_at(w, w->now + sim_below(w, (sim_chance(w, 50) ? 200 : 3000) * SIM_US),
		       start_one, NULL, 0);
	troubles = (unsigned)sim_below(w, TROUBLES_MAX);
	for (unsigned i = 0; i < troubles; i++)
		sim_at(w, w->now + sim_below(w, 6 * SIM_MS), trouble, NULL, 0);
}

/* --- what must be so --- */

unsigned sim_creators_spared(const struct sim_owner *o, const Perseas__Roster *roster)
{
	const struct sim_world *w = o->world;
	unsigned count = 0;

	for (unsigned i = 0; i < w->mirror_count; i++)
		count += sim_roster_names(roster, w->mirrors[i]) && !o->troubled[i] &&
		         !w->mirrors[i]->troubled;
	return count;
}

void sim_creators_lost(struct sim_mirror *m, const uint8_t *store_id)
{
	if (m->lost_count < SIM_LOST_MAX)
		memcpy(m->lost_makings[m->lost_count++], store_id, PS_ID_SIZE);
}

static bool has_or_lost(const struct sim_mirror *m, const Perseas__Header *made)
{
	const Perseas__Header *header = sim_rosters_header(m);

	if (header && same_id(header->store_id, made->store_id))
		return true;
	for (unsigned i = 0; i < m->lost_count; i++)
		if (ps_id_equal(made->store_id, m->lost_makings[i]))
			return true;
	return false;
}

void sim_creators_settled(struct sim_mirror *m)
{
	const Perseas__Header *made = sim_rosters_header(m);
	struct sim_world *w = m->world;

	/* An image without the store's key belongs to no creation. */
	if (!made)
		return;
	for (unsigned i = 0; i < w->mirror_count; i++)
		if (sim_roster_names(made->roster, w->mirrors[i]) &&
		    !has_or_lost(w->mirrors[i], made))
			sim_fail(w,
			         "mirror %u calls a making consistent, and mirror %u has "
			         "another one, or none",
			         m->index, i);
}
