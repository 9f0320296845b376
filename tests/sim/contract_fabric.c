/*
 * The simulator's fabrics on the stage of the contract of fabric.h. The mirror's store is
 * made by its own logic, and its image is one that is being changed in place (joining): of such the
 * oracle expects nothing, so that clauses may write what they like.
 */
#include "contract.h"

#include "../../server/store/store_private.h"
#include "../support/contract_fabric.h"
#include "../support/mirror.h"
#include "env_sim.h"
#include "mirror.h"

#define ARRIVAL (5 * SIM_MS) /* longer than a message takes */
#define LOOKS (10 * SIM_US)

enum { PACKET = 64, WINDOW = 32 << 10, STOPPED_AFTER = 700 };

struct sim_stage {
	struct fabric_stage stage; /* first */
	struct sim_owner *owner;
	struct sim_mirror *mirror;
	const struct fabric_clause *clause;
	uint64_t epoch; /* of the last claim */
	Perseas__Reply *reply;
	void (*look)(void *arg);
	void *arg;
};

static struct sim_stage *of(struct fabric_stage *stage)
{
	return (struct sim_stage *)stage;
}

static uint64_t now(struct fabric_stage *stage)
{
	return sim_owner_now(of(stage)->owner);
}

static bool pause_sim(struct fabric_stage *stage, struct pollfd *fd, uint64_t until_ns)
{
	struct sim_wait wait = { .until = until_ns, .sleeper = -1, .fds = fd, .count = fd != NULL };

	sim_task_block(of(stage)->owner, &wait);
	return fd && now(stage) < until_ns;
}

/* --- sessions --- */

static struct ps_control *dial(struct sim_stage *s)
{
	struct ps_control *control = sim_env_ops.connect(&s->owner->env, &s->stage.address, NULL);

	sim_owner_sleep(s->owner, ARRIVAL);
	return control;
}

/* Makes a store with one segment and an image in state joining. */
static void make_store(struct sim_stage *s)
{
	struct mirror logic = { .memory = s->mirror->memory, .stores = s->mirror->stores };
	Perseas__JoiningRequest joining = PERSEAS__JOINING_REQUEST__INIT;
	struct peer peer;

	mirror_bank_of(&logic, &peer, false, STAGE_SEGMENT);
	joining.whole = true;
	if (store_joining(&peer.session, &joining, &logic.why))
		sim_fail(s->owner->world, "it is not joining: %s", logic.why.text);
	/* No chain of the clauses wrote the segment's birth, so its terminator is written here. */
	memset(session_memory(&peer.session, PS_REGION_LOG, PS_RING_OFFSET, PS_LOG_MIN, true), 0,
	       PS_LOG_MIN);
	store_session_ended(&peer.session);
	s->epoch = BANK_EPOCH;
}

/* The claim of the next epoch: a session of its own. */
static const Perseas__Grant *grant(struct fabric_stage *stage, int *fds, uint64_t *epoch)
{
	struct sim_stage *s = of(stage);
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_control *control = dial(s);
	struct ps_error error = { 0 };
	unsigned count;

	claim.store = (char *)(uintptr_t)SIM_STORE;
	claim.epoch = *epoch = ++s->epoch;
	claim.owner = OWNER(BANK_OWNER);
	claim.takeover = true;
	request.body_case = PERSEAS__REQUEST__BODY_CLAIM;
	request.claim = &claim;
	if (s->reply)
		perseas__reply__free_unpacked(s->reply, NULL);
	if (sim_env_ops.send(control, &request, &error) ||
	    sim_env_ops.receive(control, PS_NEVER, &s->reply, fds, &count, &error) ||
	    !s->reply->claim)
		sim_fail(s->owner->world, "no session: %s",
		         s->reply ? s->reply->message : error.text);
	return s->reply->claim->grant;
}

static unsigned left(struct fabric_stage *stage)
{
	unsigned count = 0;

	for (const struct sim_memory *m = of(stage)->mirror->given; m; m = m->next)
		count += m->open;
	return count;
}

/* Through the newest link where it is the memory itself: a claim copies an image away from a
 * process that may still write to it. */
static uint8_t *memory(struct fabric_stage *stage, uint32_t region)
{
	const struct ps_link *link = of(stage)->owner->links;
	const struct sim_mirror *m = of(stage)->mirror;

	if (link && link->memory && link->memory->open)
		return link->memory->pieces[region].base;
	return store_find(m->stores, SIM_STORE)->image.regions[region].base;
}

/* --- stream --- */

static struct sim_path *path_of(struct fabric_stage *stage)
{
	return &of(stage)->owner->paths[of(stage)->mirror->index];
}

static void stop(struct fabric_stage *stage)
{
	sim_path_block(path_of(stage), true, false);
}

static void go(struct fabric_stage *stage)
{
	sim_path_block(path_of(stage), false, false);
}

static void step(struct fabric_stage *stage)
{
	struct sim_pipe *pipe = &of(stage)->owner->links->out;
	struct sim_message *message = pipe->first;

	if (message) {
		pipe->first = message->next;
		if (!pipe->first)
			pipe->last = NULL;
		pipe->deliver(pipe->arg, message);
	}
	sim_owner_sleep(of(stage)->owner, ARRIVAL);
}

static void cut(struct fabric_stage *stage)
{
	struct sim_owner *o = of(stage)->owner;

	sim_pipe_break(&o->links->out);
	sim_pipe_send(&o->links->in, sim_message_new(o->world, SIM_END, NULL, 0));
	sim_owner_sleep(o, ARRIVAL);
}

/* --- shared --- */

static void look_now(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_stage *s = arg;

	(void)ticket;
	s->look(s->arg);
	if (s->owner->stopped)
		sim_at(w, w->now + LOOKS, look_now, s, 0);
}

/* The process is stopped in the midst of a write, and looked at meanwhile. */
static void watch(struct fabric_stage *stage, void (*look)(void *arg), void *arg)
{
	struct sim_stage *s = of(stage);

	s->look = look;
	s->arg = arg;
	s->owner->stop_after = STOPPED_AFTER;
	s->owner->stop_how = SIM_STOP;
	s->owner->stop_ns = SIM_MS;
	sim_at(s->owner->world, s->owner->world->now + LOOKS, look_now, s, 0);
}

/* Sets the promise in the memory that was given last. */
static void promise(struct fabric_stage *stage, uint64_t epoch)
{
	struct piece *pieces = of(stage)->mirror->given->pieces;

	((struct ps_promise *)(void *)pieces[PS_REGION_PROMISE].base)->epoch = epoch;
}

static void retire(struct fabric_stage *stage)
{
	promise(stage, PS_PROMISE_RETIRED);
}

static void fence(struct fabric_stage *stage)
{
	promise(stage, of(stage)->epoch + 1);
}

/* --- life --- */

static void run(void *arg)
{
	struct sim_stage *s = arg;

	make_store(s);
	s->clause->check(&s->stage);
}

static void set_stage(struct sim_stage *s, bool shared)
{
	s->stage = (struct fabric_stage){
		.fabric = shared ? &sim_fabric_shared : &sim_fabric_stream,
		.ring = aligned_alloc(PS_PAGE, STAGE_RING),
		.short_ns = 100 * SIM_MS,
		.flood = 3,
		.now = now,
		.pause = pause_sim,
		.grant = grant,
		.left = left,
		.memory = memory,
		.stop = shared ? NULL : stop,
		.go = shared ? NULL : go,
		.step = shared ? NULL : step,
		.watch = shared ? watch : NULL,
		.cut = shared ? retire : cut,
		.fence = shared ? fence : NULL,
		.trusts_places = true,
		.trusts_updates = true,
	};
	if (!s->stage.ring)
		abort();
}

void sim_contract_fabric(unsigned clause, bool shared, int mistake)
{
	struct sim_world w = { .mistake = mistake };
	struct sim_stage s = { .clause = &fabric_clauses[clause] };

	set_stage(&s, shared);
	sim_contract_begin(&w, 1);
	s.mirror = w.mirrors[0];
	s.mirror->window = WINDOW;
	s.mirror->packet = PACKET;
	s.owner = sim_owner_new(&w, run, &s);
	s.owner->local[0] = shared;
	s.owner->paths[0].delay = 10 * SIM_US;
	s.stage.env = &s.owner->env;
	if (ps_address_parse(s.mirror->address, &s.stage.address, NULL))
		abort();
	sim_contract_end(&w);
	if (s.reply)
		perseas__reply__free_unpacked(s.reply, NULL);
	free(s.stage.ring);
}
