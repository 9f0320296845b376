/*
 * round.c - see round.h.
 */
#include "round.h"

#include "screen.h"
#include "../../host/socket.h"
#include "../../../proto/control/envelope.h"

#include <stdlib.h>

#define STEP_NS ((uint64_t)20000000) /* between looks at connections that are made */

/* --- who is asked --- */

enum ps_exit ps_rounds_add(struct ps_rounds *rounds, const char *list, bool added,
                           const struct perseas_options *options)
{
	struct ps_round *round = ps_or_end(calloc(1, sizeof(*round)));
	enum ps_exit status = ps_panel_open(&round->panel, list, options);

	if (status) {
		free(round);
		return status;
	}
	round->panel.timeout_ms = 0;
	round->added = added;
	rounds->timeout_ns = (uint64_t)options->connect_timeout_ms * 1000000;
	rounds->total += round->panel.count;
	rounds->list = ps_or_end(
		realloc(rounds->list, (rounds->count + 1) * sizeof(struct ps_round *)));
	rounds->list[rounds->count++] = round;
	/* One more, for the keys. */
	rounds->fds = ps_or_end(realloc(rounds->fds, (rounds->total + 1) * sizeof(*rounds->fds)));
	return PS_EXIT_OK;
}

static void reply_forget(Perseas__Reply **reply)
{
	if (*reply)
		perseas__reply__free_unpacked(*reply, NULL);
	*reply = NULL;
}

void ps_rounds_close(struct ps_rounds *rounds)
{
	for (unsigned k = 0; k < rounds->count; k++) {
		struct ps_round *round = rounds->list[k];

		for (unsigned i = 0; i < round->panel.count; i++) {
			reply_forget(&round->lists[i]);
			reply_forget(&round->hosts[i]);
		}
		ps_panel_close(&round->panel);
		free(round);
	}
	free(rounds->list);
	free(rounds->fds);
	*rounds = (struct ps_rounds){ 0 };
}

static uint64_t round_now(const struct ps_round *round)
{
	return round->panel.env->ops->now(round->panel.env);
}

uint64_t ps_rounds_now(const struct ps_rounds *rounds)
{
	return round_now(rounds->list[0]);
}

/* --- asking --- */

static unsigned round_send(struct ps_round *round, unsigned i, bool has_hosts)
{
	Perseas__HostRequest ask = PERSEAS__HOST_REQUEST__INIT;
	const Perseas__Request host = PS_REQUEST(host, HOST, &ask);

	ps_panel_connect(&round->panel, i);
	if (!ps_panel_send(&round->panel, i, ps_panel_list_request()))
		return 0;
	if (!has_hosts)
		return 1;
	return ps_panel_send(&round->panel, i, &host) ? 2 : 0;
}

static void round_ask(struct ps_round *round, unsigned i, bool has_hosts)
{
	round->due[i] = round_send(round, i, has_hosts);
	round->asked_ns[i] = round->due[i] ? round_now(round) : 0;
	round->failed[i] = !round->due[i];
	if (round->failed[i]) {
		reply_forget(&round->lists[i]);
		reply_forget(&round->hosts[i]);
	}
}

void ps_rounds_ask(struct ps_rounds *rounds)
{
	for (unsigned k = 0; k < rounds->count; k++) {
		struct ps_round *round = rounds->list[k];

		for (unsigned i = 0; i < round->panel.count; i++) {
			round->fresh[i] = false;
			if (!round->asked_ns[i])
				round_ask(round, i, rounds->has_hosts);
		}
	}
}

/* --- answers --- */

/* The list, and then the host. What it told before is of no more use. */
static void round_keep(struct ps_round *round, unsigned i, Perseas__Reply *reply, bool list)
{
	Perseas__Reply **kept = list ? &round->lists[i] : &round->hosts[i];

	reply_forget(kept);
	*kept = reply;
	if (!list)
		return;
	round->failed[i] = !reply;
	round->fresh[i] = reply != NULL;
	round->heard_ns[i] = round_now(round);
}

/* The connection is over, and with it all answers that were due. */
static void round_fail(struct ps_round *round, unsigned i)
{
	round->due[i] = 0;
	round->asked_ns[i] = 0;
	reply_forget(&round->hosts[i]);
	round_keep(round, i, NULL, true);
}

/* The next answer is there, or will not come: this does not wait. */
static void round_take(struct ps_round *round, unsigned i, bool has_hosts)
{
	const bool list = !has_hosts || round->due[i] == 2;
	Perseas__Reply *reply = ps_panel_receive(&round->panel, i);

	if (!ps_panel_answered(&round->panel, i)) {
		round_fail(round, i);
		return;
	}
	round_keep(round, i, reply, list);
	if (!--round->due[i])
		round->asked_ns[i] = 0;
}

/* Is its next answer there, or is it too late for it? */
static bool round_is_due(const struct ps_rounds *rounds, const struct ps_round *round, unsigned i)
{
	if (!round->asked_ns[i])
		return false;
	return round->panel.env->ops->answered(round->panel.controls[i]) ||
	       round_now(round) - round->asked_ns[i] >= rounds->timeout_ns;
}

bool ps_rounds_collect(struct ps_rounds *rounds)
{
	bool all = true;

	for (unsigned k = 0; k < rounds->count; k++) {
		struct ps_round *round = rounds->list[k];

		for (unsigned i = 0; i < round->panel.count; i++) {
			while (round_is_due(rounds, round, i))
				round_take(round, i, rounds->has_hosts);
			all = all && !round->asked_ns[i];
		}
	}
	return all;
}

bool ps_rounds_rest(const struct ps_rounds *rounds, uint64_t until_ns)
{
	const uint64_t step = ps_rounds_now(rounds) + STEP_NS;
	unsigned count = 0;

	rounds->fds[count++] = (struct pollfd){ ps_screen_keys(), POLLIN, 0 };
	for (unsigned k = 0; k < rounds->count; k++) {
		const struct ps_round *round = rounds->list[k];
		const struct ps_panel *panel = &round->panel;

		for (unsigned i = 0; i < panel->count; i++) {
			int fd = round->asked_ns[i]
			                 ? panel->env->ops->control_fd(panel->controls[i])
			                 : -1;

			/* One that is not yet connected has none to wait for. */
			if (round->asked_ns[i] && fd < 0 && step < until_ns)
				until_ns = step;
			if (fd >= 0)
				rounds->fds[count++] = (struct pollfd){ fd, POLLIN, 0 };
		}
	}
	ps_poll(rounds->fds, count, until_ns);
	return rounds->fds[0].revents != 0;
}

/* --- reasons --- */

static void round_explain(struct ps_round *round, unsigned i)
{
	struct ps_error *error = &round->errors[i];

	if (round->failed[i])
		*error = round->panel.errors[i];
	else if (round->fresh[i])
		*error = (struct ps_error){ 0 };
	else if (!error->code)
		ps_error_set(error, PERSEAS_OK, "%s has not answered for %.1f s",
		             round->panel.addresses[i].text,
		             (double)(round_now(round) - round->asked_ns[i]) / 1e9);
}

void ps_rounds_explain(struct ps_rounds *rounds)
{
	for (unsigned k = 0; k < rounds->count; k++)
		for (unsigned i = 0; i < rounds->list[k]->panel.count; i++)
			round_explain(rounds->list[k], i);
}
