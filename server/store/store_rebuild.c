/*
 * store_rebuild.c - makes a new image where the image was lost, or next to the present image, which
 * the new one replaces when the owner says that it is complete. control.c calls it. Until then the
 * new image has no vote (I8, I9).
 */
#include "rights.h"
#include "store_private.h"
#include "../host/jobs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets the parent id in the header of a new image: that of the image that it replaces if both have
 * the same image id, else none. Returns false if memory is out. */
static bool set_parent(Perseas__Header *header, const Perseas__Header *before)
{
	ProtobufCBinaryData *parent = &header->parent_id;

	free(parent->data);
	*parent = (ProtobufCBinaryData){ 0, NULL };
	if (!before || before->parent_id.len == 0 || !same_id(before->image_id, header->image_id))
		return true;
	parent->data = malloc(before->parent_id.len);
	if (!parent->data)
		return false;
	memcpy(parent->data, before->parent_id.data, before->parent_id.len);
	parent->len = before->parent_id.len;
	return true;
}

/* Makes the header of a new image from the request and from what only this mirror knows. */
static int rebuilt_header(const struct store *store, const struct session *session,
                          const Perseas__RebuildRequest *request, uint64_t generation,
                          Perseas__Header **edit, struct why *why)
{
	const char *who = session->identity.name;
	const char *creator = store->header ? store->header->creator : who;
	int ret = header_edit(request->header, edit, why);
	Perseas__Header *header = *edit;

	if (ret)
		return ret;
	header->state = STATE(JOINING);
	header->harmless = false;
	header->shared = session->shared || session_may_share(session, store, request->shared);
	header->generation = generation;
	if (set_parent(header, store->header) && header_set_identity(&header->creator, creator) &&
	    header_set_identity(&header->sharer, header->shared ? who : NULL) &&
	    header_set_promise(header, request->epoch, request->owner))
		return 0;
	header_free(header);
	return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
}

static int fill_rebuild_reply(struct session *session, Perseas__RebuildReply *reply,
                              struct why *why)
{
	reply->header = scratch_alloc(sizeof(*reply->header));
	if (!reply->header)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	header_without_key(reply->header, session_header(session));
	return session_make_grant(session, &reply->grant, why);
}

/* Drops the pieces of an earlier rebuild, makes empty pieces, and points the session's data path at
 * them. On failure, the data path still leads to the image if the session has not rebuilt before.
 * Otherwise it leads to the earlier pieces, or nowhere once these are dropped, but never back to
 * the image. */
static int make_rebuilt(struct session *session, const Perseas__RebuildRequest *request,
                        struct why *why)
{
	struct store *store = session->store;
	uint64_t generation = store->header->generation + 1;
	Perseas__Header *header;
	int ret = quota_check_growth(store, true, ps_image_size(request->header), why);

	if (!ret)
		ret = rebuilt_header(store, session, request, generation, &header, why);
	if (ret)
		return ret;
	rebuilt_drop(store);
	ret = image_make(store, header, generation, &store->rebuilt, why);
	if (ret) {
		header_free(header);
		return ret;
	}
	image_write_promise(&store->rebuilt, request->epoch, request->owner);
	assert(store->session == session);
	store->rebuilt_header = header;
	session->is_rebuilding = true;
	store_report(store, STORE_REBUILD_BEGUN, session, session->epoch, 0);
	return 0;
}

static int rebuild_claimed(struct session *session, const Perseas__RebuildRequest *request,
                           Perseas__RebuildReply *reply, struct why *why)
{
	int ret;

	if (session->epoch != request->epoch || !ps_id_equal(request->owner, session->owner))
		return refuse(why, STATUS(BAD_REQUEST),
		              "this connection's claim is of another epoch or owner");
	ret = make_rebuilt(session, request, why);
	if (ret)
		return ret;
	session->shared = session->store->rebuilt_header->shared;
	return fill_rebuild_reply(session, reply, why);
}

/* Checks whether an image may be remade without a claim: allowed are a lost image, a damaged one,
 * and one whose creation was never settled. A promise that can still be read is respected. */
static int check_makeable(const struct store *store, const Perseas__RebuildRequest *request,
                          struct why *why)
{
	const Perseas__Header *header = store->header;

	if (!header)
		return store_check_touchable(store, why);
	if (header->state == STATE(CREATING) &&
	    !same_id(header->store_id, request->header->store_id))
		return refuse(why, STATUS(BAD_STATE),
		              "store %s is being created on this mirror by another create; when "
		              "that has ended, drop what it left",
		              store->name);
	if (!store->damage[0] && header->state != STATE(CREATING)) {
		if (header->state == STATE(CONSISTENT) &&
		    !same_id(header->store_id, request->header->store_id))
			return refuse(why, STATUS(BAD_STATE),
			              "this mirror has another, whole store named %s", store->name);
		return refuse(why, STATUS(NO_SESSION),
		              "this mirror has store %s; claim it before it is rebuilt",
		              store->name);
	}
	return promise_allows(store, request->epoch, request->owner, why);
}

/* Makes a new image without a claim: first the pieces, then the header, which makes them the image.
 * The old pieces are removed last. */
static int make_image_anew(struct store *store, const struct session *session,
                           const Perseas__RebuildRequest *request, struct why *why)
{
	uint64_t generation = store->header ? store->header->generation + 1 : 1;
	struct image image;
	Perseas__Header *header;
	int ret = rebuilt_header(store, session, request, generation, &header, why);

	if (ret)
		return ret;
	/* Without a readable header, old files may have any generation, so remove them all. */
	if (!store->header)
		pieces_sweep(store, NULL);
	ret = image_make(store, header, generation, &image, why);
	if (ret) {
		header_free(header);
		return ret;
	}
	image_write_promise(&image, request->epoch, request->owner);
	ret = header_commit(store, header, why);
	if (ret) {
		image_remove(store, &image);
		return ret;
	}
	image_close(store, &store->image);
	store->image = image;
	store->damage[0] = '\0';
	pieces_sweep(store, store->header);
	holder_drop(store);
	return 0;
}

/* Checks the quotas for a new image without a claim. A store that has a header stays charged to its
 * creator. */
static int check_quotas(const struct store *store, const struct session *session,
                        const Perseas__RebuildRequest *request, struct why *why)
{
	uint64_t bytes = ps_image_size(request->header);
	int ret = store->header ? quota_check_growth(store, false, bytes, why)
	                        : quota_check_create(store->stores, session->identity.name, store,
	                                             bytes, why);

	return ret ? ret : quota_check_claim(session, store, why);
}

/* Finds or inserts the store. Returns NULL with a refusal in `why` if there are too many stores or
 * memory is out. */
static struct store *find_or_insert(struct stores *stores, const char *name, struct why *why)
{
	struct store *store = store_find(stores, name);

	if (store)
		return store;
	if (stores->count >= STORES_MAX) {
		refuse(why, STATUS(LIMIT), "this mirror has %d stores, the most it takes",
		       STORES_MAX);
		return NULL;
	}
	store = store_insert(stores, name);
	if (!store)
		refuse(why, STATUS(LIMIT), "the daemon is out of memory");
	return store;
}

static int rebuild_unclaimed(struct stores *stores, struct session *session,
                             const Perseas__RebuildRequest *request, Perseas__RebuildReply *reply,
                             struct why *why)
{
	const char *name = request->header->store;
	struct store *store;
	int ret = store_find(stores, name) ? 0 : rights_check_create(stores, session, name, why);

	if (ret)
		return ret;
	store = find_or_insert(stores, name, why);
	if (!store)
		return -STATUS(LIMIT);
	ret = check_makeable(store, request, why);
	if (!ret)
		ret = check_quotas(store, session, request, why);
	if (!ret)
		ret = make_image_anew(store, session, request, why);
	if (ret) {
		if (!store->header && !store->damage[0]) {
			pieces_sweep(store, NULL);
			store_delete(store);
		}
		return ret;
	}
	session_attach(store, session, request->epoch, request->owner, store->header->shared,
	               request->rdma);
	store_report(store, STORE_REBUILD_BEGUN, session, session->epoch, 0);
	ret = fill_rebuild_reply(session, reply, why);
	if (ret)
		session_detach(store);
	return ret;
}

int store_rebuild(struct stores *stores, struct session *session,
                  const Perseas__RebuildRequest *request, Perseas__RebuildReply *reply,
                  struct why *why)
{
	const char *name = request->header->store;
	int ret = stores_check_open(stores, why);

	if (ret)
		return ret;
	if (request->shared && !session->local)
		return refuse(why, STATUS(BAD_REQUEST),
		              "memory can be shared over a Unix socket only");
	if (request->epoch == 0)
		return refuse(why, STATUS(BAD_REQUEST), "an owner's epoch must not be 0");
	if (!session->store)
		return rebuild_unclaimed(stores, session, request, reply, why);
	if (strcmp(session->store->name, name) != 0)
		return refuse(why, STATUS(BAD_REQUEST),
		              "this connection holds store %s; use another connection for store %s",
		              session->store->name, name);
	return rebuild_claimed(session, request, reply, why);
}

/* Makes the rebuilt image the store's image: replacing the header is the instant of the change. */
static int swap_in(struct session *session, Perseas__Header *header, struct why *why)
{
	struct store *store = session->store;
	int ret;

	assert(session->is_rebuilding && store->rebuilt_header);
	ret = header_commit(store, header, why);
	if (ret)
		return ret;
	assert(store->rebuilt.generation == store->header->generation);
	image_remove(store, &store->image);
	store->image = store->rebuilt;
	image_init(&store->rebuilt);
	header_free(store->rebuilt_header);
	store->rebuilt_header = NULL;
	session->is_rebuilding = false;
	return 0;
}

static int finish_image(struct session *session, Perseas__FinishReply *reply, struct why *why)
{
	Perseas__Header *header;
	struct ps_slot slot;
	struct store *store;
	int ret = session_check_claim(session, why);

	if (ret)
		return ret;
	store = session->store;
	reply->header = scratch_alloc(sizeof(*reply->header));
	if (!reply->header)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	header_without_key(reply->header, store->header);
	if (!session->is_rebuilding && store->header->state == STATE(CONSISTENT))
		return 0;
	if (image_slot(session->is_rebuilding ? &store->rebuilt : &store->image, &slot) < 0)
		return refuse(why, STATUS(DAMAGED),
		              "the image of store %s has no valid commit slot yet", store->name);
	ret = header_edit(session_header(session), &header, why);
	if (ret)
		return ret;
	header->state = STATE(CONSISTENT);
	header->harmless = false;
	header->shared = session->shared;
	ret = session->is_rebuilding ? swap_in(session, header, why)
	                             : header_commit(store, header, why);
	if (ret)
		return ret;
	header_without_key(reply->header, store->header);
	store_report(store, STORE_CONSISTENT, session, session->epoch, slot.seq);
	return 0;
}

int store_finish(struct session *session, Perseas__FinishReply *reply, struct why *why)
{
	const int ret = finish_image(session, reply, why);

	if (!ret)
		copy_turn_end(session);
	return ret;
}

/* Zeroes the ring, because its records do not belong to the data that the owner is about to copy to
 * the image. A crash after the header was written and before this does no harm: a joining image is
 * never chosen, and the owner begins again. */
static void zero_ring(void *arg)
{
	const struct piece *log = arg;

	memset(log->base + PS_RING_OFFSET, 0, log->size - PS_RING_OFFSET);
}

/* Makes the image another one, without a parent. Returns false if memory is out. */
static bool set_image_id(Perseas__Header *header, ProtobufCBinaryData id)
{
	uint8_t *data = malloc(id.len);

	if (!data)
		return false;
	memcpy(data, id.data, id.len);
	free(header->image_id.data);
	header->image_id.len = id.len;
	header->image_id.data = data;
	free(header->parent_id.data);
	header->parent_id = (ProtobufCBinaryData){ 0, NULL };
	return true;
}

/* A resync that was not harmless when it began does not become harmless when it is announced again,
 * because the data that was lost then still counts. */
int store_joining(struct session *session, const Perseas__JoiningRequest *request, struct why *why)
{
	Perseas__Header *header;
	struct store *store;
	int ret = session_check_claim(session, why);

	if (ret)
		return ret;
	store = session->store;
	if (session->is_rebuilding)
		return refuse(why, STATUS(BAD_STATE),
		              "store %s is being rebuilt beside its image, not in place",
		              store->name);
	ret = header_edit(store->header, &header, why);
	if (ret)
		return ret;
	if (request->image_id.len && !set_image_id(header, request->image_id)) {
		header_free(header);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	header->harmless = request->harmless &&
	                   (header->state != STATE(JOINING) || header->harmless);
	header->state = STATE(JOINING);
	header->rewrites++;
	ret = header_commit(store, header, why);
	if (!ret && request->whole)
		job_aside(store->header->log_size, zero_ring, &store->image.regions[PS_REGION_LOG]);
	if (!ret)
		store_report(store, STORE_RESYNC_BEGUN, session, session->epoch, 0);
	return ret;
}
