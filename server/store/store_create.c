/*
 * store_create.c - creates, settles, abandons and drops stores. control.c calls it. A store that is
 * not settled must not be used, because its creator may give up.
 */
#include "store_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool copy_bytes(ProtobufCBinaryData *to, ProtobufCBinaryData from)
{
	to->data = malloc(from.len ? from.len : 1);
	if (!to->data)
		return false;
	memcpy(to->data, from.data, from.len);
	to->len = from.len;
	return true;
}

/* Returns a new header in state CREATING, or NULL if memory is out. */
static Perseas__Header *new_header(const Perseas__CreateRequest *request, const char *creator)
{
	Perseas__Header *header = malloc(sizeof(*header));

	if (!header)
		return NULL;
	perseas__header__init(header);
	header->store = strdup(request->store);
	header->roster = ps_roster_copy(request->roster);
	header->state = STATE(CREATING);
	header->log_size = request->log_size;
	header->generation = 1;
	if (!header->store || !header->roster || !header_set_identity(&header->creator, creator) ||
	    !copy_bytes(&header->store_id, request->store_id) ||
	    !copy_bytes(&header->image_id, request->image_id) ||
	    (request->key.len > 0 && !copy_bytes(&header->key, request->key))) {
		header_free(header);
		return NULL;
	}
	return header;
}

/* Inserts a new store with this name. Refuses if the name is taken, even by a store that is still
 * being created: only its creator may go on with it, and only a client that abandons it at the
 * first mirror of its roster may remove it. */
static int insert_new(struct stores *stores, const char *name, struct store **place,
                      struct why *why)
{
	struct store *store = store_find(stores, name);

	if (store && store->header && store->header->state == STATE(CREATING))
		return refuse(why, STATUS(EXISTS),
		              "store %s is being created on this mirror by another create", name);
	if (store)
		return refuse(why, STATUS(EXISTS), "this mirror has a store named %s already",
		              name);
	if (stores->count >= STORES_MAX)
		return refuse(why, STATUS(LIMIT), "this mirror has %d stores, the most it takes",
		              STORES_MAX);
	store = store_insert(stores, name);
	if (!store)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	*place = store;
	return 0;
}

/* Makes the pieces first, because the header makes the store exist. */
static int make_store(struct store *store, Perseas__Header *header, struct why *why)
{
	struct image image;
	int ret;

	ret = image_make(store, header, header->generation, &image, why);
	if (ret) {
		header_free(header);
		return ret;
	}
	ps_image_init_slots(image.regions[PS_REGION_LOG].base);
	ret = header_commit(store, header, why);
	if (ret) {
		image_remove(store, &image);
		return ret;
	}
	store->image = image;
	return 0;
}

int store_create(struct stores *stores, const struct identity *who,
                 const Perseas__CreateRequest *request, struct why *why)
{
	const char *creator = who ? who->name : NULL;
	Perseas__Header *header;
	struct store *store = NULL;
	int ret = stores_check_open(stores, why);

	if (ret)
		return ret;
	ret = quota_check_create(stores, creator, store_find(stores, request->store),
	                         PS_RING_OFFSET + request->log_size, why);
	if (!ret)
		ret = insert_new(stores, request->store, &store, why);
	if (!store)
		return ret;
	header = new_header(request, creator);
	if (header)
		ret = make_store(store, header, why);
	else
		ret = refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	if (ret) {
		pieces_sweep(store, NULL);
		store_delete(store);
	}
	return ret;
}

int store_settle(struct stores *stores, const Perseas__SettleRequest *request, struct why *why)
{
	Perseas__Header *header;
	int ret;
	struct store *store = store_find_to_change(stores, request->store, &ret, why);

	if (!store)
		return ret;
	if (!same_id(store->header->store_id, request->store_id))
		return refuse(why, STATUS(BAD_STATE), "store %s was made by another create",
		              store->name);
	if (store->header->state == STATE(CONSISTENT))
		return 0;
	if (store->header->state != STATE(CREATING))
		return refuse(why, STATUS(BAD_STATE), "store %s is not being created", store->name);
	ret = header_edit(store->header, &header, why);
	if (ret)
		return ret;
	header->state = STATE(CONSISTENT);
	ret = header_commit(store, header, why);
	if (!ret)
		store_report(store, STORE_CREATED, NULL, 0, 0);
	return ret;
}

/* Removes the header first: if the removal of a store is interrupted, a restart ignores pieces
 * without a header, but would serve the store again if the header were left. */
static int remove_header(const struct store *store, struct why *why)
{
	struct memory *memory = store->stores->memory;
	char reason[ERRNO_TEXT];

	if (store_folder_is_renamed(store))
		return refuse_moved(store, why);
	if (memory->ops->remove(memory, store->name, "header") == 0)
		return 0;
	return refuse(why, STATUS(IO),
	              "the header of store %s cannot be removed%s, and its image is kept; look at "
	              "the memory directory's file system",
	              store->name, errno_text(reason, errno));
}

static void remove_store(struct store *store)
{
	image_close(store, &store->image);
	pieces_sweep(store, NULL);
	store_delete(store);
}

int store_abandon(struct stores *stores, const Perseas__AbandonRequest *request, struct why *why)
{
	int ret = stores_check_open(stores, why);
	struct store *store = ret ? NULL : store_find_served(stores, request->store, &ret, why);

	if (!store)
		return ret;
	if (!store->header || store->header->state != STATE(CREATING) ||
	    !same_id(store->header->store_id, request->store_id))
		return refuse(why, STATUS(BAD_STATE),
		              "store %s is not being created by this caller", store->name);
	ret = remove_header(store, why);
	if (!ret)
		remove_store(store);
	return ret;
}

/* Returns true if the request names this image. A damaged image may be dropped without ids, because
 * nobody may be able to read them. */
static bool names_image(const struct store *store, const Perseas__DropRequest *request)
{
	if (request->store_id.len == 0 && request->image_id.len == 0)
		return store->damage[0] != '\0';
	return store->header && same_id(store->header->store_id, request->store_id) &&
	       same_id(store->header->image_id, request->image_id);
}

/* Refuses a sender without a claim if it asks for a drop under its claim, or if a live owner has
 * one. A sender with the claim has held it since before it read the slot, so no other owner has
 * written to the image since. */
static int check_dropper(const struct store *store, struct session *session,
                         const Perseas__DropRequest *request, struct why *why)
{
	if (session && session->store == store)
		return 0;
	if (request->claimed)
		return refuse(why, STATUS(NO_SESSION),
		              "this connection holds no claim on store %s, or lost it to another "
		              "owner",
		              store->name);
	if (session_lives(store->session))
		return refuse(why, STATUS(BUSY), "store %s has a live owner at %s", store->name,
		              store->session->peer);
	return 0;
}

int store_drop(struct stores *stores, struct session *session, const Perseas__DropRequest *request,
               struct why *why)
{
	int ret = stores_check_open(stores, why);
	struct store *store = ret ? NULL : store_find_served(stores, request->store, &ret, why);

	if (!store)
		return ret;
	if (!names_image(store, request))
		return refuse(why, STATUS(BAD_STATE),
		              "the ids are not those of the image of store %s that this mirror "
		              "has; only a damaged image is dropped without ids",
		              store->name);
	ret = check_dropper(store, session, request, why);
	if (ret)
		return ret;
	promise_retire(store);
	if (store->session)
		session_detach(store);
	ret = remove_header(store, why);
	if (ret)
		return ret;
	store_report(store, STORE_DROPPED, NULL, 0, 0);
	remove_store(store);
	return 0;
}
