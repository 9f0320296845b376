/*
 * cmd_top.c - perseas top: shows the stores of a list of mirrors again and again.
 */
#include "command.h"
#include "top/screen.h"
#include "top/top.h"

#include <stdlib.h>

#define MS_NS ((uint64_t)1000000)

/* Longest wait for keys: a signal that arrives just before a wait does not end it. */
enum { SLICE_MS = 100 };

struct watch {
	const struct ps_args *args;
	struct ps_peers peers;
	struct ps_top top;
	uint64_t next_ns; /* when the next look is due */
	bool on_screen;
};

static uint64_t watch_now(const struct watch *watch)
{
	return watch->peers.env->ops->now(watch->peers.env);
}

/* --- showing --- */

static unsigned count_answering(const struct ps_peers *peers)
{
	unsigned count = 0;

	for (unsigned i = 0; i < peers->count; i++)
		count += peers->replies[i] != NULL;
	return count;
}

static void draw_look(const struct watch *watch)
{
	const struct ps_peers *peers = &watch->peers;
	char *text = NULL;
	size_t size;
	FILE *out = ps_exit_if_null(open_memstream(&text, &size));

	fprintf(out,
	        "perseas top: %u of %u mirrors answer, %u store%s; every %g s, q quits, arrows "
	        "scroll\n\n",
	        count_answering(peers), peers->count, watch->top.fleet.store_count,
	        ps_plural(watch->top.fleet.store_count), (double)watch->args->interval_ms / 1000);
	ps_top_print(&watch->top, peers, out);
	fclose(out);
	ps_screen_draw(ps_exit_if_null(text));
	free(text);
}

static void print_look(const struct watch *watch)
{
	const struct ps_peers *peers = &watch->peers;
	const uint64_t clock = peers->env->ops->clock(peers->env);
	char time[PS_TIME_TEXT];

	if (watch->args->json) {
		ps_top_json(&watch->top, peers, clock, stdout);
	} else {
		printf("%s: %u of %u mirrors answer\n", ps_time_text(time, clock),
		       count_answering(peers), peers->count);
		ps_top_print(&watch->top, peers, stdout);
		/* Separates this table from the next one. */
		if (!watch->args->once)
			putchar('\n');
	}
	fflush(stdout);
}

static void show_look(const struct watch *watch)
{
	if (watch->on_screen)
		draw_look(watch);
	else
		print_look(watch);
}

/* --- looks --- */

/* Returns true once a mirror has answered: the command then waits half a second for the others. */
static bool have_enough_answered(void *arg, const struct ps_peers *peers)
{
	(void)arg;
	return count_answering(peers) > 0;
}

static void ask_and_judge(struct watch *watch)
{
	const uint64_t now_ns = watch_now(watch);

	watch->next_ns = now_ns + watch->args->interval_ms * MS_NS;
	for (unsigned i = 0; i < watch->peers.count; i++)
		ps_peers_connect(&watch->peers, i);
	ps_peers_ask_all(&watch->peers, ps_peers_list_request());
	ps_top_take_look(&watch->top, &watch->peers, now_ns);
}

/* From the next look on, also asks members that rosters name and LIST does not. */
static void widen_peers(struct watch *watch)
{
	char *list = ps_fleet_list_unasked(&watch->top.fleet);

	for (char *rest, *at = list; at; at = rest) {
		rest = ps_list_cut_after(at, 1);
		(void)ps_peers_add_address(&watch->peers, at);
	}
	free(list);
}

static bool has_ended(void)
{
	return ps_stop_requested() || ps_screen_has_quit() || ferror(stdout);
}

/* Waits until the next look is due. Redraws the screen meanwhile if keys ask for it. */
static void await_next(const struct watch *watch)
{
	uint64_t now_ns;

	while (!has_ended() && (now_ns = watch_now(watch)) < watch->next_ns) {
		const uint64_t ms = (watch->next_ns - now_ns) / MS_NS + 1;

		/* The wait is cut into slices, because a signal that arrives just before a wait
		 * does not end it. */
		if (!watch->on_screen)
			ps_stop_pause((uint32_t)ms);
		else if (ps_screen_wait(ms < SLICE_MS ? (uint32_t)ms : SLICE_MS))
			draw_look(watch);
	}
}

/* Returns the exit status of a single look: by which mirrors of LIST answered, as for perseas ls.
 */
static enum ps_exit look_status(const struct ps_peers *peers)
{
	unsigned silent = 0;

	for (unsigned i = 0; i < peers->listed_count; i++) {
		if (peers->replies[i])
			continue;
		ps_complain(PS_EXIT_OK, "%s", peers->errors[i].text);
		silent++;
	}
	if (!silent)
		return PS_EXIT_OK;
	return silent < peers->listed_count ? PS_EXIT_PARTLY : PS_EXIT_FAILURE;
}

enum ps_exit ps_verb_top(const struct ps_args *args)
{
	struct watch watch = { .args = args };
	enum ps_exit status = ps_peers_open(&watch.peers, args->mirrors, &args->options);

	if (status)
		return status;
	watch.peers.enough = have_enough_answered;
	watch.on_screen = !args->once && !args->json && ps_screen_begin();
	if (!args->once)
		ps_stop_catch();
	ask_and_judge(&watch);
	/* A table compares two looks, so it needs both; the screen shows the first at once. */
	if (watch.on_screen)
		draw_look(&watch);
	do {
		widen_peers(&watch);
		await_next(&watch);
		if (has_ended())
			break;
		ask_and_judge(&watch);
		show_look(&watch);
	} while (!args->once && !has_ended());
	ps_screen_end();
	if (args->once)
		status = look_status(&watch.peers);
	ps_top_free(&watch.top);
	ps_peers_close(&watch.peers);
	return status;
}
