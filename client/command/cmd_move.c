/*
 * cmd_move.c - perseas move: a store that runs is handed over to a standby. The mirrors pass the
 * request on, to the owner and to the standbys, and time what comes of it. It claims nothing, and
 * asks the owner for nothing before it has seen the standby.
 */
#include "command.h"
#include "../../proto/base/json.h"
#include "ask/owner_report.h"
#include "../../proto/control/envelope.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>

#define MS_NS ((uint64_t)1000000)

enum {
	LOOK_MS = 20,    /* between two looks at what became of it */
	KEPT_MS = 10000, /* for which mirrors keep what became of it, beside the time it may take */
	NAMES_TEXT = 512, /* of those that are told; more are cut off */
};

struct move {
	const struct ps_args *args;
	struct ps_panel panel;
	uint8_t id[PS_ID_SIZE];
	uint8_t to[PS_OWNER_MARK];
	char name[PS_NAME_MAX + 1]; /* of the standby */
	uint64_t epoch;             /* of the owner that is asked */
};

/* What the mirrors saw of it so far. */
struct outcome {
	bool released;  /* the owner let go by itself, at all mirrors that saw its end */
	unsigned ended; /* mirrors that saw its end */
	unsigned opened;
	uint64_t closing_ns, pause_ns; /* the longest */
	uint64_t last, first;          /* the highest transaction before, and after */
	unsigned held;                 /* mirrors that stood at `last` when it ended */
	bool planned;                  /* the owner is the standby's */
	uint64_t epoch;                /* the highest that was promised */
	char address[256];             /* of the next owner */
};

enum ps_exit ps_verb_move_check(const struct ps_args *args)
{
	if (args->host_count)
		return PS_EXIT_OK;
	return ps_complain(PS_EXIT_USAGE,
	                   "which standby? give its name behind the list, for example: perseas "
	                   "move %s m1:7170,m2:7170 node2",
	                   args->store);
}

/* --- whom it goes to --- */

static bool is_marked(const Perseas__StoreStatus *status, const uint8_t *mark)
{
	const ProtobufCBinaryData *owner = &status->header->promised_owner;

	return owner->len == PS_ID_SIZE && !memcmp(owner->data, mark, PS_OWNER_MARK);
}

/* The standby of that name that goes first; NULL: there is none. */
static const Perseas__Standby *find_standby(const struct ps_census *census, const char *name)
{
	const Perseas__Standby *found = NULL;

	for (unsigned i = 0; i < census->panel->count; i++) {
		const Perseas__StoreStatus *status = census->told[i];

		for (size_t k = 0; status && k < status->n_standbys; k++)
			if (!strcmp(status->standbys[k]->name, name) &&
			    (!found || status->standbys[k]->order < found->order))
				found = status->standbys[k];
	}
	return found;
}

static bool is_listed(const char *names, const char *name)
{
	const size_t len = strlen(name);

	for (const char *at = names; (at = strstr(at, name)) != NULL; at += len)
		if ((at == names || at[-1] == ' ') && (at[len] == '\0' || at[len] == ','))
			return true;
	return false;
}

/* All of them but those of the owner, with commas between them. */
static void list_standbys(const struct ps_census *census, const Perseas__StoreStatus *owner,
                          char names[NAMES_TEXT])
{
	names[0] = '\0';
	for (unsigned i = 0; i < census->panel->count; i++) {
		const Perseas__StoreStatus *status = census->told[i];

		for (size_t k = 0; status && k < status->n_standbys; k++) {
			const Perseas__Standby *standby = status->standbys[k];
			const size_t used = strlen(names);

			if (!is_marked(owner, standby->mark.data) &&
			    !is_listed(names, standby->name))
				snprintf(names + used, NAMES_TEXT - used, "%s%s", used ? ", " : "",
				         standby->name);
		}
	}
}

static enum ps_exit complain_nobody(const struct move *move, const struct ps_census *census,
                                    const Perseas__StoreStatus *owner)
{
	char names[NAMES_TEXT];

	list_standbys(census, owner, names);
	if (!*names)
		return ps_complain(PS_EXIT_NO,
		                   "store '%s' has no standby; start one with perseas run, on the "
		                   "node that is to own the store",
		                   move->args->store);
	return ps_complain(PS_EXIT_NO, "%s a standby of store '%s'; its standbys are: %s",
	                   move->args->host_count == 1 ? "this is not" : "none of these is",
	                   move->args->store, names);
}

/* *done: the first HOST that is there has the store already. */
static enum ps_exit choose_standby(struct move *move, const struct ps_census *census,
                                   const Perseas__StoreStatus *owner, bool *done)
{
	for (unsigned i = 0; i < move->args->host_count; i++) {
		const Perseas__Standby *standby = find_standby(census, move->args->hosts[i]);

		if (!standby)
			continue;
		*done = is_marked(owner, standby->mark.data);
		memcpy(move->to, standby->mark.data, PS_OWNER_MARK);
		strcpy(move->name, standby->name);
		return PS_EXIT_OK;
	}
	return complain_nobody(move, census, owner);
}

/* Did a perseas run start that owner? Else it is asked by an event only. */
static bool is_run(const struct ps_census *census, const Perseas__StoreStatus *owner)
{
	for (unsigned i = 0; i < census->panel->count; i++)
		for (size_t k = 0; census->told[i] && k < census->told[i]->n_standbys; k++)
			if (is_marked(owner, census->told[i]->standbys[k]->mark.data))
				return true;
	return false;
}

/* --- asking --- */

static void tell_mirror(struct move *move, unsigned i, bool withdraw)
{
	const Perseas__Request *requests[PS_MIRRORS_MAX] = { NULL };
	Perseas__MoveRequest ask = PERSEAS__MOVE_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(move, MOVE, &ask);

	/* The message has no const; it is only packed. */
	ask.store = (char *)(uintptr_t)move->args->store;
	ask.id = (ProtobufCBinaryData){ PS_ID_SIZE, move->id };
	ask.withdraw = withdraw;
	ask.epoch = move->epoch;
	ask.to = (ProtobufCBinaryData){ PS_OWNER_MARK, move->to };
	ask.name = move->name;
	ask.within_ms = move->args->within_ms + KEPT_MS;
	requests[i] = &request;
	ps_panel_ask(&move->panel, requests);
}

/* The first mirror that has the owner decides: of two that ask at once, one is refused there. */
static enum ps_exit ask_owner(struct move *move, uint32_t mirrors)
{
	bool first = true;

	for (unsigned i = 0; i < move->panel.count; i++) {
		if (!(mirrors >> i & 1))
			continue;
		tell_mirror(move, i, false);
		if (first && !move->panel.replies[i])
			return ps_complain(PS_EXIT_NO, "%s; nothing was changed",
			                   move->panel.errors[i].text);
		first = false;
	}
	return PS_EXIT_OK;
}

static void withdraw_move(struct move *move)
{
	for (unsigned i = 0; i < move->panel.count; i++)
		if (move->panel.controls[i])
			tell_mirror(move, i, true);
}

/* --- what became of it --- */

static void note_handover(struct outcome *outcome, const Perseas__Handover *handover)
{
	if (!handover->closing_ns)
		return;
	outcome->released &= (bool)handover->released;
	outcome->ended++;
	if (handover->closing_ns > outcome->closing_ns)
		outcome->closing_ns = handover->closing_ns;
	if (handover->last && handover->last->seq > outcome->last) {
		outcome->last = handover->last->seq;
		outcome->held = 0;
	}
	outcome->held += handover->last && handover->last->seq == outcome->last;
	if (!handover->pause_ns)
		return;
	outcome->opened++;
	if (handover->pause_ns > outcome->pause_ns)
		outcome->pause_ns = handover->pause_ns;
	if (handover->first && handover->first->seq > outcome->first)
		outcome->first = handover->first->seq;
}

static void take_outcome(const struct move *move, const struct ps_census *census,
                         struct outcome *outcome)
{
	const int owner = ps_owner_at(census);

	*outcome = (struct outcome){ .released = true, .epoch = move->epoch };
	for (unsigned i = 0; i < census->panel->count; i++) {
		const Perseas__StoreStatus *status = census->told[i];

		if (!ps_census_belongs(census, i))
			continue;
		if (status->header->promised_epoch > outcome->epoch)
			outcome->epoch = status->header->promised_epoch;
		if (status->handover && ps_id_equal(status->handover->id, move->id))
			note_handover(outcome, status->handover);
	}
	if (owner < 0 || census->told[owner]->header->promised_epoch == move->epoch)
		return;
	outcome->planned = is_marked(census->told[owner], move->to);
	snprintf(outcome->address, sizeof(outcome->address), "%s",
	         census->told[owner]->owner_address);
}

/* W of its mirrors saw the next owner have it open. */
static bool is_over(const struct ps_census *census, const struct outcome *outcome)
{
	const Perseas__Roster *roster = census->judged.settled;

	return roster && outcome->opened >= roster->acks && *outcome->address;
}

static double ms_of(uint64_t ns)
{
	return (double)ns / (double)MS_NS;
}

static void print_json(const struct move *move, const struct outcome *outcome, uint64_t in_doubt)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "store", move->args->store);
	ps_json_text(&json, "to", move->name);
	ps_json_bool(&json, "planned", outcome->planned && outcome->released);
	ps_json_number(&json, "epoch", outcome->epoch);
	ps_json_number(&json, "seq", outcome->first);
	ps_json_number(&json, "closing_us", outcome->closing_ns / 1000);
	ps_json_number(&json, "pause_us", outcome->pause_ns / 1000);
	ps_json_number(&json, "mirrors", outcome->opened);
	ps_json_number(&json, "lost",
	               outcome->last > outcome->first ? outcome->last - outcome->first : 0);
	ps_json_number(&json, "in_doubt", in_doubt);
	ps_json_end(&json, '}');
}

static void print_outcome(const struct move *move, const struct outcome *outcome, uint64_t in_doubt)
{
	const uint64_t lost = outcome->last > outcome->first ? outcome->last - outcome->first : 0;

	if (move->args->json) {
		print_json(move, outcome, in_doubt);
		return;
	}
	printf("store '%s' is handed over to %s: epoch %" PRIu64 ", transaction %" PRIu64 "\n",
	       move->args->store, outcome->planned ? move->name : outcome->address, outcome->epoch,
	       outcome->first);
	printf("the last owner let go of it after %.1f ms\n", ms_of(outcome->closing_ns));
	printf("pause: %.1f ms, until the next one had it open (the longest of %u mirror%s)\n",
	       ms_of(outcome->pause_ns), outcome->opened, ps_plural(outcome->opened));
	printf("lost: %" PRIu64 ", in doubt: %" PRIu64 "\n", lost, in_doubt);
}

static enum ps_exit report_outcome(const struct move *move, const struct ps_census *census,
                                   const struct outcome *outcome)
{
	const Perseas__Roster *roster = census->judged.settled;
	const uint64_t in_doubt = outcome->last && outcome->held < roster->acks;

	print_outcome(move, outcome, in_doubt);
	if (!outcome->planned)
		return ps_complain(PS_EXIT_PARTLY,
		                   "%s did not take store '%s': the owner from %s did", move->name,
		                   move->args->store, outcome->address);
	if (!outcome->released)
		return ps_complain(PS_EXIT_PARTLY,
		                   "the last owner of store '%s' ended without closing it, as in a "
		                   "failover: what it had under way was undone",
		                   move->args->store);
	return PS_EXIT_OK;
}

/* Its time is over. What was told cannot be untold, but nobody leaves the store to anybody now. */
static enum ps_exit give_up(struct move *move, const struct outcome *outcome)
{
	const char *store = move->args->store;
	const double s = (double)move->args->within_ms / 1000;

	withdraw_move(move);
	if (outcome->epoch > move->epoch)
		return ps_complain(PS_EXIT_FAILURE,
		                   "store '%s' has been claimed by another owner, which did not "
		                   "have it open after %.1f s; perseas status shows how it is",
		                   store, s);
	if (outcome->ended)
		return ps_complain(PS_EXIT_FAILURE,
		                   "the owner of store '%s' let go of it, and %s did not open it "
		                   "within %.1f s: the request is taken back, and any standby may "
		                   "take it now",
		                   store, move->name, s);
	return ps_complain(
		PS_EXIT_FAILURE,
		"the owner of store '%s' did not let go of it within %.1f s: the request "
		"is taken back, and it goes on, unless it is still about to end",
		store, s);
}

/* Looks until it is over, its time is, or a signal says to stop. */
static enum ps_exit follow_move(struct move *move)
{
	const uint64_t until_ns = move->panel.env->ops->now(move->panel.env) +
	                          move->args->within_ms * MS_NS;
	struct outcome outcome = { .epoch = move->epoch };

	while (!ps_stopped() && move->panel.env->ops->now(move->panel.env) < until_ns) {
		struct ps_census census;
		enum ps_exit status = PS_EXIT_OK;
		bool over;

		for (unsigned i = 0; i < move->panel.count; i++)
			ps_panel_connect(&move->panel, i);
		ps_census_take(&census, &move->panel, move->args->store);
		take_outcome(move, &census, &outcome);
		over = is_over(&census, &outcome);
		if (over)
			status = report_outcome(move, &census, &outcome);
		ps_census_free(&census);
		if (over)
			return status;
		poll(NULL, 0, LOOK_MS);
	}
	return give_up(move, &outcome);
}

/* --- all of it --- */

static uint32_t mirrors_of(const struct ps_census *census, uint64_t epoch)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < census->panel->count; i++)
		if (ps_census_belongs(census, i) && census->told[i]->live &&
		    census->told[i]->header->promised_epoch == epoch)
			set |= 1u << i;
	return set;
}

/* Whom it goes from and to. *mirrors: that have the owner; 0 after PS_EXIT_OK: there is nothing to
 * do. */
static enum ps_exit plan_move(struct move *move, const struct ps_census *census, uint32_t *mirrors)
{
	const int at = ps_owner_at(census);
	const Perseas__StoreStatus *owner;
	enum ps_exit status;
	bool done = false;

	*mirrors = 0;
	if (!census->have)
		return ps_census_nobody(census, move->args->store);
	if (at < 0)
		return ps_complain(
			PS_EXIT_NO,
			"store '%s' has no live owner, so there is nothing to hand over: "
			"a standby takes it by itself",
			move->args->store);
	owner = census->told[at];
	move->epoch = owner->header->promised_epoch;
	status = choose_standby(move, census, owner, &done);
	if (status)
		return status;
	if (done) {
		ps_complain(PS_EXIT_OK, "store '%s' is owned at %s already; nothing was changed",
		            move->args->store, move->name);
		return PS_EXIT_OK;
	}
	if (!is_run(census, owner))
		ps_complain(PS_EXIT_OK,
		            "the owner of store '%s' was not started by perseas run: it is told "
		            "(PERSEAS_EVENT_HANDOVER), and has to close the store by itself",
		            move->args->store);
	*mirrors = mirrors_of(census, move->epoch);
	return PS_EXIT_OK;
}

enum ps_exit ps_verb_move(const struct ps_args *args)
{
	struct move move = { .args = args };
	struct ps_census census;
	uint32_t mirrors;
	enum ps_exit status;

	ps_stop_catch();
	status = ps_census_open(&census, &move.panel, args->store, args->mirrors, &args->options);
	if (status)
		return status;
	(void)ps_census_widen(&census, &move.panel, args->store);
	status = plan_move(&move, &census, &mirrors);
	ps_census_free(&census);
	if (!status && mirrors && getrandom(move.id, sizeof(move.id), 0) != sizeof(move.id))
		status = ps_complain(PS_EXIT_FAILURE, "the system gives no random bytes");
	if (!status && mirrors)
		status = ask_owner(&move, mirrors);
	if (!status && mirrors)
		status = follow_move(&move);
	ps_panel_close(&move.panel);
	return status;
}
