/*
 * store_order.c - the board of a live session: what its owner reports and counts, the order that an
 * operator gave it, and the result. It is kept only in memory and ends with the session.
 */
#include "store_private.h"
#include "../../proto/control/version.h"

#include "../../proto/base/latency.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct board {
	Perseas__ConfirmRequest *told;  /* the last Confirm that had reports; NULL: none */
	Perseas__Order *order;          /* NULL: none */
	Perseas__OrderResult *result;   /* last result of the order; NULL: none */
	Perseas__OwnerFigures *figures; /* last counters of the owner; NULL: none */
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

void board_drop(struct store *store)
{
	struct board *board = store->board;

	if (!board)
		return;
	discard_message(board->told);
	discard_message(board->order);
	discard_message(board->result);
	discard_message(board->figures);
	free(board);
	store->board = NULL;
}

static struct board *board_or_new(struct store *store, struct why *why)
{
	if (!store->board)
		store->board = calloc(1, sizeof(*store->board));
	if (!store->board)
		refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	return store->board;
}

static bool is_done(const struct board *board)
{
	return board->result && board->result->done;
}

/* Returns true if the result is of the present order and that is not done yet. */
static bool is_news(const struct board *board, const Perseas__OrderResult *result)
{
	return result && board->order && same_id(result->id, board->order->id) && !is_done(board);
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
	       later->saved_within >= earlier->saved_within &&
	       later->saved_between >= earlier->saved_between &&
	       ps_latency_grew(earlier->commit, later->commit);
}

/* Replaces the old message by the copy, unless that is NULL. Returns the one that is kept. */
static void *latest_message(void *old, void *copied)
{
	if (!copied)
		return old;
	discard_message(old);
	return copied;
}

int board_update(struct store *store, const Perseas__ConfirmRequest *request, struct why *why)
{
	struct board *board = board_or_new(store, why);
	void *told = NULL, *result = NULL, *figures = NULL;
	bool news;

	assert(store->session);
	if (!board)
		return -STATUS(NO_MEMORY);
	if (!figures_grew(board->figures, request->figures))
		return refuse(why, STATUS(BAD_REQUEST),
		              "the counters that an owner reports must not decrease");
	news = is_news(board, request->result);
	if ((request->n_mirrors > 0 && !(told = copy_reports(request))) ||
	    (news && !(result = copy_message(&request->result->base))) ||
	    (request->figures && !(figures = copy_message(&request->figures->base)))) {
		discard_message(told);
		discard_message(result);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	board->told = latest_message(board->told, told);
	board->result = latest_message(board->result, result);
	board->figures = latest_message(board->figures, figures);
	return 0;
}

Perseas__Order *board_order(const struct store *store)
{
	const struct board *board = store->board;

	return board && board->order && !is_done(board) ? board->order : NULL;
}

bool board_status(const struct store *store, Perseas__StoreStatus *status)
{
	const struct board *board = store->board;

	if (!board)
		return true;
	if (board->told) {
		status->n_mirrors = board->told->n_mirrors;
		status->mirrors = board->told->mirrors;
		status->owner_boot = board->told->boot;
	}
	status->order = board->order;
	status->figures = board->figures;
	if (!board->result)
		return true;
	status->result = scratch_alloc(sizeof(*status->result));
	if (status->result)
		*status->result = *board->result;
	return status->result != NULL;
}

/* Handles an order with the id of the present one: a cancel replaces it, so that the result is that
 * of both, and a repetition changes nothing. */
static int order_again(struct board *board, const Perseas__Order *order, struct why *why)
{
	Perseas__Order *cancel;

	if (order->kind != PERSEAS__ORDER_KIND__ORDER_CANCEL)
		return 0;
	cancel = copy_message(&order->base);
	if (!cancel)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	discard_message(board->order);
	board->order = cancel;
	return 0;
}

int store_order(struct stores *stores, const Perseas__OrderRequest *request, struct why *why)
{
	struct board *board;
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
	board = board_or_new(store, why);
	if (!board)
		return -STATUS(NO_MEMORY);
	if (board->order && same_id(board->order->id, request->order->id))
		return order_again(board, request->order, why);
	if (board_order(store))
		return refuse(why, STATUS(BUSY),
		              "the owner of store %s still carries out another order; ask again "
		              "when that is over",
		              store->name);
	order = copy_message(&request->order->base);
	if (!order)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	discard_message(board->order);
	discard_message(board->result);
	board->order = order;
	board->result = NULL;
	return 0;
}
