/*
 * contract.c - runs one clause of the contracts over a small simulated world. The two unit tests
 * that contract.h names call it. It must not know what a clause asserts: those are in
 * tests/support/.
 */
#include "contract.h"

#include "../support/contract_env.h"
#include "env_sim.h"
#include "long.h"
#include "mirror.h"
#include "oracle.h"
#include "rosters.h"
#include "schedule.h"

#define ARRIVAL (5 * SIM_MS) /* longer than a message takes */

struct sim_stage {
	struct stage stage; /* first */
	struct sim_owner *owner;
	const struct clause *clause;
};

static struct sim_owner *owner_of(struct stage *stage)
{
	return ((struct sim_stage *)stage)->owner;
}

/* The connection that was made last, once the mirror works on a request of it. */
static struct ps_control *at_work(struct stage *stage)
{
	struct sim_owner *o = owner_of(stage);

	while (!o->controls->job)
		sim_owner_sleep(o, SIM_MS);
	return o->controls;
}

static void hold(struct stage *stage)
{
	owner_of(stage)->world->schedule->held = true;
}

static void sign(struct stage *stage, uint64_t done)
{
	sim_long_sign(at_work(stage), done);
	sim_owner_sleep(owner_of(stage), ARRIVAL);
}

static void let_go(struct stage *stage, unsigned requests)
{
	struct ps_control *control = at_work(stage);

	(void)requests;
	owner_of(stage)->world->schedule->held = false;
	sim_long_end(control);
	sim_owner_sleep(owner_of(stage), ARRIVAL);
}

static void stop(struct stage *stage)
{
	struct sim_path *path = &owner_of(stage)->paths[0];

	sim_path_block(path, true, true);
}

static void stray(struct stage *stage)
{
	Perseas__Reply reply = PERSEAS__REPLY__INIT;
	struct sim_owner *o = owner_of(stage);
	uint8_t *bytes;
	size_t len;

	reply.id = 1000;
	reply.status = PERSEAS__STATUS__STATUS_NO_STORE;
	reply.message = (char *)(uintptr_t) "stray";
	if (ps_reply_pack(&reply, &bytes, &len))
		sim_fail(o->world, "a reply cannot be packed");
	sim_pipe_send(&o->controls->in, sim_message_new(o->world, SIM_REPLY, bytes, len));
	free(bytes);
	sim_owner_sleep(o, ARRIVAL);
}

static void end(struct stage *stage)
{
	struct sim_owner *o = owner_of(stage);

	sim_pipe_send(&o->controls->in, sim_message_new(o->world, SIM_END, NULL, 0));
	sim_owner_sleep(o, ARRIVAL);
}

static void run(void *arg)
{
	struct sim_stage *s = arg;

	s->clause->check(&s->stage);
}

void sim_contract_begin(struct sim_world *w, unsigned mirrors)
{
	static uint64_t counts[SIM_COUNTS_MAX];

	w->counts = counts;
	sim_world_begin(w, 1);
	sim_oracle_begin(w);
	w->schedule = sim_alloc(w, sizeof(*w->schedule));
	for (unsigned i = 0; i < mirrors; i++)
		sim_mirror_new(w);
}

void sim_contract_end(struct sim_world *w)
{
	const struct sim_owner *o = w->owners[0];

	while (!sim_owner_ended(o) && sim_step(w))
		;
	if (!sim_owner_ended(o) && !clause_broken[0])
		snprintf(clause_broken, sizeof(clause_broken), "it does not end");
	/* A clause that failed may have left links. */
	for (struct ps_link *link = o->links; link; link = link->next)
		free(link->queue);
	sim_rosters_forget(w);
	for (unsigned i = 0; i < w->mirror_count; i++)
		sim_mirror_free(w->mirrors[i]);
	sim_world_free(w);
	coroutines_free();
}

void sim_contract(unsigned clause)
{
	struct sim_world w = { 0 };
	struct sim_stage s = { .clause = &env_clauses[clause],
		               .stage = { .short_ns = 100 * SIM_MS,
		                          .hold = hold,
		                          .sign = sign,
		                          .let_go = let_go,
		                          .stop = stop,
		                          .stray = stray,
		                          .end = end } };

	sim_contract_begin(&w, 2);
	sim_mirror_crash(w.mirrors[1], false, false);
	s.owner = sim_owner_new(&w, run, &s);
	s.stage.env = &s.owner->env;
	for (unsigned i = 0; i < 2; i++)
		s.owner->paths[i].delay = 10 * SIM_US;
	if (ps_address_parse(w.mirrors[0]->address, &s.stage.mirror, NULL) ||
	    ps_address_parse(w.mirrors[1]->address, &s.stage.nobody, NULL))
		abort();
	sim_contract_end(&w);
}
