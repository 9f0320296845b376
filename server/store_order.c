/*
 * store_order.c - the board of a live session: what its owner reports, what an operator asks of
 * it, and what became of that. It is in memory only, and gone with the session.
 */
#include "store_private.h"

#include <stdlib.h>
#include <string.h>

struct board {
	Perseas__ConfirmRequest *told;  /* the last one that had reports; NULL: none yet */
	Perseas__Order *order;          /* NULL: none yet */
	Perseas__OrderResult *result;   /* of the order, the last that was told; NULL: none */
};

/* A deep copy, which the checks of messages have bounded; NULL: out of memory. */
static void *copy(const ProtobufCMessage *message)
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

static void discard(void *message)
{
	if (message)
		protobuf_c_message_free_unpacked(message, NULL);
}

void board_drop(struct store *store)
{
	struct board *board = store->board;

	if (!board)
		return;
	discard(board->told);
	discard(board->order);
	discard(board->result);
	free(board);
	store->board = NULL;
}

static struct board *board_of(struct store *store, struct why *why)
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

/* A result that is over stays; one of another order is nobody's. */
static bool is_news(const struct board *board, const Perseas__OrderResult *result)
{
	return result && board->order && same_id(result->id, board->order->id) &&
	       !is_done(board);
}

int board_tell(struct store *store, const Perseas__ConfirmRequest *request, struct why *why)
{
	struct board *board = board_of(store, why);
	void *told = NULL, *result = NULL;

	if (!board)
		return -STATUS(NO_MEMORY);
	if (request->n_mirrors > 0)
		told = copy(&request->base);
	if (is_news(board, request->result))
		result = copy(&request->result->base);
	if ((request->n_mirrors > 0 && !told) || (is_news(board, request->result) && !result)) {
		discard(told);
		discard(result);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	if (told) {
		discard(board->told);
		board->told = told;
	}
	if (result) {
		discard(board->result);
		board->result = result;
	}
	return 0;
}

Perseas__Order *board_order(const struct store *store)
{
	const struct board *board = store->board;

	return board && board->order && !is_done(board) ? board->order : NULL;
}

void board_status(const struct store *store, Perseas__StoreStatus *status)
{
	const struct board *board = store->board;

	if (!board)
		return;
	if (board->told) {
		status->n_mirrors = board->told->n_mirrors;
		status->mirrors = board->told->mirrors;
	}
	status->order = board->order;
	status->result = board->result;
}

int store_order(struct stores *stores, const Perseas__OrderRequest *request, struct why *why)
{
	struct board *board;
	Perseas__Order *order;
	int ret;
	struct store *store = store_to_change(stores, request->store, &ret, why);

	if (!store)
		return ret;
	if (!session_lives(store->session))
		return refuse(why, STATUS(BAD_STATE),
		              "store %s has no live owner at this mirror, which could carry the "
		              "order out; open the store, or ask another mirror", store->name);
	board = board_of(store, why);
	if (!board)
		return -STATUS(NO_MEMORY);
	if (board->order && same_id(board->order->id, request->order->id))
		return 0;
	if (board_order(store))
		return refuse(why, STATUS(BUSY),
		              "the owner of store %s still carries out another order; ask again "
		              "when that is over", store->name);
	order = copy(&request->order->base);
	if (!order)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	discard(board->order);
	discard(board->result);
	board->order = order;
	board->result = NULL;
	return 0;
}
