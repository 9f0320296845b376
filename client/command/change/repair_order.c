/*
 * repair_order.c - see repair_order.h. A mirror passes the order to the owner, and then shows its
 * progress and result. It must never claim the store.
 */
#include "repair_order.h"

#include "../ask/ask.h"
#include "../../../proto/control/envelope.h"

#include <poll.h>
#include <string.h>

enum { LOOK_MS = 100 }; /* pause between two looks at the order */

/* The order in progress. */
struct repair {
	const struct ps_args *args;
	struct ps_peers peers;
	uint8_t id[PS_ID_SIZE];    /* id of the order */
	uint8_t owner[PS_ID_SIZE]; /* id of the owner that was given the order */
	int at;                    /* index of the mirror that passes the order on; -1: none yet */
	char told[1024];           /* the progress that was printed last */
};

/* Returns the status of mirror i if it has a live session of this owner, or NULL. */
static const Perseas__StoreStatus *live_status(const struct repair *repair,
                                               const struct ps_images *images, int i)
{
	const Perseas__StoreStatus *told = i < 0 ? NULL : images->told[i];

	return told && told->live && ps_images_is_of_store(images, (unsigned)i) &&
	                       ps_is_same_owner(told->header->promised_owner, repair->owner)
	               ? told
	               : NULL;
}

/* Gives the order to a mirror that can pass it to the owner. The owner breaks the session of each
 * mirror that it repairs, so the same order may go to several mirrors: the owner carries it out
 * once. */
static enum ps_exit send_order(struct repair *repair, const struct ps_images *images)
{
	const Perseas__Request *requests[PS_MIRRORS_MAX] = { NULL };
	Perseas__OrderRequest ask = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__Order order = PERSEAS__ORDER__INIT;
	const Perseas__Request request = PS_REQUEST(order, ORDER, &ask);

	repair->at = -1;
	for (unsigned i = 0; i < repair->peers.count && repair->at < 0; i++)
		if (live_status(repair, images, (int)i))
			repair->at = (int)i;
	if (repair->at < 0)
		return ps_complain(PS_EXIT_PARTLY,
		                   "the owner of store '%s' went away before it had told the "
		                   "result: repeat this command",
		                   repair->args->store);
	order.id = (ProtobufCBinaryData){ PS_ID_SIZE, repair->id };
	order.kind = PERSEAS__ORDER_KIND__ORDER_REPAIR;
	/* The message has no const; it is only packed. */
	ask.store = (char *)repair->args->store;
	ask.order = &order;
	requests[repair->at] = &request;
	ps_peers_ask(&repair->peers, requests);
	return repair->peers.replies[repair->at]
	               ? PS_EXIT_OK
	               : ps_peers_complain(&repair->peers, (unsigned)repair->at);
}

/* Prints progress or the result. Returns the exit status of a result. */
static enum ps_exit report_order_result(struct repair *repair, const Perseas__OrderResult *result)
{
	if (result->done && result->code)
		return ps_complain(ps_exit_of_code(result->code), "%s", result->text);
	if (strcmp(repair->told, result->text) != 0 && (result->done || !repair->args->json))
		ps_announce(repair->args->json, "%s", result->text);
	snprintf(repair->told, sizeof(repair->told), "%s", result->text);
	return PS_EXIT_OK;
}

/* Asks the mirrors once, and gives the order to another mirror if the last one lost it. Sets *over
 * when the status is known. */
static enum ps_exit check_order(struct repair *repair, bool *over)
{
	const Perseas__StoreStatus *told;
	struct ps_images images;
	enum ps_exit status = PS_EXIT_OK;

	ps_images_fetch(&images, &repair->peers, repair->args->store);
	told = live_status(repair, &images, repair->at);
	if (told && told->result && ps_id_equal(told->result->id, repair->id)) {
		*over = told->result->done;
		status = report_order_result(repair, told->result);
	} else if (!told || !told->order || !ps_id_equal(told->order->id, repair->id)) {
		status = send_order(repair, &images);
		*over = status != PS_EXIT_OK;
	}
	ps_images_free(&images);
	return status;
}

static enum ps_exit await_order_result(struct repair *repair)
{
	struct ps_env *env = repair->peers.env;
	const uint64_t until_ns = env->ops->now(env) + (uint64_t)repair->args->wait_ms * 1000000;
	bool over = false;

	ps_stop_catch();
	/* The first look gives the order, so that the owner goes on when the time is over. */
	do {
		const enum ps_exit status = check_order(repair, &over);

		if (over)
			return status;
		poll(NULL, 0, LOOK_MS);
	} while (!ps_stop_requested() && env->ops->now(env) < until_ns);
	return ps_complain(PS_EXIT_PARTLY,
	                   "the owner goes on: %s; perseas status shows how far it is",
	                   repair->told);
}

enum ps_exit ps_repair_by_owner(const struct ps_args *args, bool differ)
{
	struct repair repair = { .args = args, .at = -1 };
	struct ps_images images;
	int owner;
	enum ps_exit status = ps_images_open(&images, &repair.peers, args->store, args->mirrors,
	                                     &args->options);

	if (status)
		return status;
	owner = ps_images_find_owner(&images);
	if (owner >= 0) {
		memcpy(repair.owner, images.told[owner]->header->promised_owner.data, PS_ID_SIZE);
		repair.peers.env->ops->random(repair.peers.env, repair.id, PS_ID_SIZE);
		status = await_order_result(&repair);
	} else if (differ) {
		status = ps_complain(
			PS_EXIT_NO,
			"nothing was changed: store '%s' has no live owner that could "
			"repair it. Start its program and repeat; or delete the wrong "
			"image (perseas drop %s MIRROR --yes), which the next owner, or "
			"perseas recover, makes anew",
			args->store, args->store);
	}
	ps_images_close(&images, &repair.peers);
	return status;
}
