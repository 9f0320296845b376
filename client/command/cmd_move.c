/*
 * cmd_move.c - perseas move: hands a running store over to a standby. The mirrors pass the request
 * to the owner and to the standbys, and measure the handover. The command claims nothing, and asks
 * the owner for nothing before it has seen the standby.
 */
#include "command.h"
#include "../../proto/base/json.h"
#include "../../proto/control/envelope.h"
#include "ask/owner_report.h"
#include "ask/standbys.h"
#include "change/handover.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>

#define MS_NS ((uint64_t)1000000)

enum {
	LOOK_MS = 20, /* pause between two looks at the handover */
	/* Wait for mirrors beyond W to see the end, so that the report includes them. */
	LAST_MIRRORS_MS = 200,
	KEPT_MS = 10000,  /* time for which mirrors keep the request beyond the move's own limit */
	NAMES_TEXT = 512, /* size of a list of names; longer lists are cut off */
};

struct move {
	const struct ps_args *args;
	struct ps_peers peers;
	struct ps_handover handover;
	char name[PS_NAME_MAX + 1]; /* name of the standby */
	/* Indices of the mirrors that see the owner, in the roster's order. */
	unsigned owner_mirrors[PS_MIRRORS_MAX];
	unsigned count;            /* how many these are; 0: the standby owns the store already */
	uint32_t may_have_request; /* peers that may have the request, as bits */
	uint64_t began_ns;
	uint64_t ended_ns; /* when W mirrors had seen the end; 0: not yet */
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

/* --- the standby --- */

static enum ps_exit complain_no_standby(const struct move *move, const struct ps_standbys *standbys,
                                        const Perseas__Standby *owner)
{
	const bool one = move->args->host_count == 1;
	char names[NAMES_TEXT] = "";

	for (unsigned i = 0; i < standbys->count; i++) {
		const size_t used = strlen(names);

		if (standbys->list[i] != owner)
			snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
			         standbys->list[i]->name);
	}
	if (!*names)
		return ps_complain(PS_EXIT_NO,
		                   "store '%s' has no standby; start one with perseas run, on the "
		                   "node that is to own the store",
		                   move->args->store);
	return ps_complain(PS_EXIT_NO, "%s a standby of store '%s'; its standbys are: %s",
	                   one ? "this is not" : "none of these is", move->args->store, names);
}

/* Refuses the move: the owner would end, and this standby could not open the store. */
static enum ps_exit complain_cannot_open(const struct move *move, const struct ps_images *images,
                                         const Perseas__Standby *standby)
{
	const Perseas__Roster *roster = images->judged.settled;
	const unsigned members = roster ? (unsigned)roster->n_members : 0;

	return ps_complain(PS_EXIT_NO,
	                   "%s is known to %u of %u mirrors of store '%s', too few to open it; "
	                   "nothing was changed",
	                   standby->name, ps_standby_count_members(images, standby->mark.data),
	                   members, move->args->store);
}

/* Chooses the first HOST whose standby is there and can open the store. That may be the standby
 * that owns the store, if no other standby has its name: then sets *done. */
static enum ps_exit choose_standby(struct move *move, const struct ps_images *images,
                                   const Perseas__StoreStatus *owner, bool *done)
{
	const Perseas__Standby *chosen = NULL, *out_of_reach = NULL, *named, *present;
	struct ps_standbys standbys;

	ps_standbys_find(&standbys, images);
	present = ps_standbys_find_owner(&standbys, owner);
	for (unsigned i = 0; i < move->args->host_count && !chosen; i++) {
		named = ps_standbys_find_named(&standbys, move->args->hosts[i], present);
		if (named && (named == present || ps_standby_can_open(images, named->mark.data)))
			chosen = named;
		else if (named)
			out_of_reach = named;
	}
	if (!chosen && out_of_reach)
		return complain_cannot_open(move, images, out_of_reach);
	if (!chosen)
		return complain_no_standby(move, &standbys, present);
	*done = chosen == present;
	memcpy(move->handover.to, chosen->mark.data, PS_OWNER_MARK);
	snprintf(move->name, sizeof(move->name), "%s", chosen->name);
	if (!present)
		ps_complain(PS_EXIT_OK,
		            "the owner of store '%s' was not started by perseas run: it is told "
		            "(PERSEAS_EVENT_HANDOVER), and has to close the store by itself",
		            move->args->store);
	return PS_EXIT_OK;
}

/* Refuses the move while a commit is in doubt: nobody knows whether the next owner finds it, and
 * the mirrors that do not answer this owner may not answer the next one. */
static enum ps_exit check_no_commit_in_doubt(const struct move *move,
                                             const Perseas__StoreStatus *owner)
{
	const uint64_t ms = ps_owner_doubt_ms(owner);

	if (!ms)
		return PS_EXIT_OK;
	return ps_complain(PS_EXIT_NO,
	                   "a commit of store '%s' has been in doubt for %.1f s: fewer than W "
	                   "mirrors hold it; perseas status says which its owner lacks; nothing "
	                   "was changed",
	                   move->args->store, (double)ms / 1000);
}

/* Lists the mirrors that see the owner, in the roster's order: of two moves at the same time, all
 * mirrors then refuse the same one. */
static void list_owner_mirrors(struct move *move, const struct ps_images *images)
{
	const Perseas__Roster *roster = images->judged.settled;

	for (size_t k = 0; roster && k < roster->n_members; k++)
		for (unsigned i = 0; i < images->peers->count; i++)
			if (ps_images_is_member(images, i, roster->members[k]) &&
			    images->told[i]->live &&
			    images->told[i]->header->promised_epoch == move->handover.epoch)
				move->owner_mirrors[move->count++] = i;
}

static void print_json(const struct move *move, const struct ps_handover_outcome *outcome)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "store", move->args->store);
	ps_json_text(&json, "to", move->name);
	ps_json_bool(&json, "moved", outcome->opened_count > 0);
	ps_json_bool(&json, "planned", outcome->standby_owns && outcome->released);
	ps_json_number(&json, "epoch", outcome->epoch);
	ps_json_number(&json, "seq", outcome->seq);
	ps_json_number(&json, "closing_us", outcome->closing_ns / 1000);
	ps_json_number(&json, "pause_us", outcome->pause_ns / 1000);
	ps_json_number(&json, "mirrors", outcome->opened_count);
	ps_json_number(&json, "lost", outcome->lost);
	ps_json_number(&json, "in_doubt", outcome->in_doubt);
	ps_json_end(&json, '}');
}

/* Reports that the standby owns the store already, so nobody has to be asked. */
static enum ps_exit report_already_owner(const struct move *move)
{
	const struct ps_handover_outcome nothing = { .standby_owns = true,
		                                     .released = true,
		                                     .epoch = move->handover.epoch };

	if (move->args->json)
		print_json(move, &nothing);
	return ps_complain(PS_EXIT_OK, "store '%s' is owned at %s already; nothing was changed",
	                   move->args->store, move->name);
}

/* Finds the present owner and the standby that takes over. */
static enum ps_exit plan_move(struct move *move, const struct ps_images *images)
{
	const int owner = ps_images_find_owner(images);
	enum ps_exit status;
	bool done = false;

	if (!images->have)
		return ps_images_complain_absent(images, move->args->store);
	status = ps_images_check_ambiguous(images, move->args->store);
	if (status)
		return status;
	if (owner < 0)
		return ps_complain(
			PS_EXIT_NO,
			"store '%s' has no live owner, so there is nothing to hand over: "
			"a standby takes it by itself",
			move->args->store);
	move->handover.epoch = images->told[owner]->header->promised_epoch;
	status = choose_standby(move, images, images->told[owner], &done);
	if (status)
		return status;
	if (done)
		return report_already_owner(move);
	status = check_no_commit_in_doubt(move, images->told[owner]);
	if (status)
		return status;
	list_owner_mirrors(move, images);
	if (move->count)
		return PS_EXIT_OK;
	return ps_complain(
		PS_EXIT_FAILURE,
		"no mirror that store '%s' has now has its owner; perseas status shows how "
		"it is",
		move->args->store);
}

/* --- asking --- */

/* Sends the request to all mirrors of the set at once. */
static void send_request(struct move *move, uint32_t set, bool withdraw)
{
	const Perseas__Request *requests[PS_MIRRORS_MAX] = { NULL };
	Perseas__MoveRequest ask = PERSEAS__MOVE_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(move, MOVE, &ask);

	/* The message has no const; it is only packed. */
	ask.store = (char *)(uintptr_t)move->args->store;
	ask.id = (ProtobufCBinaryData){ PS_ID_SIZE, move->handover.id };
	ask.withdraw = withdraw;
	ask.epoch = move->handover.epoch;
	ask.to = (ProtobufCBinaryData){ PS_OWNER_MARK, move->handover.to };
	ask.name = move->name;
	ask.within_ms = move->args->within_ms + KEPT_MS;
	for (unsigned i = 0; i < move->peers.count; i++)
		if (set >> i & 1)
			requests[i] = &request;
	ps_peers_ask(&move->peers, requests);
}

/* Asks peer i to pass the request on. Returns true if it took the request. */
static bool ask_mirror(struct move *move, unsigned i)
{
	send_request(move, 1u << i, false);
	/* A mirror that did not answer may have taken the request, or may still get it. */
	if (move->peers.replies[i] || !ps_peers_answered(&move->peers, i))
		move->may_have_request |= 1u << i;
	return move->peers.replies[i] != NULL;
}

/* Withdraws the request from each mirror that may have it, over a new connection if the mirror did
 * not answer. Returns false if a mirror may still have the request. */
static bool withdraw_move(struct move *move)
{
	for (unsigned i = 0; i < move->peers.count; i++)
		if (move->may_have_request >> i & 1)
			ps_peers_connect(&move->peers, i);
	send_request(move, move->may_have_request, true);
	for (unsigned i = 0; i < move->peers.count; i++) {
		if (!(move->may_have_request >> i & 1))
			continue;
		if (ps_peers_answered(&move->peers, i))
			move->may_have_request &= ~(1u << i);
		else
			ps_complain(PS_EXIT_OK,
			            "%s may have the request, and was not told that it is taken "
			            "back: %s",
			            move->peers.addresses[i].text, move->peers.errors[i].text);
	}
	return !move->may_have_request;
}

/* Asks the mirrors in turn to pass the request to the owner, until one refuses before another took
 * it. If none took the request, withdraws it from mirrors that did not answer but may have it. */
static enum ps_exit ask_owner(struct move *move)
{
	struct ps_error error = { 0 };
	unsigned taken = 0;
	bool refused = false;

	for (unsigned k = 0; k < move->count && !refused; k++) {
		const unsigned i = move->owner_mirrors[k];

		if (ask_mirror(move, i)) {
			taken++;
			continue;
		}
		error = move->peers.errors[i];
		refused = !taken && ps_peers_answered(&move->peers, i);
	}
	if (taken)
		return PS_EXIT_OK;
	if (!withdraw_move(move))
		return ps_complain(PS_EXIT_FAILURE,
		                   "the owner of store '%s' may be asked all the same: %s",
		                   move->args->store, error.text);
	if (refused)
		return ps_complain(PS_EXIT_NO, "%s; nothing was changed", error.text);
	return ps_complain(PS_EXIT_FAILURE, "no mirror took the request, which is taken back: %s",
	                   error.text);
}

/* --- the outcome --- */

static double ms_of_ns(uint64_t ns)
{
	return (double)ns / (double)MS_NS;
}

static void print_outcome(const struct move *move, const struct ps_handover_outcome *outcome)
{
	if (move->args->json) {
		print_json(move, outcome);
		return;
	}
	printf("store '%s' is handed over to %s: epoch %" PRIu64 ", transaction %" PRIu64 "\n",
	       move->args->store, outcome->standby_owns ? move->name : outcome->address,
	       outcome->epoch, outcome->seq);
	printf("the last owner let go of it after %.1f ms\n", ms_of_ns(outcome->closing_ns));
	printf("pause: %.1f ms, until the next one had it open (the longest of %u mirror%s)\n",
	       ms_of_ns(outcome->pause_ns), outcome->opened_count,
	       ps_plural(outcome->opened_count));
	printf("lost: %" PRIu64 ", in doubt: %" PRIu64 "\n", outcome->lost, outcome->in_doubt);
}

static enum ps_exit report_outcome(const struct move *move,
                                   const struct ps_handover_outcome *outcome)
{
	print_outcome(move, outcome);
	if (outcome->lost)
		return ps_complain(PS_EXIT_FAILURE,
		                   "store '%s' lost transactions that W mirrors had: see what "
		                   "perseas status and the mirrors' logs say before anything else",
		                   move->args->store);
	if (!outcome->standby_owns)
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

/* Ends the move after its time limit. Withdraws the request, so that no later owner leaves the
 * store because of it; an owner that already obeyed cannot be stopped. */
static enum ps_exit give_up_move(struct move *move, const struct ps_handover_outcome *outcome)
{
	const char *store = move->args->store;
	const double s = ms_of_ns(move->peers.env->ops->now(move->peers.env) - move->began_ns) /
	                 1000;

	(void)withdraw_move(move);
	if (outcome->epoch > move->handover.epoch)
		return ps_complain(PS_EXIT_FAILURE,
		                   "store '%s' has been claimed by another owner, which did not "
		                   "have it open after %.1f s; perseas status shows how it is",
		                   store, s);
	if (outcome->ended_count)
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

/* Returns true if nothing is left to wait for: all mirrors that know of the handover have seen its
 * end, or W have and the others had their time. */
static bool move_is_over(struct move *move, const struct ps_handover_outcome *outcome,
                         const struct ps_images *images)
{
	const uint64_t now_ns = move->peers.env->ops->now(move->peers.env);

	if (!ps_handover_outcome_is_final(outcome, images))
		return false;
	if (!move->ended_ns)
		move->ended_ns = now_ns;
	return outcome->opened_count == outcome->known_count ||
	       now_ns >= move->ended_ns + LAST_MIRRORS_MS * MS_NS;
}

/* Looks at the store once. Returns true if the move has ended. */
static bool check_move(struct move *move, struct ps_handover_outcome *outcome, enum ps_exit *status)
{
	struct ps_images images;
	bool over;

	for (unsigned i = 0; i < move->peers.count; i++)
		ps_peers_connect(&move->peers, i);
	ps_images_fetch(&images, &move->peers, move->args->store);
	ps_handover_outcome_collect(outcome, &move->handover, &images);
	over = move_is_over(move, outcome, &images);
	if (over)
		*status = report_outcome(move, outcome);
	outcome->address = NULL;
	ps_images_free(&images);
	return over;
}

/* Looks at the store until the move is over, its time limit is over, or a signal says to stop. */
static enum ps_exit await_move(struct move *move)
{
	const uint64_t until_ns = move->began_ns + move->args->within_ms * MS_NS;
	struct ps_handover_outcome outcome = { .epoch = move->handover.epoch };
	enum ps_exit status = PS_EXIT_OK;

	while (!ps_stop_requested() && move->peers.env->ops->now(move->peers.env) < until_ns) {
		if (check_move(move, &outcome, &status))
			return status;
		poll(NULL, 0, LOOK_MS);
	}
	return give_up_move(move, &outcome);
}

enum ps_exit ps_verb_move(const struct ps_args *args)
{
	struct move move = { .args = args };
	uint8_t *id = move.handover.id;
	struct ps_images images;
	enum ps_exit status;

	ps_stop_catch();
	status = ps_images_open(&images, &move.peers, args->store, args->mirrors, &args->options);
	if (status)
		return status;
	(void)ps_images_fetch_more(&images, &move.peers, args->store);
	status = plan_move(&move, &images);
	ps_images_free(&images);
	move.began_ns = move.peers.env->ops->now(move.peers.env);
	if (!status && move.count && getrandom(id, PS_ID_SIZE, 0) != PS_ID_SIZE)
		status = ps_complain(PS_EXIT_FAILURE, "the system gives no random bytes");
	if (!status && move.count)
		status = ask_owner(&move);
	if (!status && move.count)
		status = await_move(&move);
	ps_peers_close(&move.peers);
	return status;
}
