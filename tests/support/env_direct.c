/*
 * env_direct.c - the env without a network: clock, pauses and control connections, each request
 * handled before send returns. Unit tests open stores on it. It draws nothing by chance, so that
 * a test is the same each time.
 */
#include "env_direct_private.h"

#include "../../client/core/handle.h"
#include "../../client/host/control_errors.h"
#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile unsigned direct_inside;

/* An answer that was not received yet. A NULL reply: the connection broke first. */
struct answer {
	struct answer *next;
	Perseas__Reply *reply;
	uint64_t at; /* ns: when it is there */
};

/* ------------------------------------------------------------------ time and chance */

static uint64_t direct_now(struct ps_env *env)
{
	return of(env)->d->now += 1000;
}

static uint64_t direct_clock(struct ps_env *env)
{
	return of(env)->d->clock + of(env)->d->now;
}

static void direct_random(struct ps_env *env, void *bytes, size_t len)
{
	uint8_t *to = bytes;

	for (size_t i = 0; i < len; i++) {
		uint64_t z = of(env)->d->seed += 0x9e3779b97f4a7c15u;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		to[i] = (uint8_t)((z ^ (z >> 31)) >> 11);
	}
}

static void pass(struct direct *d, uint64_t until_ns)
{
	if (d->on_pause)
		d->on_pause(d->on_pause_arg);
	if (until_ns != PS_NEVER && until_ns > d->now)
		d->now = until_ns;
}

static void direct_pause(struct ps_env *env, enum ps_sleeper who, struct pollfd *fds,
                         unsigned count, uint64_t until_ns)
{
	struct direct_env *self = of(env);

	(void)fds;
	(void)count;
	/* The keeper was called for one round. In it, it holds admin. So was the collector. */
	if (who == PS_COLLECTOR ||
	    (who == PS_KEEPER && !((struct perseas *)self->arg)->is_admin_taken)) {
		((struct perseas *)self->arg)->is_stopping = true;
		return;
	}
	/* While a thread sleeps, the others run in its pause. */
	assert(who == PS_UNWOKEN || !self->asleep[who]);
	self->asleep[who] = true;
	pass(self->d, until_ns);
	self->asleep[who] = false;
}

static void direct_wake(struct ps_env *env, enum ps_sleeper who)
{
	of(env)->d->woken |= 1u << who;
}

static void direct_wait(struct ps_env *env, pthread_cond_t *cond, pthread_mutex_t *lock,
                        uint64_t until_ns)
{
	struct direct *d = of(env)->d;

	if (d->on_wait) {
		d->waits_for = cond;
		pthread_mutex_unlock(lock);
		d->on_wait(d);
		pthread_mutex_lock(lock);
		return;
	}
	/* No other thread could end this wait. */
	assert(until_ns != PS_NEVER);
	pass(d, until_ns);
}

static uintptr_t direct_thread(struct ps_env *env)
{
	return of(env)->d->thread;
}

static void direct_broadcast(struct ps_env *env, pthread_cond_t *cond)
{
	of(env)->d->broadcasts += cond == of(env)->d->watched;
	if (of(env)->d->on_broadcast)
		of(env)->d->on_broadcast(of(env)->d, cond);
}

static bool direct_barrier(struct ps_env *env)
{
	(void)env;
	return true;
}

static int direct_spawn(struct ps_env *env, enum ps_sleeper who, void (*fn)(void *arg), void *arg)
{
	of(env)->fn[who] = fn;
	of(env)->arg = arg;
	return of(env)->d->no_threads ? PERSEAS_ESYSTEM : 0;
}

static void direct_join(struct ps_env *env, enum ps_sleeper who)
{
	(void)env;
	(void)who;
}

void direct_keep_after(struct direct *d, perseas_t *p, uint64_t ns)
{
	struct direct_env *env = of(p->env);

	d->now += ns;
	env->fn[PS_KEEPER](env->arg);
	p->is_stopping = false;
}

void direct_collect(perseas_t *p)
{
	struct direct_env *env = of(p->env);

	env->fn[PS_COLLECTOR](env->arg);
	p->is_stopping = false;
}

void direct_keep(struct direct *d, perseas_t *p)
{
	direct_keep_after(d, p, 10000000000u);
}

/* ------------------------------------------------------------------ the mirror's end */

static void session_cut(struct session *session)
{
	struct ps_control *control = (struct ps_control *)session;

	for (struct ps_link *link = control->d->links; link; link = link->next)
		if (link->control == control && !link->dead)
			link->dead = control->d->cut_code;
}

static bool session_may_write(struct session *session)
{
	(void)session;
	return false;
}

static uint64_t session_clock(struct session *session)
{
	return ((struct ps_control *)session)->d->clock + ((struct ps_control *)session)->d->now;
}

static const struct ps_expiries *session_expiries(struct session *session)
{
	return &mirror_of((struct ps_control *)session)->expiries;
}

static const struct session_ops session_ops = {
	.cut = session_cut,
	.may_write = session_may_write,
	.clock_ns = session_clock,
	.expiries = session_expiries,
};

void direct_break(struct ps_control *control)
{
	struct direct *d = control->d;

	if (control->broken)
		return;
	control->broken = true;
	for (struct ps_link *link = d->links; link; link = link->next)
		if (link->control == control && !link->dead)
			link->dead = PS_LINK_BROKEN;
	if (d->mirrors[control->mirror].stores)
		store_session_ended(&control->session);
	if (d->tap && d->tap->ended)
		d->tap->ended(d->tap->arg, control->mirror, control->id);
}

static void complain(void *arg, const char *text)
{
	struct direct *d = arg;

	(void)text;
	d->complaints++;
}

void direct_start(struct direct *d, unsigned mirror)
{
	struct direct_mirror *m = &d->mirrors[mirror];

	assert(!m->stores);
	m->stores = stores_new(m->memory);
	assert(m->stores);
	stores_load(m->stores, complain, d);
}

void direct_cut(struct direct *d, unsigned mirror)
{
	for (struct ps_control *control = d->controls; control; control = control->next)
		if (control->mirror == mirror)
			direct_break(control);
}

void direct_hang(struct direct *d, unsigned mirror)
{
	d->mirrors[mirror].hung = true;
}

void direct_unhang(struct direct *d, unsigned mirror)
{
	d->mirrors[mirror].hung = false;
	for (struct ps_control *control = d->controls; control; control = control->next)
		if (control->mirror == mirror && control->owing)
			direct_break(control);
}

void direct_crash(struct direct *d, unsigned mirror)
{
	assert(d->mirrors[mirror].stores);
	direct_cut(d, mirror);
	stores_free(d->mirrors[mirror].stores);
	d->mirrors[mirror].stores = NULL;
}

/* ------------------------------------------------------------------ control connections */

static struct ps_control *direct_connect(struct ps_env *env, const struct ps_address *address,
                                         struct ps_error *error)
{
	struct direct *d = of(env)->d;
	unsigned mirror = direct_at(d, address);
	struct ps_control *control;

	assert(address->scheme == PS_SCHEME_SIM);
	if (mirror >= d->count || !d->mirrors[mirror].stores) {
		ps_error_set(error, PERSEAS_EUNREACHABLE, "%s: nobody listens there",
		             address->text);
		return NULL;
	}
	direct_inside++;
	control = calloc(1, sizeof(*control));
	direct_inside--;
	assert(control);
	control->session.ops = &session_ops;
	control->session.fabric = "sim";
	control->session.version = d->mirrors[mirror].version;
	control->d = d;
	control->mirror = mirror;
	control->id = d->session_count++;
	snprintf(control->session.peer, sizeof(control->session.peer), "owner-%u", control->id);
	snprintf(control->name, sizeof(control->name), "sim://%u", mirror);
	control->last = &control->answers;
	control->next = d->controls;
	d->controls = control;
	return control;
}

/* Returns true if this request breaks the connection. */
static bool breaks(struct direct_mirror *m, const Perseas__Request *request)
{
	if (!m->break_at || m->break_at != (int)request->body_case)
		return false;
	if (m->break_skip > 0) {
		m->break_skip--;
		return false;
	}
	m->break_at = 0;
	return true;
}

static Perseas__Reply *handle(struct ps_control *control, const uint8_t *bytes, size_t len)
{
	struct direct *d = control->d;
	struct stores *stores = d->mirrors[control->mirror].stores;
	struct control_reply packed;
	Perseas__Reply *reply;
	const char *why;

	if (d->tap && d->tap->request)
		d->tap->request(d->tap->arg, control->mirror, control->id, bytes, len);
	if (control_handle(stores, &control->session, "test", bytes, len, &packed) ||
	    control_copy_read(stores, &packed, 0))
		return NULL;
	assert(packed.fd_count == 0);
	reply = ps_reply_unpack(packed.bytes + 4, packed.len - 4, &why);
	if (!reply)
		fprintf(stderr, "a reply is not valid: %s\n", why);
	assert(reply);
	free(packed.bytes);
	return reply;
}

/* Returns the time at which the answer to a request sent now arrives. */
static uint64_t ready_at(const struct direct *d, const struct direct_mirror *m,
                         const Perseas__Request *request)
{
	return d->now + (m->slow_at == (int)request->body_case ? m->slow_ns : 0);
}

static void answer_request(struct ps_control *control, const Perseas__Request *request)
{
	struct direct_mirror *m = mirror_of(control);
	bool breaking = breaks(m, request);
	struct answer *answer = calloc(1, sizeof(*answer));
	uint8_t *bytes;
	size_t len;
	Perseas__Request numbered = *request;
	int rc;

	numbered.id = ps_asked_add(&control->asked, request->body_case);
	rc = ps_request_pack(&numbered, &bytes, &len);
	assert(answer && !rc);
	if (!breaking || m->reply_lost)
		answer->reply = handle(control, bytes + 4, len - 4);
	free(bytes);
	if (breaking) {
		if (answer->reply)
			perseas__reply__free_unpacked(answer->reply, NULL);
		answer->reply = NULL;
	}
	if (!answer->reply)
		direct_break(control);
	else if (m->slow_at)
		answer->at = ready_at(control->d, m, request);
	*control->last = answer;
	control->last = &answer->next;
}

static unsigned direct_version(struct ps_control *control)
{
	return control->session.version ? control->session.version : PS_PROTOCOL_VERSION;
}

static int direct_send(struct ps_control *control, const Perseas__Request *request,
                       struct ps_error *error)
{
	if (control->broken)
		return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s: the connection is broken",
		                    control->name);
	if (ps_version_needed_by(&request->base) > direct_version(control)) {
		direct_break(control);
		return ps_control_error_old_version(error, control->name, direct_version(control),
		                                    ps_version_needed_by(&request->base));
	}
	direct_inside++;
	control->owing |= mirror_of(control)->hung;
	if (!control->owing)
		answer_request(control, request);
	direct_inside--;
	return 0;
}

static int direct_receive(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply,
                          int *fds, unsigned *count, struct ps_error *error)
{
	struct answer *answer = control->answers;

	(void)fds;
	if (count)
		*count = 0;
	*reply = NULL;
	if (!answer && control->broken)
		return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s: the connection is broken",
		                    control->name);
	if (!answer && control->owing) {
		if (control->d->now < until_ns)
			control->d->now = until_ns;
		direct_break(control);
		return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s: no answer in time",
		                    control->name);
	}
	assert(answer);
	if (answer->at > until_ns) {
		direct_break(control);
		control->d->now = until_ns > control->d->now ? until_ns : control->d->now;
		return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s did not answer in time",
		                    control->name);
	}
	if (answer->at > control->d->now)
		control->d->now = answer->at;
	control->answers = answer->next;
	if (!control->answers)
		control->last = &control->answers;
	*reply = answer->reply;
	free(answer);
	if (*reply) {
		enum ps_match match = ps_asked_match(&control->asked, *reply);

		assert(match == PS_MATCH_ANSWER);
		(void)match;
		return 0;
	}
	control->asked.due--;
	return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s: the connection broke", control->name);
}

static bool direct_answered(struct ps_control *control)
{
	return control->broken || (control->answers && control->answers->at <= control->d->now);
}

static bool direct_ended(struct ps_control *control)
{
	return control->broken;
}

static void direct_expiries(struct ps_env *env, struct ps_expiries *expiries)
{
	*expiries = of(env)->d->expiries;
}

static void direct_shown_expiries(struct ps_control *control, struct ps_expiries *expiries)
{
	*expiries = mirror_of(control)->expiries;
}

static int direct_control_fd(struct ps_control *control)
{
	(void)control;
	return -1;
}

static bool direct_control_waits(struct ps_control *control, struct pollfd *fd)
{
	(void)control;
	(void)fd;
	return false;
}

static uint64_t direct_worked_at(struct ps_control *control)
{
	(void)control;
	return 0;
}

static void direct_disconnect(struct ps_control *control)
{
	struct ps_control **at;

	if (!control)
		return;
	direct_break(control);
	for (struct ps_link *link = control->d->links; link; link = link->next)
		if (link->control == control)
			link->control = NULL;
	for (at = &control->d->controls; *at != control; at = &(*at)->next)
		;
	*at = control->next;
	while (control->answers) {
		struct answer *answer = control->answers;

		control->answers = answer->next;
		if (answer->reply)
			perseas__reply__free_unpacked(answer->reply, NULL);
		free(answer);
	}
	free(control);
}

/* ------------------------------------------------------------------ making and ending */

static void direct_env_free(struct ps_env *env)
{
	free(env);
}

static void direct_trace(struct ps_env *env, const char *line)
{
	struct direct *d = of(env)->d;

	if (d->on_trace)
		d->on_trace(d->on_trace_arg, line);
}

static const struct ps_env_ops direct_ops = {
	.now = direct_now,
	.clock = direct_clock,
	.random = direct_random,
	.pause = direct_pause,
	.wake = direct_wake,
	.wait = direct_wait,
	.broadcast = direct_broadcast,
	.barrier = direct_barrier,
	.thread = direct_thread,
	.spawn = direct_spawn,
	.join = direct_join,
	.connect = direct_connect,
	.send = direct_send,
	.receive = direct_receive,
	.answered = direct_answered,
	.ended = direct_ended,
	.control_fd = direct_control_fd,
	.version = direct_version,
	.fill_control_pollfd = direct_control_waits,
	.last_progress_at = direct_worked_at,
	.disconnect = direct_disconnect,
	.expiries = direct_expiries,
	.shown_expiries = direct_shown_expiries,
	.fabric = direct_fabric,
	.trace = direct_trace,
	.free = direct_env_free,
};

struct ps_env *direct_env(struct direct *d)
{
	struct direct_env *env;

	direct_inside++;
	env = calloc(1, sizeof(*env));
	direct_inside--;
	assert(env);
	env->env.ops = &direct_ops;
	env->env.pager = d->pager;
	env->env.written = d->written;
	env->d = d;
	return &env->env;
}

const char *direct_list(const struct direct *d)
{
	return d->list;
}

int direct_create(struct direct *d, const char *store, const struct perseas_options *options,
                  struct ps_error *error)
{
	memset(error, 0, sizeof(*error));
	return ps_create(direct_env(d), store, direct_list(d), options, error);
}

int direct_open(struct direct *d, const char *store, const struct perseas_options *options,
                perseas_t **p, struct ps_error *error)
{
	memset(error, 0, sizeof(*error));
	return ps_open(direct_env(d), store, direct_list(d), options, p, error);
}

struct direct *direct_new(unsigned count, uint64_t seed)
{
	struct direct *d = calloc(1, sizeof(*d));
	size_t used = 0;

	if (!d)
		return NULL;
	d->count = count;
	d->staged = true;
	d->cut_code = PS_LINK_BROKEN;
	d->seed = seed;
	d->clock = 1000000000000000000u;
	/* Tests add mirrors. */
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		d->leads[i] = i;
	for (unsigned i = 0; i < count; i++) {
		d->mirrors[i].memory = memory_heap_new(0, seed + 1 + i);
		d->mirrors[i].writes_left = -1;
		assert(d->mirrors[i].memory);
		direct_start(d, i);
		used += (size_t)snprintf(d->list + used, sizeof(d->list) - used, "%ssim://%u",
		                         i ? "," : "", i);
	}
	return d;
}

void direct_free(struct direct *d)
{
	if (!d)
		return;
	assert(!d->controls && !d->links);
	for (unsigned i = 0; i < d->count; i++) {
		stores_free(d->mirrors[i].stores);
		memory_heap_free(d->mirrors[i].memory);
	}
	free(d);
}
