/*
 * cmd_top.c - perseas top: stores that run, again and again. Mirrors are asked at the same time,
 * and what one of them answers late, or not at all, holds up neither the others nor the keys.
 */
#include "command.h"
#include "top/screen.h"
#include "top/top.h"
#include "../host/socket.h"

#include <stdlib.h>
#include <string.h>

#define STEP_NS ((uint64_t)20000000)      /* between looks at connections that are made */
#define PATIENCE_NS ((uint64_t)500000000) /* for those that answer late, before it is shown */

struct round {
	struct ps_panel panel;
	uint64_t timeout_ns; /* after so long without an answer a connection is given up */
	uint64_t asked_ns[PS_MIRRORS_MAX]; /* 0: no answer is due */
	bool failed[PS_MIRRORS_MAX];       /* in this round: it is asked again in the next */
	Perseas__Reply *replies[PS_MIRRORS_MAX];
	struct ps_top_look look;
};

static uint64_t now_of(const struct round *r)
{
	return r->panel.env->ops->now(r->panel.env);
}

/* --- asking --- */

static void round_forget(struct round *r, unsigned i)
{
	if (r->replies[i])
		perseas__reply__free_unpacked(r->replies[i], NULL);
	r->replies[i] = NULL;
	r->look.told[i] = NULL;
}

/* A new round: all are asked that do not yet owe an answer. */
static void round_ask(struct round *r)
{
	for (unsigned i = 0; i < r->panel.count; i++) {
		round_forget(r, i);
		r->failed[i] = false;
		if (r->asked_ns[i])
			continue;
		ps_panel_connect(&r->panel, i);
		if (ps_panel_send(&r->panel, i, ps_panel_list_request()))
			r->asked_ns[i] = now_of(r);
		else
			r->failed[i] = true;
	}
}

/* The answer is there, or will not come: this does not wait. */
static void round_take(struct round *r, unsigned i)
{
	r->asked_ns[i] = 0;
	r->replies[i] = ps_panel_receive(&r->panel, i);
	r->failed[i] = !r->replies[i];
	if (!r->replies[i])
		return;
	r->look.told[i] = r->replies[i]->list;
	r->look.heard_ns[i] = now_of(r);
}

/* Takes the answers that are there. Have all answered that will in this round? */
static bool round_collect(struct round *r)
{
	bool all = true;

	for (unsigned i = 0; i < r->panel.count; i++) {
		if (!r->asked_ns[i])
			continue;
		if (r->panel.env->ops->answered(r->panel.controls[i]) ||
		    now_of(r) - r->asked_ns[i] >= r->timeout_ns)
			round_take(r, i);
		else
			all = false;
	}
	return all;
}

/* Until an answer, a key, a signal, or until_ns. Are there keys? */
static bool round_rest(const struct round *r, uint64_t until_ns)
{
	struct pollfd fds[PS_MIRRORS_MAX + 1];
	const uint64_t step = now_of(r) + STEP_NS;
	unsigned count = 0;

	fds[count++] = (struct pollfd){ ps_screen_keys(), POLLIN, 0 };
	for (unsigned i = 0; i < r->panel.count; i++) {
		int fd = r->asked_ns[i] ? r->panel.env->ops->control_fd(r->panel.controls[i]) : -1;

		/* One that is not yet connected has none to wait for. */
		if (r->asked_ns[i] && fd < 0 && step < until_ns)
			until_ns = step;
		if (fd >= 0)
			fds[count++] = (struct pollfd){ fd, POLLIN, 0 };
	}
	ps_poll(fds, count, until_ns);
	return fds[0].revents != 0;
}

/* --- showing --- */

struct live {
	struct round round;
	struct ps_top top;
	const struct ps_args *args;
	bool on_screen;
};

/* Why there is no answer. What the attempt before came to is kept while the next one goes on. */
static void round_explain(struct round *r)
{
	for (unsigned i = 0; i < r->panel.count; i++) {
		struct ps_error *error = &r->look.errors[i];

		if (r->failed[i])
			*error = r->panel.errors[i];
		else if (r->replies[i])
			*error = (struct ps_error){ 0 };
		else if (!error->code)
			ps_error_set(error, PERSEAS_OK, "%s has not answered for %.1f s",
			             r->panel.addresses[i].text,
			             (double)(now_of(r) - r->asked_ns[i]) / 1e9);
	}
}

static unsigned count_answering(const struct ps_top_look *look)
{
	unsigned count = 0;

	for (unsigned i = 0; i < look->count; i++)
		count += look->told[i] != NULL;
	return count;
}

static void live_draw(const struct live *live)
{
	const struct ps_top_look *look = &live->round.look;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out) {
		fprintf(out,
		        "perseas top: %u of %u mirrors answer, %u store%s; every %g s, q "
		        "quits\n\n",
		        count_answering(look), look->count, live->top.count,
		        ps_plural(live->top.count), (double)live->args->interval_ms / 1000);
		ps_top_print(&live->top, look, out);
		fclose(out);
	}
	if (text)
		ps_screen_draw(text);
	free(text);
}

static void live_print(const struct live *live)
{
	const struct ps_top_look *look = &live->round.look;
	struct ps_env *env = live->round.panel.env;
	const uint64_t clock = env->ops->clock(env);
	char time[PS_TIME_TEXT];

	if (live->args->json) {
		ps_top_json(&live->top, look, clock, stdout);
	} else {
		printf("%s: %u of %u mirrors answer\n", ps_time_text(time, clock),
		       count_answering(look), look->count);
		ps_top_print(&live->top, look, stdout);
		/* One table is followed by another. */
		if (!live->args->once)
			putchar('\n');
	}
	fflush(stdout);
}

/* --- the verb --- */

static bool is_over(void)
{
	return ps_stopped() || ps_screen_quit() || ferror(stdout);
}

/* What was answered becomes what is shown. The first look has nothing to be compared with. */
static void live_show(struct live *live, bool first)
{
	round_explain(&live->round);
	ps_top_take(&live->top, &live->round.look);
	if (live->on_screen)
		live_draw(live);
	else if (!first)
		live_print(live);
}

/* One look, and then until the next one is due. */
static void live_look(struct live *live, bool first)
{
	struct round *r = &live->round;
	const uint64_t interval = (uint64_t)live->args->interval_ms * 1000000;
	const uint64_t start = now_of(r), next = start + interval;
	bool shown = false;

	round_ask(r);
	while (!is_over() && !(shown && (now_of(r) >= next || (live->args->once && !first)))) {
		const bool all = round_collect(r);
		bool keys;

		if (!shown && (all || now_of(r) >= start + PATIENCE_NS)) {
			live_show(live, first);
			shown = true;
			continue;
		}
		keys = round_rest(r, shown ? next : start + PATIENCE_NS);
		if (ps_screen_rest(keys) && shown)
			live_draw(live);
	}
}

/* Of a single look, as perseas ls ends. */
static enum ps_exit look_verdict(const struct ps_top_look *look)
{
	const unsigned count = count_answering(look);

	for (unsigned i = 0; i < look->count; i++)
		if (!look->told[i])
			ps_complain(PS_EXIT_OK, "%s", look->errors[i].text);
	if (count == look->count)
		return PS_EXIT_OK;
	return count ? PS_EXIT_PARTLY : PS_EXIT_FAILURE;
}

static void close_all(struct live *live)
{
	for (unsigned i = 0; i < live->round.panel.count; i++)
		round_forget(&live->round, i);
	ps_top_free(&live->top);
	ps_panel_close(&live->round.panel);
}

enum ps_exit ps_verb_top(const struct ps_args *args)
{
	struct live live = { .args = args };
	struct round *r = &live.round;
	enum ps_exit status = ps_panel_open(&r->panel, args->mirrors, &args->options);

	if (status)
		return status;
	r->timeout_ns = (uint64_t)args->options.connect_timeout_ms * 1000000;
	r->panel.timeout_ms = 0;
	r->look.count = r->panel.count;
	r->look.addresses = r->panel.addresses;
	live.on_screen = !args->once && !args->json && ps_screen_possible();
	if (live.on_screen)
		ps_screen_begin();
	else if (!args->once)
		ps_stop_catch();
	live_look(&live, true);
	do
		live_look(&live, false);
	while (!args->once && !is_over());
	ps_screen_end();
	if (args->once)
		status = look_verdict(&r->look);
	close_all(&live);
	return status;
}
