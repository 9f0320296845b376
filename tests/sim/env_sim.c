/*
 * env_sim.c - the env that the library runs on in a schedule. The library calls it through struct
 * ps_env_ops. It must never look at real time or real chance, or a seed would not repeat its
 * schedule.
 */
#include "env_sim.h"

#include "aim.h"
#include "cable.h"
#include "hearing.h"
#include "mirror.h"
#include "misled.h"
#include "mistakes.h"
#include "reply.h"
#include "schedule.h"

static struct sim_owner *of(struct ps_env *env)
{
	return (struct sim_owner *)env;
}

static uint64_t env_now(struct ps_env *env)
{
	sim_mistake_poke(of(env));
	return sim_owner_now(of(env));
}

/* The library looks at this clock only where a transaction takes its seq, and, in an env that knows
 * of certificates, for these. */
static uint64_t env_clock(struct ps_env *env)
{
	struct sim_owner *o = of(env);
	struct sim_task *task = o->running;
	void (*sealing)(void *arg) = task->sealing;

	/* A commit that is held back comes before anything that is posted later. */
	if (o->held) {
		o->held = NULL;
		return o->world->now;
	}
	task->sealing = NULL;
	if (sealing)
		sealing(task->sealed);
	return o->world->now;
}

static void env_random(struct ps_env *env, void *bytes, size_t len)
{
	sim_fill(of(env)->world, bytes, len);
}

static void env_pause(struct ps_env *env, enum ps_sleeper who, struct pollfd *fds, unsigned count,
                      uint64_t until_ns)
{
	struct sim_owner *o = of(env);
	struct sim_wait wait = {
		.until = until_ns, .sleeper = (int)who, .fds = fds, .count = count
	};

	if (who == PS_UNWOKEN) {
		wait.sleeper = -1;
		sim_task_block(o, &wait);
		return;
	}
	assert(!o->asleep[who]);
	o->asleep[who] = true;
	sim_task_block(o, &wait);
	o->asleep[who] = false;
}

static void env_wake(struct ps_env *env, enum ps_sleeper who)
{
	of(env)->woken[who] = true;
	sim_owner_poke(of(env));
}

static void env_wait(struct ps_env *env, pthread_cond_t *cond, pthread_mutex_t *lock,
                     uint64_t until_ns)
{
	struct sim_wait wait = { .until = until_ns, .sleeper = -1, .cond = cond };
	bool locked;

	pthread_mutex_unlock(lock);
	locked = sim_task_wait(of(env), &wait);
	pthread_mutex_lock(lock);
	/* The thread that holds the lock may depend on the thread that dies. */
	if (of(env)->dead && of(env)->last_wait && !locked)
		of(env)->last_wait(of(env)->last_wait_arg);
}

static void env_broadcast(struct ps_env *env, pthread_cond_t *cond)
{
	struct sim_owner *o = of(env);

	for (int i = 0; i < SIM_TASKS; i++)
		if (o->tasks[i].blocked && o->tasks[i].wait.cond == cond)
			o->tasks[i].signalled = true;
	sim_owner_poke(o);
}

/* Tasks of one process run by turns: each sees what the others stored. */
static bool env_barrier(struct ps_env *env)
{
	(void)env;
	return true;
}

static uintptr_t env_thread(struct ps_env *env)
{
	return (uintptr_t)of(env)->running;
}

static int task_of(enum ps_sleeper who)
{
	return who == PS_COLLECTOR ? SIM_COLLECTOR : SIM_KEEPER;
}

static int env_spawn(struct ps_env *env, enum ps_sleeper who, void (*fn)(void *arg), void *arg)
{
	sim_task_begin(of(env), task_of(who), fn, arg);
	return 0;
}

static void env_join(struct ps_env *env, enum ps_sleeper who)
{
	sim_task_join(of(env), task_of(who));
}

/* --- control connections --- */

static uint64_t oldest_due(const struct ps_control *control)
{
	return control->due.last - control->due.due + 1;
}

/* Returns true if receive would not block. */
static bool has_reply(const struct ps_control *control)
{
	return control->first || control->ended ||
	       (control->made_up && control->made_up == oldest_due(control));
}

static bool control_ready(const struct sim_endpoint *endpoint, short events)
{
	const struct ps_control *control = (const struct ps_control *)endpoint;

	(void)events;
	return !control->closed && has_reply(control);
}

static struct sim_message *take_first(struct ps_control *control)
{
	struct sim_message *message = control->first;

	if (!message)
		return NULL;
	control->first = message->next;
	if (!control->first)
		control->last = NULL;
	return message;
}

/* Signs of progress for the request that is due first: each gives it as long again. One that is not
 * for it ends the connection. */
static void take_signs(struct ps_control *control)
{
	const char *why = "";
	Perseas__Reply *reply;

	while (control->first && control->first->kind == SIM_SIGN && !sim_mistake_sign(control)) {
		const struct sim_message *sign = take_first(control);

		reply = ps_reply_unpack(sign->bytes + 4, sign->len - 4, &why);
		if (!reply)
			sim_fail(control->owner->world, "a sign is not valid: %s", why);
		if (ps_asked_match(&control->due, reply) == PS_MATCH_WORKING)
			control->last_progress_at = control->signed_at = control->owner->world->now;
		else if (!control->forged)
			control->ended = control->strange = true;
		perseas__reply__free_unpacked(reply, NULL);
	}
	control->arrived = has_reply(control);
}

static void control_arrived(void *arg, struct sim_message *message)
{
	struct ps_control *control = arg;

	/* A client that gave up drops a late answer. */
	if (control->ended)
		return;
	if (message->kind == SIM_END) {
		control->ended = true;
	} else {
		message->next = NULL;
		if (control->last)
			control->last->next = message;
		else
			control->first = message;
		control->last = message;
	}
	take_signs(control);
	sim_owner_poke(control->owner);
}

/* Returns the error with which the connection ended. */
static int unreachable(const struct ps_control *control, const char *why, struct ps_error *error)
{
	if (control->strange)
		return ps_error_set(error, PERSEAS_EPROTOCOL, "%s answered another question",
		                    control->mirror->address);
	return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s: %s", control->mirror->address, why);
}

static struct ps_control *env_connect(struct ps_env *env, const struct ps_address *address,
                                      struct ps_error *error)
{
	struct sim_owner *o = of(env);
	struct sim_world *w = o->world;
	struct sim_mirror *called = sim_mirror_find(w, address), *m = sim_misled_leads(called);
	struct ps_control *control;

	if (o->dead) {
		ps_error_set(error, PERSEAS_EUNREACHABLE, "this process is dead");
		return NULL;
	}
	control = sim_alloc(w, sizeof(*control));
	control->endpoint.ready = control_ready;
	control->owner = o;
	control->mirror = m;
	control->called = called;
	control->server.control = control;
	control->next = o->controls;
	o->controls = control;
	control->fd = sim_endpoint_new(w, control);
	sim_pipe_init(w, &control->out, &o->paths[m->index], SIM_OUT, sim_mirror_control, control);
	sim_pipe_init(w, &control->in, &o->paths[m->index], SIM_IN, control_arrived, control);
	sim_pipe_send(&control->out, sim_message_new(w, SIM_CONNECT, NULL, 0));
	return control;
}

static void shift(Perseas__Segment *const *segments, size_t count, uint64_t by)
{
	for (size_t i = 0; i < count; i++)
		segments[i]->address += by;
}

/*
 * Each owner sees the store at addresses of its own, because all owners share this process and
 * would map its segments at equal addresses. Any two owners differ by another distance, so no two
 * mappings meet, whoever chose the address.
 */
static uint64_t shift_of(const struct sim_owner *o)
{
	return (uint64_t)1 << (32 + o->index);
}

uint64_t sim_recorded(const struct sim_owner *o, uint64_t address)
{
	return address - shift_of(o);
}

static void shift_request(const Perseas__Request *request, uint64_t by)
{
	if (request->body_case == PERSEAS__REQUEST__BODY_ADD_SEGMENTS)
		shift(request->add_segments->segments, request->add_segments->n_segments, by);
	else if (request->body_case == PERSEAS__REQUEST__BODY_REBUILD)
		shift(request->rebuild->header->segments, request->rebuild->header->n_segments, by);
}

static void shift_reply(Perseas__Reply *reply, uint64_t by)
{
	Perseas__Header *header = NULL;

	if (reply->body_case == PERSEAS__REPLY__BODY_STORE && reply->store->status)
		header = reply->store->status->header;
	else if (reply->body_case == PERSEAS__REPLY__BODY_CLAIM)
		header = reply->claim->header;
	else if (reply->body_case == PERSEAS__REPLY__BODY_REBUILD)
		header = reply->rebuild->header;
	else if (reply->body_case == PERSEAS__REPLY__BODY_FINISH)
		header = reply->finish->header;
	if (header)
		shift(header->segments, header->n_segments, by);
}

static void set_shared(const Perseas__Request *request, bool shared)
{
	if (request->body_case == PERSEAS__REQUEST__BODY_CLAIM)
		request->claim->shared = shared;
	else if (request->body_case == PERSEAS__REQUEST__BODY_REBUILD)
		request->rebuild->shared = shared;
}

static uint64_t epoch_of(const Perseas__Request *request)
{
	if (request->body_case == PERSEAS__REQUEST__BODY_CLAIM)
		return request->claim->epoch;
	if (request->body_case == PERSEAS__REQUEST__BODY_REBUILD)
		return request->rebuild->epoch;
	return 0;
}

static int env_send(struct ps_control *control, const Perseas__Request *request,
                    struct ps_error *error)
{
	struct sim_owner *o = control->owner;
	Perseas__Request numbered = *request;
	struct sim_message *message;
	uint8_t *bytes;
	size_t len;
	int rc;

	if (o->dead || control->ended)
		return unreachable(control, "the connection is broken", error);
	/* Every mirror is unix://, but only mirrors on the owner's host share their memory. */
	set_shared(request, o->local[control->mirror->index]);
	shift_request(request, -shift_of(o));
	numbered.id = control->due.last + 1;
	rc = ps_request_pack(&numbered, &bytes, &len);
	shift_request(request, shift_of(o));
	if (rc)
		sim_fail(o->world, "a request of kind %d cannot be packed",
		         (int)request->body_case);
	message = sim_message_new(o->world, SIM_REQUEST, bytes, len);
	sim_oracle_asks(o, (int)request->body_case);
	control->asked = (int)request->body_case;
	if (sim_mistake_by_kind(control))
		control->due.due = 0;
	ps_asked_add(&control->due, request->body_case);
	if (sim_mistake_request(control, request)) {
		free(bytes);
		control->made_up = control->due.last;
		control->arrived = has_reply(control);
		sim_owner_poke(o);
		return 0;
	}
	message->a = request->body_case;
	message->b = epoch_of(request);
	free(bytes);
	sim_pipe_send(&control->out, message);
	return 0;
}

/* Returns an error because no answer came; a mistake makes one up. */
static int no_reply(struct ps_control *control, Perseas__Reply **reply, struct ps_error *error)
{
	const bool ended = control->ended;

	*reply = sim_mistake_no_reply(control);
	if (*reply) {
		control->made_up = 0;
		control->forged = true;
		control->due.due--;
		control->arrived = has_reply(control);
		return 0;
	}
	control->ended = control->arrived = !sim_mistake_by_kind(control);
	return unreachable(control, ended ? "the connection broke" : "no answer in time", error);
}

/* Unpacks the oldest reply that has arrived. Returns NULL if there is none. */
static Perseas__Reply *next_reply(struct ps_control *control, const struct sim_message **message)
{
	struct sim_world *w = control->owner->world;
	Perseas__Reply *reply;
	const char *why = "";

	while ((*message = take_first(control))) {
		reply = ps_reply_unpack((*message)->bytes + 4, (*message)->len - 4, &why);
		if (!reply)
			sim_fail(w, "a mirror's reply is not valid: %s", why);
		if (!control->forged || reply->id >= oldest_due(control))
			return reply;
		perseas__reply__free_unpacked(reply, NULL);
	}
	return NULL;
}

/* Ends the connection unless the reply is the answer that is due. */
static int match(struct ps_control *control, Perseas__Reply **reply, struct ps_error *error)
{
	if (sim_mistake_by_kind(control) ? sim_mistake_matches(control, *reply)
	                                 : ps_asked_match(&control->due, *reply) == PS_MATCH_ANSWER)
		return 0;
	if (sim_mistake_signed(control, *reply))
		return 0;
	perseas__reply__free_unpacked(*reply, NULL);
	*reply = NULL;
	control->ended = control->arrived = !sim_mistake_by_kind(control);
	control->strange = control->ended;
	return ps_error_set(error, PERSEAS_EPROTOCOL, "%s answered another question",
	                    control->mirror->address);
}

static int env_receive(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply,
                       int *fds, unsigned *count, struct ps_error *error)
{
	struct sim_owner *o = control->owner;
	const uint64_t begun = sim_owner_now(o);
	const uint64_t patience = until_ns > begun && until_ns != PS_NEVER ? until_ns - begun : 0;
	struct sim_wait wait = { .until = until_ns, .sleeper = -1, .flag = &control->arrived };
	const struct sim_message *message = NULL;

	*count = 0;
	*reply = NULL;
	control->last_progress_at = begun;
	do {
		while (!control->arrived && !o->dead && sim_owner_now(o) < wait.until) {
			sim_task_block(o, &wait);
			if (control->last_progress_at + patience > wait.until)
				wait.until = control->last_progress_at + patience;
		}
		if (o->dead)
			return unreachable(control, "this process is dead", error);
		if (control->first)
			*reply = next_reply(control, &message);
	} while (!*reply && !control->arrived && sim_owner_now(o) < wait.until);
	if (!*reply)
		return no_reply(control, reply, error);
	if (match(control, reply, error))
		return error->code;
	take_signs(control);
	sim_reply_note(control, *reply);
	shift_reply(*reply, shift_of(o));
	sim_mistake_reply(control, *reply);
	*count = sim_memory_numbers(message->with, fds);
	return 0;
}

static bool env_answered(struct ps_control *control)
{
	return control->arrived || control->owner->dead;
}

static bool env_ended(struct ps_control *control)
{
	/* Bytes that nobody asked for end the connection, too. */
	return control->first
	               ? !control->due.due && !sim_mistake_by_kind(control) && !control->forged
	               : control->ended;
}

static int env_control_fd(struct ps_control *control)
{
	return control->fd;
}

static bool env_control_waits(struct ps_control *control, struct pollfd *fd)
{
	*fd = (struct pollfd){ control->fd, POLLIN, 0 };
	return true;
}

static void env_trace(struct ps_env *env, const char *line)
{
	sim_trace(of(env)->world, "owner %u: %s", of(env)->index, line);
}

static uint64_t env_worked_at(struct ps_control *control)
{
	return control->signed_at;
}

static bool env_silent(struct ps_control *control)
{
	return control->silent;
}

static void env_disconnect(struct ps_control *control)
{
	if (!control || control->closed)
		return;
	control->closed = true;
	if (!control->owner->dead)
		sim_pipe_send(&control->out,
		              sim_message_new(control->owner->world, SIM_END, NULL, 0));
}

/* --- how connections end --- */

static uint64_t learning(struct sim_world *w)
{
	static const uint64_t most[] = { SIM_MS, 50 * SIM_MS, 3000 * SIM_MS };

	return sim_below(w, most[sim_below(w, 3)]);
}

static void client_learns(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct ps_control *control = arg;

	(void)w;
	(void)ticket;
	control->ended = true;
	control->arrived = true;
	sim_owner_poke(control->owner);
}

void sim_control_reset(struct ps_control *control)
{
	struct sim_world *w = control->owner->world;

	if (control->out.broken)
		return;
	sim_pipe_break(&control->out);
	sim_pipe_break(&control->in);
	sim_at(w, w->now + learning(w), client_learns, control, 0);
	sim_at(w, w->now + learning(w), sim_mirror_ended, control, 0);
}

void sim_control_lost(struct ps_control *control)
{
	struct sim_world *w = control->owner->world;

	sim_pipe_break(&control->in);
	sim_at(w, w->now + sim_between(w, 300 * SIM_MS, 5000 * SIM_MS), client_learns, control, 0);
}

void sim_controls_died(struct sim_owner *o, bool silent)
{
	struct sim_world *w = o->world;

	for (struct ps_control *control = o->controls; control; control = control->next) {
		if (control->closed)
			continue;
		if (silent) {
			sim_pipe_break(&control->out);
			sim_at(w, w->now + sim_between(w, 500 * SIM_MS, 5000 * SIM_MS),
			       sim_mirror_ended, control, 0);
		} else {
			sim_pipe_send(&control->out, sim_message_new(w, SIM_END, NULL, 0));
		}
	}
}

static const struct ps_fabric *env_fabric(struct ps_env *env, const struct ps_address *address,
                                          const Perseas__Grant *grant, unsigned tried)
{
	struct sim_mirror *m = sim_misled_leads(sim_mirror_find(of(env)->world, address));
	const struct ps_fabric *direct = sim_cable_fabric(m);

	if (direct && !tried)
		return direct;
	if (tried > (direct != NULL) ||
	    (tried && sim_mistake_is(of(env)->world, SIM_MISTAKE_INSISTS)))
		return NULL;
	/* The address may lead to another host's mirror than when it was dialled. */
	if (sim_aim_is(of(env)->world, &sim_misled_aim))
		return grant->descriptors ? &sim_fabric_shared : &sim_fabric_stream;
	return of(env)->local[m->index] ? &sim_fabric_shared : &sim_fabric_stream;
}

static void env_free(struct ps_env *env)
{
	(void)env;
}

const struct ps_env_ops sim_env_ops = {
	.now = env_now,
	.clock = env_clock,
	.random = env_random,
	.pause = env_pause,
	.wake = env_wake,
	.wait = env_wait,
	.broadcast = env_broadcast,
	.barrier = env_barrier,
	.thread = env_thread,
	.spawn = env_spawn,
	.join = env_join,
	.connect = env_connect,
	.send = env_send,
	.receive = env_receive,
	.answered = env_answered,
	.ended = env_ended,
	.control_fd = env_control_fd,
	.fill_control_pollfd = env_control_waits,
	.last_progress_at = env_worked_at,
	.expect_heartbeats = sim_hear,
	.silent = env_silent,
	.trace = env_trace,
	.disconnect = env_disconnect,
	.fabric = env_fabric,
	.free = env_free,
};
