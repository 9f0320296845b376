/*
 * store_watch.c - tells whether a store has gained or lost its owner, or is to be handed over,
 * since a client last looked. control.c calls it, again whenever a store has an event or time may
 * have changed the answer. It changes nothing.
 */
#include "store_private.h"

#include <string.h>

/* Returns in how many milliseconds the owner will have been silent for too long. */
static uint64_t ms_to_silence(const struct store *store)
{
	struct session *session = store->session;
	const uint64_t limit = store->stores->owner_timeout_ms;
	uint64_t silent;

	if (!session || !session->ops->silent_ms || limit == 0)
		return UINT64_MAX;
	silent = session->ops->silent_ms(session);
	return silent > limit ? UINT64_MAX : limit - silent + 1;
}

/* Returns true if the present handover has this id, or there is none and the id is empty. */
static bool has_handover_id(struct store *store, ProtobufCBinaryData seen)
{
	const ProtobufCBinaryData id = handover_id(store);

	return id.len == seen.len && (id.len == 0 || memcmp(id.data, seen.data, id.len) == 0);
}

bool store_is_unchanged(struct stores *stores, const Perseas__WatchRequest *request, uint64_t *ms)
{
	struct why why;
	int ret;
	struct store *store = store_find_sound(stores, request->store, &ret, &why);

	if (!store || store->header->promised_epoch != request->epoch ||
	    session_lives(store->session) != (bool)request->live ||
	    !has_handover_id(store, request->handover))
		return false;
	*ms = ms_to_silence(store);
	return true;
}

int store_watch(struct stores *stores, const Perseas__WatchRequest *request,
                Perseas__WatchReply *reply, struct why *why)
{
	int ret = 0;
	struct store *store = store_find_sound(stores, request->store, &ret, why);

	if (!store)
		return ret;
	reply->epoch = store->header->promised_epoch;
	reply->live = session_lives(store->session);
	reply->handover = handover_id(store);
	return 0;
}
