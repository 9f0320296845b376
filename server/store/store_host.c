/*
 * store_host.c - reports where this daemon runs and what memory it has left, for clients that
 * choose mirrors for new stores (HostRequest), and for its owners (Confirm). control.c calls it. It
 * changes no store.
 */
#include "store_private.h"

void stores_set_labels(struct stores *stores, const struct labels *labels)
{
	stores->labels = *labels;
}

const struct labels *stores_labels(const struct stores *stores)
{
	return &stores->labels;
}

/* Returns how many bytes new images can have, by the limit and by what the system has left. */
static uint64_t room_left(struct memory *memory, uint64_t used, uint64_t limit)
{
	const uint64_t left = limit > used ? limit - used : 0;
	const uint64_t room = memory->ops->room ? memory->ops->room(memory) : UINT64_MAX;

	return limit && left < room ? left : room;
}

Perseas__Location *store_location(const struct stores *stores)
{
	struct memory *memory = stores->memory;
	const struct labels *labels = &stores->labels;
	const uint8_t *boot = memory->ops->boot ? memory->ops->boot(memory) : NULL;
	Perseas__Location *location;

	if (!boot && !*labels->host && !*labels->rack && !*labels->zone)
		return NULL;
	location = scratch_alloc(sizeof(*location));
	if (!location)
		return NULL;
	perseas__location__init(location);
	location->host = (char *)(uintptr_t)labels->host;
	location->rack = (char *)(uintptr_t)labels->rack;
	location->zone = (char *)(uintptr_t)labels->zone;
	if (boot)
		location->boot = (ProtobufCBinaryData){ PS_ID_SIZE, (uint8_t *)(uintptr_t)boot };
	return location;
}

void store_host(struct stores *stores, Perseas__HostReply *reply)
{
	struct memory *memory = stores->memory;
	const uint8_t *boot = memory->ops->boot ? memory->ops->boot(memory) : NULL;

	if (boot)
		reply->boot = (ProtobufCBinaryData){ PS_ID_SIZE, (uint8_t *)(uintptr_t)boot };
	reply->host = stores->labels.host;
	reply->rack = stores->labels.rack;
	reply->zone = stores->labels.zone;
	reply->memory_used = memory->ops->used(memory);
	reply->memory_limit = memory->ops->limit(memory);
	reply->memory_room = room_left(memory, reply->memory_used, reply->memory_limit);
	reply->stores = stores->count;
	for (const struct store *store = stores->first; store; store = store->next)
		reply->owners += store->session != NULL;
}
