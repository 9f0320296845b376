/*
 * cmd_top.c - perseas top: stores that run, or a whole fleet, again and again. Mirrors are asked at
 * the same time, and what one of them answers late, or not at all, holds up neither the others nor
 * the keys.
 */
#include "command.h"
#include "top/fleet_top.h"
#include "top/round.h"
#include "top/screen.h"
#include "top/top.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS ((uint64_t)500000000) /* for those that answer late, before it is shown */

/* --- showing --- */

struct live {
	struct ps_rounds rounds;
	struct ps_top_look look; /* of stores, which are of one list: of the only round */
	struct ps_top top;
	struct ps_fleet_top fleet; /* with --all */
	const struct ps_args *args;
	bool on_screen;
};

/* What the mirrors of the list answered in this round. */
static void live_fill_look(struct live *live)
{
	const struct ps_round *round = live->rounds.list[0];
	struct ps_top_look *look = &live->look;

	look->count = round->panel.count;
	look->addresses = round->panel.addresses;
	for (unsigned i = 0; i < look->count; i++) {
		look->told[i] = round->fresh[i] ? round->lists[i]->list : NULL;
		look->heard_ns[i] = round->heard_ns[i];
		look->errors[i] = round->errors[i];
	}
}

static unsigned count_answering(const struct ps_top_look *look)
{
	unsigned count = 0;

	for (unsigned i = 0; i < look->count; i++)
		count += look->told[i] != NULL;
	return count;
}

static void live_write_screen(const struct live *live, FILE *out)
{
	const struct ps_top_look *look = &live->look;

	fputs("perseas top: ", out);
	if (live->args->all)
		ps_fleet_summary(&live->fleet.fleet, out);
	else
		fprintf(out, "%u of %u mirrors answer, %u store%s", count_answering(look),
		        look->count, live->top.count, ps_plural(live->top.count));
	fprintf(out, "; every %g s, q quits\n\n", (double)live->args->interval_ms / 1000);
	if (live->args->all)
		ps_fleet_top_print(&live->fleet, out);
	else
		ps_top_print(&live->top, look, out);
}

static void live_draw(const struct live *live)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out) {
		live_write_screen(live, out);
		fclose(out);
	}
	if (text)
		ps_screen_draw(text);
	free(text);
}

static void live_print_text(const struct live *live, uint64_t clock)
{
	const struct ps_top_look *look = &live->look;
	char time[PS_TIME_TEXT];

	printf("%s: ", ps_time_text(time, clock));
	if (live->args->all) {
		ps_fleet_summary(&live->fleet.fleet, stdout);
		putchar('\n');
		ps_fleet_top_print(&live->fleet, stdout);
	} else {
		printf("%u of %u mirrors answer\n", count_answering(look), look->count);
		ps_top_print(&live->top, look, stdout);
	}
	/* One table is followed by another. */
	if (!live->args->once)
		putchar('\n');
}

static void live_print(const struct live *live)
{
	struct ps_env *env = live->rounds.list[0]->panel.env;
	const uint64_t clock = env->ops->clock(env);

	if (!live->args->json)
		live_print_text(live, clock);
	else if (live->args->all)
		ps_fleet_top_json(&live->fleet, clock, stdout);
	else
		ps_top_json(&live->top, &live->look, clock, stdout);
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
	ps_rounds_explain(&live->rounds);
	if (live->args->all) {
		ps_fleet_top_take(&live->fleet, &live->rounds);
	} else {
		live_fill_look(live);
		ps_top_take(&live->top, &live->look);
	}
	if (live->on_screen)
		live_draw(live);
	else if (!first)
		live_print(live);
}

/* The only look at a fleet says what is wrong, and not that somebody was slow. */
static uint64_t live_patience(const struct live *live)
{
	return live->args->once && live->args->all ? live->rounds.timeout_ns : PATIENCE_NS;
}

/* One look, and then until the next one is due. */
static void live_look(struct live *live, bool first)
{
	struct ps_rounds *rounds = &live->rounds;
	const uint64_t interval = (uint64_t)live->args->interval_ms * 1000000;
	const uint64_t start = ps_rounds_now(rounds), next = start + interval;
	const uint64_t late = start + live_patience(live);
	bool shown = false;

	ps_rounds_ask(rounds);
	while (!is_over() &&
	       !(shown && (ps_rounds_now(rounds) >= next || (live->args->once && !first)))) {
		const bool all = ps_rounds_collect(rounds);
		bool keys;

		if (!shown && (all || ps_rounds_now(rounds) >= late)) {
			live_show(live, first);
			shown = true;
			continue;
		}
		keys = ps_rounds_rest(rounds, shown ? next : late);
		if (ps_screen_rest(keys) && shown)
			live_draw(live);
	}
}

/* As many at a time as a panel has. */
static enum ps_exit live_add(struct live *live, const char *mirrors, bool added)
{
	char *list = ps_or_end(strdup(mirrors)), *rest = list;
	enum ps_exit status = PS_EXIT_OK;

	for (char *at = list; at && !status; at = rest) {
		rest = ps_list_cut(at, PS_MIRRORS_MAX);
		status = ps_rounds_add(&live->rounds, at, added, &live->args->options);
	}
	free(list);
	return status;
}

/* Daemons that rosters name are asked from the next look on. Are there some? */
static bool live_widen(struct live *live)
{
	char *list = live->args->all ? ps_fleet_unasked(&live->fleet.fleet) : NULL;
	const bool any = list && !live_add(live, list, true);

	free(list);
	return any;
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

static enum ps_exit live_verdict(const struct live *live)
{
	const struct ps_fleet_top *fleet = &live->fleet;

	if (!live->args->all)
		return look_verdict(&live->look);
	for (unsigned i = 0; i < fleet->fleet.count; i++)
		if (!fleet->fleet.daemons[i].reply)
			ps_complain(PS_EXIT_OK, "%s", fleet->told[i].error->text);
	return ps_fleet_verdict(&fleet->fleet);
}

static enum ps_exit live_begin(struct live *live)
{
	const struct ps_args *args = live->args;
	enum ps_exit status = args->all ? ps_list_fits(args->mirrors) : PS_EXIT_OK;

	live->rounds.has_hosts = args->all;
	if (!status && args->all)
		status = live_add(live, args->mirrors, false);
	else if (!status)
		status = ps_rounds_add(&live->rounds, args->mirrors, false, &args->options);
	return status;
}

static void live_end(struct live *live)
{
	ps_top_free(&live->top);
	ps_fleet_top_free(&live->fleet);
	ps_rounds_close(&live->rounds);
}

enum ps_exit ps_verb_top(const struct ps_args *args)
{
	struct live live = { .args = args };
	enum ps_exit status = live_begin(&live);

	if (status) {
		live_end(&live);
		return status;
	}
	live.on_screen = !args->once && !args->json && ps_screen_possible();
	if (live.on_screen)
		ps_screen_begin();
	else if (!args->once)
		ps_stop_catch();
	do
		live_look(&live, true);
	while (!is_over() && live_widen(&live));
	do {
		live_look(&live, false);
		(void)live_widen(&live);
	} while (!args->once && !is_over());
	ps_screen_end();
	if (args->once)
		status = live_verdict(&live);
	live_end(&live);
	return status;
}
