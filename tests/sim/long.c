/*
 * long.c - a mirror that is busy with one request for many simulated milliseconds. mirror.c hands
 * such requests over. It never answers by itself: the store logic does, when the time has passed.
 */
#include "long.h"

#include "mirror.h"
#include "schedule.h"

enum { SIGNS_MAX = 12 };

static bool takes_long(struct sim_world *w)
{
	return !w->schedule->ending && w->schedule->work && sim_chance(w, w->schedule->work);
}

static uint64_t id_of(struct ps_control *control, const struct sim_message *message)
{
	const char *why = "";
	Perseas__Request *request = ps_request_unpack(message->bytes + 4, message->len - 4, &why);
	uint64_t id;

	if (!request)
		sim_fail(control->mirror->world, "a request is not valid: %s", why);
	id = request->id;
	perseas__request__free_unpacked(request, NULL);
	return id;
}

void sim_long_sign(struct ps_control *control, uint64_t done)
{
	Perseas__Reply reply = PERSEAS__REPLY__INIT;
	Perseas__WorkingReply working = PERSEAS__WORKING_REPLY__INIT;
	struct sim_world *w = control->mirror->world;
	uint8_t *bytes;
	size_t len;

	working.done = done;
	working.total = control->signs_due;
	reply.id = id_of(control, control->job);
	reply.body_case = PERSEAS__REPLY__BODY_WORKING;
	reply.working = &working;
	if (ps_reply_pack(&reply, &bytes, &len))
		sim_fail(w, "a sign of progress cannot be packed");
	sim_count(w, SIM_SIGNS, 1);
	sim_pipe_send(&control->in, sim_message_new(w, SIM_SIGN, bytes, len));
	free(bytes);
}

static void begin(struct ps_control *control, struct sim_message *message);

void sim_long_end(struct ps_control *control)
{
	sim_mirror_handle(control, control->job);
	control->job = NULL;
	while (control->waiting && !control->job && control->server.open) {
		struct sim_message *next = control->waiting;

		control->waiting = next->next;
		begin(control, next);
	}
}

/* Drops the request if its client or the mirror is gone. */
static void work(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct ps_control *control = arg;

	(void)ticket;
	if (!control->server.open)
		return;
	if (control->signs < control->signs_due) {
		sim_long_sign(control, ++control->signs);
		sim_at(w, w->now + sim_between(w, 20, 400) * SIM_MS, work, control, 0);
		return;
	}
	sim_long_end(control);
}

static void begin(struct ps_control *control, struct sim_message *message)
{
	struct sim_world *w = control->mirror->world;

	if (w->schedule->held) {
		control->job = message;
		return;
	}
	if (!takes_long(w)) {
		sim_mirror_handle(control, message);
		return;
	}
	sim_trace(w, "mirror %u: request %d of owner %u takes long", control->mirror->index,
	          (int)message->a, control->owner->index);
	sim_count(w, SIM_LONG, 1);
	control->job = message;
	control->signs = 0;
	control->signs_due = sim_between(w, 1, SIGNS_MAX);
	sim_at(w, w->now + sim_between(w, 20, 400) * SIM_MS, work, control, 0);
}

void sim_long_take(struct ps_control *control, struct sim_message *message)
{
	struct sim_message **last = &control->waiting;

	if (!control->job) {
		begin(control, message);
		return;
	}
	while (*last)
		last = &(*last)->next;
	message->next = NULL;
	*last = message;
}
