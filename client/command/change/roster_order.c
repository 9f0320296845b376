/*
 * roster_order.c - a change of the roster that a store's live owner makes: a mirror passes the
 * order to the owner, and then shows its progress and result. perseas roster and perseas drain call
 * it. It must never claim the store.
 */
#include "roster.h"
#include "../../../proto/control/envelope.h"

#include <poll.h>
#include <string.h>

enum { LOOK_MS = 100 }; /* pause between two looks at an order */

static const struct ps_roster_sizes unknown_sizes;

/* Returns true if the change removes mirror i from the roster. */
static bool does_mirror_leave(const struct ps_images *images, unsigned i,
                              const struct ps_args *args)
{
	const char *old = ps_roster_old_address(args);
	const Perseas__Member *member = old ? ps_roster_member_seen_at(images, old) : NULL;

	return member && ps_images_is_member(images, i, member);
}

/* Returns true if mirror i has a live session of this owner, or of any owner if `owner` is NULL. */
static bool has_live_session(const struct ps_images *images, unsigned i, const uint8_t *owner)
{
	return ps_images_is_of_store(images, i) && images->told[i]->live &&
	       (!owner || ps_is_same_owner(images->told[i]->header->promised_owner, owner));
}

/* Returns a mirror that can pass the order to this owner, or -1. Prefers one that stays in the
 * roster, because a mirror that leaves does not hear the result. */
static int find_messenger(const struct ps_images *images, const struct ps_args *args,
                          const uint8_t *owner)
{
	int found = -1;

	for (unsigned i = 0; i < images->peers->count; i++)
		if (has_live_session(images, i, owner) &&
		    (found < 0 || does_mirror_leave(images, (unsigned)found, args)))
			found = (int)i;
	return found;
}

/* An order in progress. */
struct wait {
	uint8_t id[PS_ID_SIZE];    /* id of the order */
	uint8_t owner[PS_ID_SIZE]; /* id of the owner that was given the order */
	unsigned at;               /* index of the mirror that passes the order to the owner */
	char told[1024];           /* the progress that was printed last */
	bool found;                /* with cancel: there was an order to cancel */
	bool over;                 /* the result is known, or cannot be learnt any more */
	struct ps_replacement_copy copy;
	enum ps_exit status;
};

static enum ps_exit send_order(struct ps_peers *peers, const struct ps_args *args,
                               struct wait *wait)
{
	const Perseas__Request *requests[PS_MIRRORS_MAX] = { NULL };
	Perseas__OrderRequest ask = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__Order order = PERSEAS__ORDER__INIT;
	const Perseas__Request request = PS_REQUEST(order, ORDER, &ask);
	unsigned i = wait->at;

	order.id.data = wait->id;
	order.id.len = PS_ID_SIZE;
	order.kind = args->action->order;
	/* The message has no const; it is only packed. */
	order.address = (char *)(ps_roster_old_address(args) ? ps_roster_old_address(args) : "");
	order.with = (char *)(ps_roster_new_address(args) ? ps_roster_new_address(args) : "");
	order.acks = args->options.acks;
	order.gone = args->is_gone_for_good;
	ask.store = (char *)args->store;
	ask.order = &order;
	requests[i] = &request;
	ps_peers_ask(peers, requests);
	if (!peers->replies[i])
		return ps_peers_complain(peers, i);
	return PS_EXIT_OK;
}

/* Reports the end of a cancel. `result` is that of the change that was to be cancelled: the cancel
 * succeeded if the change did not. */
static enum ps_exit report_cancel(const Perseas__OrderResult *result, bool found,
                                  const struct ps_args *args)
{
	if (!result->code)
		return ps_complain(PS_EXIT_NO,
		                   "the change was decided already, and is completed: %s",
		                   result->text);
	if (result->code == PERSEAS_EINVAL && !found)
		return ps_roster_report_refused(args, result->code, result->text);
	ps_roster_print_change_done(args,
	                            result->code == PERSEAS_EINVAL
	                                    ? "the change is taken back: its owner had not begun it"
	                                    : result->text,
	                            &unknown_sizes);
	return PS_EXIT_OK;
}

/* Prints that the change was made. */
static void print_change_made(const Perseas__OrderResult *result, const struct ps_args *args)
{
	const struct ps_roster_sizes sizes = { result->members_before, result->acks_before,
		                               result->members, result->acks };

	ps_roster_print_change_done(args, result->text, &sizes);
	if (!result->members && args->action->members && !args->options.acks && !args->quiet)
		ps_announce(
			args->json,
			"its owner, or the mirror that passed this on, is of the version before, "
			"and tells no W: such an owner keeps W as it was where that fits; "
			"perseas roster shows it, and --acks with a change sets it");
}

/* Takes the figures of the copy from the owner's result. An owner of the version before tells
 * none. */
static void note_copy(const Perseas__OrderResult *result, struct ps_replacement_copy *copy)
{
	copy->is_known = result->members != 0;
	copy->sent_bytes = result->sent;
	snprintf(copy->whole_reason, sizeof(copy->whole_reason), "%s", result->whole);
}

/* Prints progress, or the result of a change or cancel. */
static void report_order_result(struct wait *wait, const Perseas__OrderResult *result,
                                const struct ps_args *args)
{
	if (strcmp(wait->told, result->text) != 0 && !result->done && !args->json && !args->quiet)
		printf("%s\n", result->text);
	fflush(stdout);
	snprintf(wait->told, sizeof(wait->told), "%s", result->text);
	wait->over = result->done;
	note_copy(result, &wait->copy);
	if (result->done && ps_roster_is_cancel(args))
		wait->status = report_cancel(result, wait->found, args);
	else if (result->done && result->code)
		wait->status = ps_roster_report_refused(args, result->code, result->text);
	else if (result->done)
		print_change_made(result, args);
}

static const Perseas__OrderResult *find_result(const struct ps_images *images,
                                               const struct wait *wait)
{
	const Perseas__OrderResult *result = images->told[wait->at] ? images->told[wait->at]->result
	                                                            : NULL;

	return result && ps_id_equal(result->id, wait->id) ? result : NULL;
}

/* Returns true if the mirror still has the order, and a session of the owner that it is for. */
static bool is_pending(const struct ps_images *images, const struct wait *wait)
{
	return has_live_session(images, wait->at, wait->owner) && images->told[wait->at]->order &&
	       ps_id_equal(images->told[wait->at]->order->id, wait->id);
}

/* Ends the wait because no mirror has a session of the owner that was given the order. */
static void end_without_owner(const struct ps_images *images, const struct ps_args *args,
                              struct wait *wait)
{
	wait->over = true;
	if (ps_roster_shows_change(images, args)) {
		ps_roster_print_change_done(args, "", &unknown_sizes);
		return;
	}
	wait->status = ps_complain(
		PS_EXIT_PARTLY,
		"the owner went away before it had told what became of the change%s; "
		"perseas roster shows how it is",
		find_messenger(images, args, NULL) < 0
			? ""
			: ", and another owner that knows nothing of it has taken over");
}

/* Asks once. If the owner lost the mirror that passes the order, another mirror gets the same
 * order; an owner carries it out once. */
static void check_order(struct ps_peers *peers, const struct ps_args *args, struct wait *wait)
{
	const Perseas__OrderResult *result;
	struct ps_images images;
	int now;

	ps_images_fetch(&images, peers, args->store);
	result = find_result(&images, wait);
	now = find_messenger(&images, args, wait->owner);
	if (result) {
		report_order_result(wait, result, args);
	} else if (now < 0) {
		end_without_owner(&images, args, wait);
	} else if (!is_pending(&images, wait)) {
		wait->at = (unsigned)now;
		wait->status = send_order(peers, args, wait);
		wait->over = wait->status != PS_EXIT_OK;
	}
	ps_images_free(&images);
}

/* Looks at the order until it has ended, the time limit is over, or a signal says to stop. */
static enum ps_exit await_order_result(struct ps_peers *peers, const struct ps_args *args,
                                       struct wait *wait)
{
	uint64_t until_ns = peers->env->ops->now(peers->env) + (uint64_t)args->wait_ms * 1000000;

	while (!ps_stop_requested() && peers->env->ops->now(peers->env) < until_ns) {
		check_order(peers, args, wait);
		if (wait->over)
			return wait->status;
		poll(NULL, 0, LOOK_MS);
	}
	return ps_complain(PS_EXIT_PARTLY,
	                   "the owner goes on with the change%s%s; perseas status "
	                   "shows how far it is",
	                   *wait->told ? ": " : "", wait->told);
}

/* Finds the order that a cancel is about: the one that the owner carries out now, or else one that
 * waits. The cancel gets its id, and goes to the mirror that has it. */
static void find_order(const struct ps_images *images, struct wait *wait)
{
	for (unsigned i = 0; i < images->peers->count; i++) {
		const Perseas__StoreStatus *status = images->told[i];

		if (!has_live_session(images, i, wait->owner) || !status->order ||
		    status->order->id.len != PS_ID_SIZE ||
		    (status->result && status->result->done) || (wait->found && !status->result))
			continue;
		wait->at = i;
		wait->found = true;
		memcpy(wait->id, status->order->id.data, PS_ID_SIZE);
	}
}

enum ps_exit ps_roster_change_by_owner(struct ps_peers *peers, const struct ps_images *images,
                                       const struct ps_args *args, struct ps_replacement_copy *copy)
{
	const uint8_t *owner =
		images->told[ps_images_find_owner(images)]->header->promised_owner.data;
	struct wait wait = { .status = PS_EXIT_OK };
	enum ps_exit status;

	memcpy(wait.owner, owner, PS_ID_SIZE);
	wait.at = (unsigned)find_messenger(images, args, wait.owner);
	peers->env->ops->random(peers->env, wait.id, PS_ID_SIZE);
	ps_roster_announce_change(args);
	if (ps_roster_is_cancel(args))
		find_order(images, &wait);
	status = send_order(peers, args, &wait);
	ps_stop_catch();
	if (!status)
		status = await_order_result(peers, args, &wait);
	if (copy)
		*copy = wait.copy;
	return status;
}
