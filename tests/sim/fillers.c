/*
 * fillers.c - the schedules of fillers.h. Whether a store may be removed is the library's to decide
 * (client/open/unfilled.c): the oracle finds a transaction that was acknowledged and is gone.
 */
#include "fillers.h"

#include "../../client/core/handle.h"
#include "../../client/open/open.h"
#include "../../client/open/unfilled.h"
#include "../../server/store/store_private.h"
#include "aim.h"
#include "creators.h"
#include "mirror.h"
#include "mistakes.h"
#include "operator.h"
#include "rosters.h"
#include "schedule.h"
#include "work.h"

enum { MEMBERS = 3, FILLERS = 4, TROUBLES = 3 };

#define BEGUN_WITHIN (2000 * SIM_MS)
/* longer than an open that creates a store takes, with its first transaction */
#define TROUBLE_WITHIN (10 * SIM_MS)

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = MEMBERS;
	*spares = 0;
	w->acks = 2;
	s->losses = s->changes = s->stops = 0;
	s->disks = false;
}

/* --- filling --- */

/* Returns true if a mirror has the transaction that fills the store. */
static bool is_filled(const struct sim_world *w)
{
	for (unsigned i = 0; i < w->mirror_count; i++)
		if (w->mirrors[i]->at && w->mirrors[i]->at->seq)
			return true;
	return false;
}

/* The mistake `marked`: it believes the mark of one image, and claims nothing. */
static int remove_by_mark(struct sim_world *w)
{
	bool marked = false;

	for (unsigned i = 0; i < w->mirror_count; i++) {
		const Perseas__Header *header = sim_rosters_header(w->mirrors[i]);
		const struct sim_node *at = w->mirrors[i]->at;

		marked |= w->mirrors[i]->stores && header && header->roster->filling && at &&
		          !at->seq;
	}
	for (unsigned i = 0; i < w->mirror_count && marked; i++) {
		struct sim_mirror *m = w->mirrors[i];
		const Perseas__Header *header = sim_rosters_header(m);
		Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;
		uint8_t store_id[PS_ID_SIZE];
		struct why why;

		if (!m->stores || !header)
			continue;
		drop.store = (char *)SIM_STORE;
		drop.store_id = header->store_id;
		drop.image_id = header->image_id;
		memcpy(store_id, header->store_id.data, PS_ID_SIZE);
		if (!store_drop(m->stores, NULL, &drop, &why))
			sim_fillers_dropped(m, store_id);
		sim_oracle_look(m);
	}
	return 0;
}

static int remove_unfilled(struct sim_owner *o, const char *list,
                           const struct perseas_options *options, struct ps_error *error)
{
	if (sim_mistake_is(o->world, SIM_MISTAKE_MARKED))
		return remove_by_mark(o->world);
	return ps_unfilled_store_remove(&o->env, SIM_STORE, list, options, NULL, error);
}

int sim_fillers_open(struct sim_application *a, const char *list,
                     const struct perseas_options *options, struct ps_error *error)
{
	struct sim_owner *o = a->owner;
	uint8_t id[PS_ID_SIZE];
	int rc = remove_unfilled(o, list, options, error);

	sim_trace(o->world, "owner %u removes what is not filled: %s", o->index,
	          perseas_error_name(rc));
	if (o->dead || (rc && rc != PERSEAS_ENOSTORE))
		return rc;
	sim_count(o->world, SIM_UNFILLED, !rc);
	rc = ps_open_filling(&o->env, SIM_STORE, list, options, id, &a->p, error);
	sim_count(o->world, SIM_FILLERS, !rc);
	return rc;
}

bool sim_fillers_came_late(const struct sim_application *a)
{
	const struct sim_world *w = a->world;

	if (!sim_aim_is(w, &sim_fillers_aim) || !a->owner->creates)
		return false;
	for (unsigned i = 0; i < w->mirror_count; i++) {
		const Perseas__Header *header = sim_rosters_header(w->mirrors[i]);

		if (header && ps_id_equal(header->store_id, a->p->store_id))
			return false;
	}
	return true;
}

bool sim_fillers_end(struct sim_owner *o)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct ps_error error = { 0 };
	struct sim_world *w = o->world;
	char list[SIM_LIST];
	int rc;

	if (!sim_aim_is(w, &sim_fillers_aim) || is_filled(w))
		return false;
	sim_creators_list(w, o, list, sizeof(list));
	options.spin_us = UINT32_MAX;
	rc = remove_unfilled(o, list, &options, &error);
	if (rc && rc != PERSEAS_ENOSTORE)
		sim_fail(w, "at the end the store is not filled, and stays: %s", error.text);
	for (unsigned i = 0; i < w->mirror_count; i++)
		if (w->mirrors[i]->stores && store_find(w->mirrors[i]->stores, SIM_STORE))
			sim_fail(w, "at the end mirror %u has what is not filled", i);
	return true;
}

/* --- mirrors --- */

void sim_fillers_dropped(struct sim_mirror *m, const uint8_t *store_id)
{
	struct sim_world *w = m->world;

	sim_creators_lost(m, store_id);
	m->granted = 0;
	for (unsigned i = 0; i < w->mirror_count; i++)
		if (sim_rosters_header(w->mirrors[i]))
			return;
	sim_trace(w, "the store is removed");
	sim_oracle_removed(w);
	sim_rosters_removed(w, store_id);
}

/* --- what goes wrong --- */

static struct sim_owner *some_filler(struct sim_world *w)
{
	struct sim_owner *o = w->owners[sim_below(w, w->owner_count)];

	return o->creates && !o->dead && (!o->handle || !o->handle->commit.seq) ? o : NULL;
}

static void go_missing(struct sim_world *w, struct sim_owner *o)
{
	sim_owner_stop(o, sim_below(w, 2000) * SIM_MS);
	sim_aim_reset(o);
}

static void trouble(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_owner *o = w->schedule->ending ? NULL : some_filler(w);

	(void)arg;
	(void)ticket;
	if (!o)
		return;
	if (sim_chance(w, 40))
		sim_owner_kill(o, false);
	else
		go_missing(w, o);
}

static void begin_trouble(struct sim_world *w)
{
	for (unsigned i = 0; i < TROUBLES; i++)
		sim_at(w, w->now + sim_below(w, TROUBLE_WITHIN), trouble, NULL, 0);
}

static void start_one(struct sim_world *w, void *arg, uint64_t ticket)
{
	(void)arg;
	(void)ticket;
	if (sim_schedule_creator(w))
		begin_trouble(w);
}

static void begin(struct sim_world *w)
{
	begin_trouble(w);
	for (unsigned i = 0; i < FILLERS; i++)
		sim_at(w, w->now + sim_below(w, BEGUN_WITHIN), start_one, NULL, 0);
}

const struct sim_aim sim_fillers_aim = {
	.turn = 8,
	.mistakes = { SIM_MISTAKE_MARKED },
	.shape = shape,
	.begin = begin,
};
