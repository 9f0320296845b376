/*
 * store_move.c - who waits to own a store, and its planned handover: an owner is asked to let go,
 * and what became of that is timed. control.c calls it, and so do the beginnings and ends of
 * sessions. It is in memory only, and advice: no claim is granted or refused for it.
 */
#include "store_private.h"

#include "../../proto/control/envelope.h"

#include <stdlib.h>
#include <string.h>

/* A connection that said in a Watch that it would own the store. */
struct standby {
	struct standby *next, **link;
	struct session *session;
	char store[PS_NAME_MAX + 1], name[PS_NAME_MAX + 1];
	uint32_t order;
	uint8_t mark[PS_OWNER_MARK];
	uint64_t memory, warm; /* as in its message */
};

struct handover {
	uint8_t id[PS_ID_SIZE], to[PS_OWNER_MARK];
	char name[PS_NAME_MAX + 1];
	uint64_t epoch;         /* of the owner that is asked */
	uint64_t next;          /* epoch of the last one that claimed since, 0: nobody has */
	uint64_t asked_ns;      /* when */
	uint64_t until_ns;      /* it is forgotten then */
	uint64_t opened_ns;     /* when the next owner had the store open, 0: it has not */
	struct parting parting; /* of the owner that is asked; others may come and go after it */
	struct stand first;
};

void stores_set_clock(struct stores *stores, uint64_t (*now_ns)(void))
{
	stores->now_ns = now_ns;
}

/* Never 0. */
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

static struct standby *standby_of(struct stores *stores, struct session *session)
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

/* Who may not own the store is none. */
void standby_note(struct stores *stores, struct session *session,
                  const Perseas__WatchRequest *request)
{
	const Perseas__Standby *told = request->standby;
	struct standby *standby;

	if (!told ||
	    !access_allows(stores->access, &session->identity, RIGHT_OWN, request->store)) {
		standby_forget(session);
		return;
	}
	standby = standby_of(stores, session);
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

static bool tell_standbys(const struct store *store, Perseas__StoreStatus *status)
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

/* NULL: there is none, or its time is over. */
static struct handover *handover_of(struct store *store)
{
	if (store->handover && now_ns(store) >= store->handover->until_ns)
		handover_drop(store);
	return store->handover;
}

ProtobufCBinaryData handover_id(struct store *store)
{
	struct handover *handover = handover_of(store);

	return handover ? (ProtobufCBinaryData){ PS_ID_SIZE, handover->id }
	                : (ProtobufCBinaryData){ 0, NULL };
}

static void note_stand(const struct store *store, struct stand *stand)
{
	stand->index = image_slot(&store->image, &stand->slot);
}

/* Also where no handover is known: the owner may let go before all mirrors have heard of it. */
void handover_ends(struct store *store, bool released)
{
	struct handover *handover = handover_of(store);
	struct parting *parting = &store->parting;

	parting->epoch = store->session->epoch;
	parting->ns = now_ns(store);
	parting->released = released;
	note_stand(store, &parting->at);
	if (handover && handover->epoch == parting->epoch)
		handover->parting = *parting;
}

void handover_claimed(struct store *store)
{
	struct handover *handover = handover_of(store);
	const uint64_t epoch = store->session->epoch;

	/* The owner whose connection broke is back. */
	if (store->parting.epoch == epoch)
		store->parting.epoch = 0;
	if (!handover || handover->opened_ns)
		return;
	/* A claim need not become an open: the next one counts then. */
	if (epoch != handover->epoch)
		handover->next = epoch;
	else
		handover->parting.epoch = 0;
}

void handover_confirmed(struct store *store)
{
	struct handover *handover = handover_of(store);
	struct stand stand;

	if (!handover || handover->opened_ns || handover->next != store->session->epoch ||
	    store->session->beside)
		return;
	/* Its adoption is here: it only has to hear that its claims stood. */
	note_stand(store, &stand);
	if (stand.index < 0 || stand.slot.epoch != handover->next)
		return;
	handover->opened_ns = now_ns(store);
	handover->first = stand;
}

/* 0 is kept for what has not happened. */
static uint64_t duration(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 1;
}

static Perseas__Handover *handover_message(struct handover *handover)
{
	const struct parting *parting = &handover->parting;
	Perseas__Handover *message = scratch_alloc(sizeof(*message));

	if (!message)
		return NULL;
	perseas__handover__init(message);
	message->id = (ProtobufCBinaryData){ PS_ID_SIZE, handover->id };
	message->epoch = handover->epoch;
	message->to = (ProtobufCBinaryData){ PS_OWNER_MARK, handover->to };
	message->name = handover->name;
	if (parting->epoch != handover->epoch)
		return message;
	message->released = parting->released;
	message->closing_ns = duration(handover->asked_ns, parting->ns);
	message->last = scratch_slot(&parting->at.slot, parting->at.index);
	if (!handover->opened_ns)
		return message;
	message->pause_ns = duration(parting->ns, handover->opened_ns);
	message->first = scratch_slot(&handover->first.slot, handover->first.index);
	return message;
}

Perseas__Handover *handover_asked(struct store *store)
{
	struct handover *handover = handover_of(store);

	if (!handover || !store->session || handover->epoch != store->session->epoch)
		return NULL;
	return handover_message(handover);
}

bool handover_status(struct store *store, Perseas__StoreStatus *status)
{
	struct handover *handover = handover_of(store);

	if (!tell_standbys(store, status))
		return false;
	status->handover = handover ? handover_message(handover) : NULL;
	return !handover || status->handover;
}

/* The request for it may still be on its way, by another connection, and would be news then. */
static int withdraw(struct store *store, const Perseas__MoveRequest *request)
{
	memcpy(store->withdrawn, request->id.data, PS_ID_SIZE);
	if (!store->handover || !same_id(request->id, handover_id(store)))
		return 0;
	handover_drop(store);
	store_tell(store, STORE_HANDOVER_OVER, store->session, 0, 0);
	return 0;
}

static int begin(struct store *store, const Perseas__MoveRequest *request, struct why *why)
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
	if (store->parting.epoch == handover->epoch)
		handover->parting = store->parting;
	handover_drop(store);
	store->handover = handover;
	store_tell(store, STORE_HANDOVER, store->session, request->epoch, 0);
	return 0;
}

/* Is that the present owner, or the last one, which let go before this mirror was asked? */
static bool had_owner(const struct store *store, uint64_t epoch)
{
	if (store->session)
		return session_lives(store->session) && store->session->epoch == epoch;
	return store->parting.epoch == epoch && store->header->promised_epoch == epoch;
}

int store_move(struct stores *stores, const Perseas__MoveRequest *request, struct why *why)
{
	int ret;
	struct store *store = store_to_change(stores, request->store, &ret, why);
	const struct handover *pending;

	if (!store)
		return ret;
	if (request->withdraw)
		return withdraw(store, request);
	if (!memcmp(store->withdrawn, request->id.data, PS_ID_SIZE))
		return refuse(why, STATUS(BAD_STATE),
		              "that handover of store %s has been taken back", store->name);
	pending = handover_of(store);
	if (pending && same_id(request->id, handover_id(store)))
		return 0;
	if (!had_owner(store, request->epoch))
		return refuse(why, STATUS(BAD_STATE),
		              "store %s has no live owner of epoch %llu at this mirror; see who "
		              "owns it, and ask again",
		              store->name, (unsigned long long)request->epoch);
	if (pending && pending->epoch == request->epoch)
		return refuse(why, STATUS(BUSY),
		              "the owner of store %s is already asked to hand it over to %s; ask "
		              "again when that is over",
		              store->name, pending->name);
	return begin(store, request, why);
}
