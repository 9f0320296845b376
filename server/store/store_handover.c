/*
 * store_handover.c - standbys, which wait to own a store, and planned handovers: asks the owner to
 * let go, and measures how long the handover takes. control.c calls it, and so does store_session.c
 * when sessions begin and end. It is kept only in memory and is only advice: no claim is granted or
 * refused because of it.
 */
#include "store_private.h"

#include "../../proto/control/envelope.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A connection that said in a Watch that it wants to own the store. */
struct standby {
	struct standby *next, **link;
	struct session *session;
	char store[PS_NAME_MAX + 1], name[PS_NAME_MAX + 1];
	uint32_t order;
	uint8_t mark[PS_OWNER_MARK];
	uint64_t memory, warm; /* bytes of the segments, and of the standby's copy of them */
};

struct handover {
	uint8_t id[PS_ID_SIZE], to[PS_OWNER_MARK];
	char name[PS_NAME_MAX + 1];
	uint64_t epoch;      /* epoch of the owner that is asked to let go */
	uint64_t next_epoch; /* epoch of the last owner that claimed since; 0: none */
	uint64_t asked_ns;   /* time of the request */
	uint64_t until_ns;   /* time at which the handover is forgotten */
	uint64_t opened_ns;  /* time at which the next owner had opened the store; 0: not yet */
	struct session_end session_end; /* how the session of the asked owner ended */
	struct found_slot first_slot;
};

void stores_set_clock(struct stores *stores, uint64_t (*now_ns)(void))
{
	stores->now_ns = now_ns;
}

/* Returns the time in ns, never 0. */
static uint64_t now_ns(const struct store *store)
{
	return store->stores->now_ns ? store->stores->now_ns() : 1;
}

/* --- standbys --- */

void standby_forget(struct session *session)
{
	struct standby *standby = session->standby;

	if (!standby)
		return;
	assert(*standby->link == standby);
	*standby->link = standby->next;
	if (standby->next)
		standby->next->link = standby->link;
	free(standby);
	session->standby = NULL;
}

void standbys_forget(struct stores *stores)
{
	while (stores->standbys)
		standby_forget(stores->standbys->session);
}

static struct standby *find_or_add_standby(struct stores *stores, struct session *session)
{
	struct standby *standby = session->standby;

	if (standby)
		return standby;
	standby = calloc(1, sizeof(*standby));
	if (!standby)
		return NULL;
	standby->session = session;
	standby->next = stores->standbys;
	standby->link = &stores->standbys;
	if (standby->next)
		standby->next->link = &standby->next;
	session->standby = standby;
	stores->standbys = standby;
	return standby;
}

/* A sender that may not own the store is not recorded. */
void standby_record(struct stores *stores, struct session *session,
                    const Perseas__WatchRequest *request)
{
	const Perseas__Standby *told = request->standby;
	struct standby *standby;

	if (!told ||
	    !access_allows(stores->access, &session->identity, RIGHT_OWN, request->store)) {
		standby_forget(session);
		return;
	}
	standby = find_or_add_standby(stores, session);
	if (!standby)
		return;
	strcpy(standby->store, request->store);
	strcpy(standby->name, told->name);
	standby->order = told->order;
	memcpy(standby->mark, told->mark.data, PS_OWNER_MARK);
	standby->memory = told->memory;
	standby->warm = told->warm;
}

static Perseas__Standby *standby_message(struct standby *standby)
{
	Perseas__Standby *message = scratch_alloc(sizeof(*message));

	if (!message)
		return NULL;
	perseas__standby__init(message);
	message->name = standby->name;
	message->order = standby->order;
	message->mark = (ProtobufCBinaryData){ PS_OWNER_MARK, standby->mark };
	message->memory = standby->memory;
	message->warm = standby->warm;
	return message;
}

static bool list_standbys(const struct store *store, Perseas__StoreStatus *status)
{
	status->standbys = scratch_alloc(PS_STANDBYS_MAX * sizeof(status->standbys[0]));
	if (!status->standbys)
		return false;
	for (struct standby *standby = store->stores->standbys; standby; standby = standby->next) {
		if (strcmp(standby->store, store->name) != 0)
			continue;
		if (status->n_standbys == PS_STANDBYS_MAX)
			break;
		status->standbys[status->n_standbys] = standby_message(standby);
		if (!status->standbys[status->n_standbys])
			return false;
		status->n_standbys++;
	}
	return true;
}

/* --- the handover --- */

void handover_drop(struct store *store)
{
	free(store->handover);
	store->handover = NULL;
}

/* Returns the store's handover, or NULL if there is none or it has expired. */
static struct handover *current_handover(struct store *store)
{
	if (store->handover && now_ns(store) >= store->handover->until_ns)
		handover_drop(store);
	return store->handover;
}

ProtobufCBinaryData handover_id(struct store *store)
{
	struct handover *handover = current_handover(store);

	return handover ? (ProtobufCBinaryData){ PS_ID_SIZE, handover->id }
	                : (ProtobufCBinaryData){ 0, NULL };
}

static void find_slot(const struct store *store, struct found_slot *found_slot)
{
	found_slot->index = image_slot(&store->image, &found_slot->slot);
}

/* Records the end of a session even without a handover, because an owner may let go before the
 * request for the handover arrives here. */
void handover_record_end(struct store *store, bool released)
{
	struct handover *handover = current_handover(store);
	struct session_end *session_end = &store->session_end;

	assert(store->session);
	session_end->epoch = store->session->epoch;
	session_end->ns = now_ns(store);
	session_end->released = released;
	find_slot(store, &session_end->last_slot);
	if (handover && handover->epoch == session_end->epoch)
		handover->session_end = *session_end;
}

void handover_record_claim(struct store *store)
{
	struct handover *handover = current_handover(store);
	const uint64_t epoch = store->session->epoch;

	assert(epoch == store->header->promised_epoch);
	/* The owner whose session ended has reconnected. */
	if (store->session_end.epoch == epoch)
		store->session_end.epoch = 0;
	if (!handover || handover->opened_ns)
		return;
	/* A claim need not lead to an open, so the last claim counts. */
	if (epoch != handover->epoch)
		handover->next_epoch = epoch;
	else
		handover->session_end.epoch = 0;
}

void handover_record_confirm(struct store *store)
{
	struct handover *handover = current_handover(store);
	struct found_slot found_slot;

	if (!handover || handover->opened_ns || handover->next_epoch != store->session->epoch ||
	    store->session->is_rebuilding)
		return;
	/* A slot of the new owner's epoch is in the image, so this Confirm is its last step to open
	 * the store. */
	find_slot(store, &found_slot);
	if (found_slot.index < 0 || found_slot.slot.epoch != handover->next_epoch)
		return;
	assert(handover->next_epoch > 0 && handover->next_epoch != handover->epoch);
	handover->opened_ns = now_ns(store);
	handover->first_slot = found_slot;
}

/* Returns the time between two instants, at least 1, because 0 means that an event has not
 * happened. */
static uint64_t time_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 1;
}

static Perseas__Handover *handover_message(struct handover *handover)
{
	const struct session_end *session_end = &handover->session_end;
	Perseas__Handover *message = scratch_alloc(sizeof(*message));

	if (!message)
		return NULL;
	perseas__handover__init(message);
	message->id = (ProtobufCBinaryData){ PS_ID_SIZE, handover->id };
	message->epoch = handover->epoch;
	message->to = (ProtobufCBinaryData){ PS_OWNER_MARK, handover->to };
	message->name = handover->name;
	if (session_end->epoch != handover->epoch)
		return message;
	message->released = session_end->released;
	message->closing_ns = time_between(handover->asked_ns, session_end->ns);
	message->last = scratch_slot(&session_end->last_slot.slot, session_end->last_slot.index);
	if (!handover->opened_ns)
		return message;
	message->pause_ns = time_between(session_end->ns, handover->opened_ns);
	message->first = scratch_slot(&handover->first_slot.slot, handover->first_slot.index);
	return message;
}

Perseas__Handover *handover_for_owner(struct store *store)
{
	struct handover *handover = current_handover(store);

	if (!handover || !store->session || handover->epoch != store->session->epoch)
		return NULL;
	return handover_message(handover);
}

bool handover_status(struct store *store, Perseas__StoreStatus *status)
{
	struct handover *handover = current_handover(store);

	if (!list_standbys(store, status))
		return false;
	status->handover = handover ? handover_message(handover) : NULL;
	return !handover || status->handover;
}

/* Remembers the withdrawn id, because the request for it may still arrive on another connection. */
static int withdraw_handover(struct store *store, const Perseas__MoveRequest *request)
{
	memcpy(store->withdrawn_handover, request->id.data, PS_ID_SIZE);
	if (!store->handover || !same_id(request->id, handover_id(store)))
		return 0;
	handover_drop(store);
	store_report(store, STORE_HANDOVER_WITHDRAWN, store->session, 0, 0);
	return 0;
}

static int begin_handover(struct store *store, const Perseas__MoveRequest *request, struct why *why)
{
	struct handover *handover = calloc(1, sizeof(*handover));

	if (!handover)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	memcpy(handover->id, request->id.data, PS_ID_SIZE);
	memcpy(handover->to, request->to.data, PS_OWNER_MARK);
	strcpy(handover->name, request->name);
	handover->epoch = request->epoch;
	handover->asked_ns = now_ns(store);
	handover->until_ns = handover->asked_ns + (uint64_t)request->within_ms * 1000000;
	if (store->session_end.epoch == handover->epoch)
		handover->session_end = store->session_end;
	handover_drop(store);
	store->handover = handover;
	store_report(store, STORE_HANDOVER_REQUESTED, store->session, request->epoch, 0);
	return 0;
}

/* Returns true if the owner of this epoch holds the store now, or was the last to hold it and let
 * go before this mirror was asked. */
static bool holds_or_held_last(const struct store *store, uint64_t epoch)
{
	if (store->session)
		return session_lives(store->session) && store->session->epoch == epoch;
	return store->session_end.epoch == epoch && store->header->promised_epoch == epoch;
}

int store_move(struct stores *stores, const Perseas__MoveRequest *request, struct why *why)
{
	int ret;
	struct store *store = store_find_to_change(stores, request->store, &ret, why);
	const struct handover *pending;

	if (!store)
		return ret;
	if (request->withdraw)
		return withdraw_handover(store, request);
	if (!memcmp(store->withdrawn_handover, request->id.data, PS_ID_SIZE))
		return refuse(why, STATUS(BAD_STATE),
		              "that handover of store %s has been taken back", store->name);
	pending = current_handover(store);
	if (pending && same_id(request->id, handover_id(store)))
		return 0;
	if (!holds_or_held_last(store, request->epoch))
		return refuse(why, STATUS(BAD_STATE),
		              "store %s has no live owner of epoch %llu at this mirror; see who "
		              "owns it, and ask again",
		              store->name, (unsigned long long)request->epoch);
	if (pending && pending->epoch == request->epoch)
		return refuse(why, STATUS(BUSY),
		              "the owner of store %s is already asked to hand it over to %s; ask "
		              "again when that is over",
		              store->name, pending->name);
	return begin_handover(store, request, why);
}
