/*
 * store_set_aside.c - lists images that were set aside. control.c calls it. It changes nothing:
 * people must remove these folders.
 */
#include "store_private.h"

#include <string.h>

enum { ASIDES_MAX = 64 }; /* maximum number of listed images, so that the reply stays small */

struct listing {
	const struct access *access;
	const struct identity *who;
	Perseas__ListReply *reply;
	bool out_of_memory;
};

/* Returns true if the listing may show this folder, whose name is a dot, the store's name and
 * ".aside-" with a number. */
static bool may_see(const struct listing *listing, const char *name)
{
	const char *end = strrchr(name, '.');
	char store[PS_NAME_MAX + 1];

	if (!end || end <= name + 1 || (size_t)(end - name) > sizeof(store))
		return false;
	memcpy(store, name + 1, (size_t)(end - name) - 1);
	store[end - name - 1] = '\0';
	return access_allows(listing->access, listing->who, RIGHT_READ, store);
}

static void add_set_aside_image(void *arg, const char *name)
{
	struct listing *listing = arg;
	Perseas__ListReply *reply = listing->reply;
	const size_t length = strlen(name) + 1;
	Perseas__SetAside *told;

	if (reply->n_set_aside == ASIDES_MAX || !may_see(listing, name))
		return;
	told = scratch_alloc(sizeof(*told));
	listing->out_of_memory |= !told;
	if (!told)
		return;
	perseas__set_aside__init(told);
	told->folder = scratch_alloc(length);
	listing->out_of_memory |= !told->folder;
	if (!told->folder)
		return;
	memcpy(told->folder, name, length);
	reply->set_aside[reply->n_set_aside++] = told;
}

int store_list_set_aside(struct stores *stores, const struct identity *who,
                         Perseas__ListReply *reply, struct why *why)
{
	struct memory *memory = stores->memory;
	struct listing listing = { who ? stores->access : NULL, who, reply, false };

	if (!memory->ops->list_set_aside)
		return 0;
	reply->set_aside = scratch_alloc(ASIDES_MAX * sizeof(*reply->set_aside));
	if (!reply->set_aside)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	memory->ops->list_set_aside(memory, add_set_aside_image, &listing);
	return listing.out_of_memory ? refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory")
	                             : 0;
}

int store_list_refused(struct stores *stores, const struct identity *who, Perseas__ListReply *reply,
                       struct why *why)
{
	const struct access *access = who ? stores->access : NULL;

	reply->refused = scratch_alloc((stores->count + 1) * sizeof(*reply->refused));
	if (!reply->refused)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	for (struct store *store = stores->first; store; store = store->next) {
		Perseas__RefusedImage *told;

		if (store->header || !store->damage[0] ||
		    !access_allows(access, who, RIGHT_READ, store->name))
			continue;
		told = scratch_alloc(sizeof(*told));
		if (!told)
			return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
		perseas__refused_image__init(told);
		told->store = store->name;
		told->why = store->damage;
		reply->refused[reply->n_refused++] = told;
	}
	return 0;
}
