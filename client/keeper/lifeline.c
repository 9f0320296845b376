/*
 * lifeline.c - asks for a lifeline when a session is up, entrusts it once the mirror has answered,
 * and ends it after the session. session.c and keeper.c call this. It must never wait, and nothing
 * may depend on it.
 */
#include "lifeline.h"

#include "../core/mirror.h"
#include "rpc.h"

#include <assert.h>
#include <string.h>

/* The lifeline is requested this long after the session is up, so that the first commit of a new
 * owner comes first. */
#define BEGIN_DELAY ps_ms(100)

void ps_lifeline_note_grant(struct ps_mirror *m, const Perseas__Grant *grant)
{
	m->lifeline.is_possible = !grant->descriptors && grant->token.len == PS_ID_SIZE;
	if (m->lifeline.is_possible)
		memcpy(m->lifeline.session_token, grant->token.data, PS_ID_SIZE);
}

void ps_lifeline_disconnect(struct perseas *p, struct ps_mirror *m)
{
	p->env->ops->disconnect(m->lifeline.control);
	m->lifeline.control = NULL;
	m->lifeline.is_request_over = false;
	m->lifeline.request_at = 0;
}

static bool can_have_lifeline(const struct perseas *p, const struct ps_mirror *m)
{
	return m->lifeline.is_possible && p->env->has_lifelines;
}

void ps_lifeline_schedule(struct perseas *p, struct ps_mirror *m)
{
	assert(!m->lifeline.control);
	if (can_have_lifeline(p, m))
		m->lifeline.request_at = ps_now(p) + BEGIN_DELAY;
}

static void ask_to_open_lifeline(struct perseas *p, struct ps_mirror *m)
{
	Perseas__LifelineRequest ask = PERSEAS__LIFELINE_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(lifeline, LIFELINE, &ask);
	struct ps_lifeline *line = &m->lifeline;
	struct ps_error ignored = { 0 };

	assert(line->is_possible && !line->control);
	line->request_at = 0;
	ask.token = (ProtobufCBinaryData){ PS_ID_SIZE, line->session_token };
	line->request_times_out_at = ps_answer_deadline(p);
	line->control = p->env->ops->connect(p->env, &m->address, &ignored);
	if (line->control && p->env->ops->send(line->control, &request, &ignored))
		ps_lifeline_disconnect(p, m);
}

/* Takes the mirror's answer to the request for a lifeline. If it was granted, hands the connection
 * to an idle thread (env.h, `give_to_lifeline_thread`). On failure the connection stays open until
 * the session is over: the mirror may have granted the lifeline, and would take its end for the end
 * of this process. */
static void take_lifeline_answer(struct perseas *p, struct ps_lifeline *line)
{
	struct ps_error ignored = { 0 };
	Perseas__Reply *reply;
	unsigned count;

	line->is_request_over = true;
	if (p->env->ops->receive(line->control, line->request_times_out_at, &reply, NULL, &count,
	                         &ignored))
		return;
	if (reply->status == PERSEAS__STATUS__STATUS_OK)
		(void)p->env->ops->give_to_lifeline_thread(line->control);
	perseas__reply__free_unpacked(reply, NULL);
}

void ps_lifelines_step(struct perseas *p)
{
	ps_assert_admin(p);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		struct ps_lifeline *line = &m->lifeline;

		if (line->request_at && ps_now(p) >= line->request_at)
			ask_to_open_lifeline(p, m);
		if (line->control && !line->is_request_over &&
		    (p->env->ops->answered(line->control) ||
		     ps_now(p) >= line->request_times_out_at))
			take_lifeline_answer(p, line);
	}
}

uint64_t ps_lifeline_due_at(const struct ps_mirror *m)
{
	const struct ps_lifeline *line = &m->lifeline;

	if (line->request_at)
		return line->request_at;
	return line->control && !line->is_request_over ? line->request_times_out_at : PS_NEVER;
}

bool ps_lifeline_fill_pollfd(const struct perseas *p, const struct ps_mirror *m, struct pollfd *fd)
{
	return m->lifeline.control && !m->lifeline.is_request_over &&
	       p->env->ops->fill_control_pollfd(m->lifeline.control, fd);
}
