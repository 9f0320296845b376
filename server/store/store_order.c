/*
 * store_order.c - what the owner of a live session reports and counts, the order that an operator
 * gave to the owner, and the order's result. All of it is kept only in memory and ends with the
 * session. control.c calls it.
 */
#include "store_private.h"
#include "../../proto/control/version.h"

#include "../../proto/base/latency.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct owner_reports {
	Perseas__ConfirmRequest *confirm; /* the last Confirm that had reports; NULL: none */
	Perseas__Order *order;            /* NULL: none */
	Perseas__OrderResult *result;     /* last result of the order; NULL: none */
	Perseas__OwnerFigures *figures;   /* last counters of the owner; NULL: none */
};

/* Returns a deep copy, or NULL if memory is out. Message checks have bounded its size. */
static void *copy_message(const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = malloc(len ? len : 1);
	void *result;

	if (!bytes)
		return NULL;
	protobuf_c_message_pack(message, bytes);
	result = protobuf_c_message_unpack(message->descriptor, NULL, len, bytes);
	free(bytes);
	return result;
}

static void discard_message(void *message)
{
	if (message)
		protobuf_c_message_free_unpacked(message, NULL);
}

void owner_reports_drop(struct store *store)
{
	struct owner_reports *owner_reports = store->owner_reports;

	if (!owner_reports)
		return;
	discard_message(owner_reports->confirm);
	discard_message(owner_reports->order);
	discard_message(owner_reports->result);
	discard_message(owner_reports->figures);
	free(owner_reports);
	store->owner_reports = NULL;
}

static struct owner_reports *get_owner_reports(struct store *store, struct why *why)
{
	if (!store->owner_reports)
		store->owner_reports = calloc(1, sizeof(*store->owner_reports));
	if (!store->owner_reports)
		refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	return store->owner_reports;
}

static bool order_is_done(const struct owner_reports *owner_reports)
{
	return owner_reports->result && owner_reports->result->done;
}

/* Returns true if the result is of the present order and that order is not done yet. */
static bool is_news(const struct owner_reports *owner_reports, const Perseas__OrderResult *result)
{
	return result && owner_reports->order && same_id(result->id, owner_reports->order->id) &&
	       !order_is_done(owner_reports);
}

/* Copies the reports of a Confirm into a Confirm of their own. Returns NULL if memory is out. */
static void *copy_reports(const Perseas__ConfirmRequest *request)
{
	Perseas__ConfirmRequest reports = PERSEAS__CONFIRM_REQUEST__INIT;

	reports.n_mirrors = request->n_mirrors;
	reports.mirrors = request->mirrors;
	reports.boot = request->boot;
	return copy_message(&reports.base);
}

/* Returns true if no counter has fallen. A message may be NULL. */
static bool figures_grew(const Perseas__OwnerFigures *earlier, const Perseas__OwnerFigures *later)
{
	if (!earlier || !later)
		return true;
	return later->commits >= earlier->commits && later->aborts >= earlier->aborts &&
	       later->range_bytes >= earlier->range_bytes && later->in_doubt >= earlier->in_doubt &&
	       later->paced >= earlier->paced && later->paced_ms >= earlier->paced_ms &&
	       later->saved_within >= earlier->saved_within &&
	       later->saved_between >= earlier->saved_between &&
	       later->resync_bytes >= earlier->resync_bytes &&
	       ps_latency_grew(earlier->commit, later->commit);
}

/* Frees the old message and returns the copied one. If that is NULL, returns the old message. */
static void *latest_message(void *old, void *copied)
{
	if (!copied)
		return old;
	discard_message(old);
	return copied;
}

int owner_reports_update(struct store *store, const Perseas__ConfirmRequest *request,
                         struct why *why)
{
	struct owner_reports *owner_reports = get_owner_reports(store, why);
	void *told = NULL, *result = NULL, *figures = NULL;
	bool news;

	assert(store->session);
	if (!owner_reports)
		return -STATUS(NO_MEMORY);
	if (!figures_grew(owner_reports->figures, request->figures))
		return refuse(why, STATUS(BAD_REQUEST),
		              "the counters that an owner reports must not decrease");
	news = is_news(owner_reports, request->result);
	if ((request->n_mirrors > 0 && !(told = copy_reports(request))) ||
	    (news && !(result = copy_message(&request->result->base))) ||
	    (request->figures && !(figures = copy_message(&request->figures->base)))) {
		discard_message(told);
		discard_message(result);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	owner_reports->confirm = latest_message(owner_reports->confirm, told);
	owner_reports->result = latest_message(owner_reports->result, result);
	owner_reports->figures = latest_message(owner_reports->figures, figures);
	return 0;
}

Perseas__Order *store_pending_order(const struct store *store)
{
	const struct owner_reports *owner_reports = store->owner_reports;

	return owner_reports && owner_reports->order && !order_is_done(owner_reports)
	               ? owner_reports->order
	               : NULL;
}

bool owner_reports_fill_status(const struct store *store, Perseas__StoreStatus *status)
{
	const struct owner_reports *owner_reports = store->owner_reports;

	if (!owner_reports)
		return true;
	if (owner_reports->confirm) {
		status->n_mirrors = owner_reports->confirm->n_mirrors;
		status->mirrors = owner_reports->confirm->mirrors;
		status->owner_boot = owner_reports->confirm->boot;
	}
	status->order = owner_reports->order;
	status->figures = owner_reports->figures;
	if (!owner_reports->result)
		return true;
	status->result = scratch_alloc(sizeof(*status->result));
	if (status->result)
		*status->result = *owner_reports->result;
	return status->result != NULL;
}

/* Handles an order that has the id of the present one: a cancel replaces that, so that both have
 * one result; a repetition changes nothing. */
static int order_again(struct owner_reports *owner_reports, const Perseas__Order *order,
                       struct why *why)
{
	Perseas__Order *cancel;

	if (order->kind != PERSEAS__ORDER_KIND__ORDER_CANCEL)
		return 0;
	cancel = copy_message(&order->base);
	if (!cancel)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	discard_message(owner_reports->order);
	owner_reports->order = cancel;
	return 0;
}

int store_order(struct stores *stores, const Perseas__OrderRequest *request, struct why *why)
{
	struct owner_reports *owner_reports;
	Perseas__Order *order;
	int ret;
	struct store *store = store_find_to_change(stores, request->store, &ret, why);

	if (!store)
		return ret;
	if (!session_lives(store->session))
		return refuse(why, STATUS(BAD_STATE),
		              "store %s has no live owner at this mirror, which could carry the "
		              "order out; open the store, or ask another mirror",
		              store->name);
	if (store->session->version &&
	    ps_version_needed_by(&request->order->base) > store->session->version)
		return refuse(why, STATUS(BAD_VERSION),
		              "the owner of store %s speaks version %u of the protocol, which does "
		              "not know this order: upgrade its program, or stop it, and try again",
		              store->name, store->session->version);
	owner_reports = get_owner_reports(store, why);
	if (!owner_reports)
		return -STATUS(NO_MEMORY);
	if (owner_reports->order && same_id(owner_reports->order->id, request->order->id))
		return order_again(owner_reports, request->order, why);
	if (store_pending_order(store))
		return refuse(why, STATUS(BUSY),
		              "the owner of store %s still carries out another order; ask again "
		              "when that is over",
		              store->name);
	order = copy_message(&request->order->base);
	if (!order)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	discard_message(owner_reports->order);
	discard_message(owner_reports->result);
	owner_reports->order = order;
	owner_reports->result = NULL;
	return 0;
}
