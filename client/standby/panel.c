/*
 * panel.c - control requests to several mirrors in parallel.
 */
#include "panel.h"

#include "../../proto/control/envelope.h"
#include "../host/asked.h"

#include <assert.h>
#include <poll.h>
#include <string.h>

enum {
	LATE_MS = 500, /* for those that are behind when others have answered */
	LATE = 10,     /* times as long as these took */
	TICK_MS = 20,  /* a connection that is being made may go on without a sign */
};

static void connect_given(struct ps_panel *panel)
{
	panel->given = panel->count;
	for (unsigned i = 0; i < panel->count; i++)
		ps_panel_connect(panel, i);
}

int ps_panel_begin(struct ps_panel *panel, struct ps_env *env, const char *mirrors,
                   uint32_t timeout_ms, struct ps_error *error)
{
	*panel = (struct ps_panel){ .env = env, .timeout_ms = timeout_ms };
	if (ps_env_list(env, mirrors, timeout_ms, panel->addresses, &panel->count, error))
		return error->code;
	connect_given(panel);
	return 0;
}

int ps_panel_begin_known(struct ps_panel *panel, struct ps_env *env, const char *mirrors,
                         uint32_t timeout_ms, struct ps_list_lookup **lookup,
                         struct ps_error *error)
{
	*panel = (struct ps_panel){ .env = env, .timeout_ms = timeout_ms };
	if (ps_env_list_known(env, mirrors, timeout_ms, panel->addresses, &panel->count, lookup,
	                      error))
		return error->code;
	connect_given(panel);
	return 0;
}

void ps_panel_connect(struct ps_panel *panel, unsigned i)
{
	if (panel->controls[i])
		return;
	panel->errors[i].code = 0;
	panel->controls[i] = panel->env->ops->connect(panel->env, &panel->addresses[i],
	                                              &panel->errors[i]);
}

static void forget_replies(struct ps_panel *panel)
{
	for (unsigned i = 0; i < panel->count; i++) {
		perseas__reply__free_unpacked(panel->replies[i], NULL);
		panel->replies[i] = NULL;
		/* A refusal is of one request; a connection that broke is for good. */
		if (panel->controls[i])
			panel->errors[i].code = 0;
	}
}

static void panel_disconnect(struct ps_panel *panel, unsigned i)
{
	panel->env->ops->disconnect(panel->controls[i]);
	panel->controls[i] = NULL;
}

/* Takes one answer; *error is set when there is none of use. */
static Perseas__Reply *panel_receive_until(struct ps_panel *panel, unsigned i, uint64_t until_ns,
                                           struct ps_error *error)
{
	Perseas__Reply *reply = NULL;

	if (panel->env->ops->receive(panel->controls[i], until_ns, &reply, NULL, NULL, error)) {
		panel_disconnect(panel, i);
		return NULL;
	}
	ps_daemon_note(panel->daemons[i], reply);
	if (!ps_asked_refusal(reply, panel->addresses[i].text, error))
		return reply;
	perseas__reply__free_unpacked(reply, NULL);
	return NULL;
}

/* Takes what has come. How many are not answered yet: *fds tells when they may be. */
static unsigned take_answers(struct ps_panel *panel, uint32_t *awaited, uint64_t until_ns,
                             struct pollfd fds[PS_MIRRORS_MAX], unsigned *count)
{
	unsigned rest = 0;

	*count = 0;
	for (unsigned i = 0; i < panel->count; i++) {
		if (!(*awaited >> i & 1))
			continue;
		if (panel->env->ops->answered(panel->controls[i])) {
			*awaited &= ~((uint32_t)1 << i);
			panel->replies[i] = panel_receive_until(panel, i, until_ns,
			                                        &panel->errors[i]);
			continue;
		}
		rest++;
		*count += panel->env->ops->control_waits(panel->controls[i], &fds[*count]);
	}
	return rest;
}

/* Until all of these have answered, or enough have and the others had time to. Those that are
 * left. */
static uint32_t await_enough(struct ps_panel *panel, uint32_t awaited, uint64_t *until_ns)
{
	const struct ps_env_ops *ops = panel->env->ops;
	const uint64_t began_ns = ops->now(panel->env);
	struct pollfd fds[PS_MIRRORS_MAX];
	uint64_t now_ns, late_ns, tick_ns;
	unsigned count;
	bool hurries = false;

	while (take_answers(panel, &awaited, *until_ns, fds, &count)) {
		now_ns = ops->now(panel->env);
		if (!hurries && panel->enough(panel->enough_arg, panel)) {
			hurries = true;
			late_ns = LATE * (now_ns - began_ns);
			late_ns = now_ns + (late_ns > ps_ms(LATE_MS) ? late_ns : ps_ms(LATE_MS));
			*until_ns = late_ns < *until_ns ? late_ns : *until_ns;
		}
		if (now_ns >= *until_ns)
			break;
		tick_ns = now_ns + ps_ms(TICK_MS);
		ops->pause(panel->env, PS_UNWOKEN, fds, count,
		           tick_ns < *until_ns ? tick_ns : *until_ns);
	}
	return awaited;
}

void ps_panel_ask(struct ps_panel *panel, const Perseas__Request *const requests[PS_MIRRORS_MAX])
{
	uint32_t awaited = 0;
	uint64_t until_ns;

	forget_replies(panel);
	until_ns = panel->env->ops->now(panel->env) + ps_ms(panel->timeout_ms);
	for (unsigned i = 0; i < panel->count; i++) {
		if (!requests[i] || !panel->controls[i])
			continue;
		if (panel->env->ops->send(panel->controls[i], requests[i], &panel->errors[i]))
			panel_disconnect(panel, i);
		else
			awaited |= (uint32_t)1 << i;
	}
	if (panel->enough)
		awaited = await_enough(panel, awaited, &until_ns);
	for (unsigned i = 0; i < panel->count; i++)
		if (awaited >> i & 1)
			panel->replies[i] = panel_receive_until(panel, i, until_ns,
			                                        &panel->errors[i]);
}

bool ps_panel_send(struct ps_panel *panel, unsigned i, const Perseas__Request *request)
{
	if (panel->controls[i] &&
	    panel->env->ops->send(panel->controls[i], request, &panel->errors[i]))
		panel_disconnect(panel, i);
	return panel->controls[i] != NULL;
}

Perseas__Reply *ps_panel_receive(struct ps_panel *panel, unsigned i)
{
	uint64_t until_ns = panel->env->ops->now(panel->env) + ps_ms(panel->timeout_ms);

	if (!panel->controls[i])
		return NULL;
	return panel_receive_until(panel, i, until_ns, &panel->errors[i]);
}

void ps_panel_ask_all(struct ps_panel *panel, const Perseas__Request *request)
{
	const Perseas__Request *requests[PS_MIRRORS_MAX];

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		requests[i] = request;
	ps_panel_ask(panel, requests);
}

void ps_panel_forget(struct ps_panel *panel, unsigned i)
{
	const unsigned behind = panel->count - i - 1;

	assert(i >= panel->given && i < panel->count && !panel->replies[i]);
	panel_disconnect(panel, i);
	memmove(&panel->addresses[i], &panel->addresses[i + 1],
	        behind * sizeof(panel->addresses[0]));
	memmove(&panel->controls[i], &panel->controls[i + 1], behind * sizeof(panel->controls[0]));
	memmove(&panel->daemons[i], &panel->daemons[i + 1], behind * sizeof(panel->daemons[0]));
	memmove(&panel->replies[i], &panel->replies[i + 1], behind * sizeof(panel->replies[0]));
	memmove(&panel->errors[i], &panel->errors[i + 1], behind * sizeof(panel->errors[0]));
	panel->count--;
	panel->controls[panel->count] = NULL;
	memset(panel->daemons[panel->count], 0, sizeof(panel->daemons[0]));
	panel->replies[panel->count] = NULL;
	panel->errors[panel->count].code = 0;
}

void ps_panel_end(struct ps_panel *panel)
{
	forget_replies(panel);
	for (unsigned i = 0; i < panel->count; i++)
		panel_disconnect(panel, i);
}

const uint8_t *ps_panel_daemon(const struct ps_panel *panel, unsigned i)
{
	return ps_daemon_told(panel->daemons[i]);
}

bool ps_panel_answered(const struct ps_panel *panel, unsigned i)
{
	return panel->controls[i] != NULL;
}
