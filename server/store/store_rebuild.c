/*
 * store_rebuild.c - makes the image anew or beside the present one, and puts it in its place when
 * its owner says that it is whole. control.c calls it. Until then the image has no vote (I8, I9).
 */
#include "rights.h"
#include "store_private.h"
#include "../host/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An image that is made has no parent, but for one that takes the place of the same image. */
static bool keep_parent(Perseas__Header *header, const Perseas__Header *before)
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

/* What the request says of an image that is made, with what only this mirror knows. */
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
	header->shared = session->shared || session_shares(session, store, request->shared);
	header->generation = generation;
	if (keep_parent(header, store->header) && header_set_name(&header->creator, creator) &&
	    header_set_name(&header->sharer, header->shared ? who : NULL) &&
	    header_promise(header, request->epoch, request->owner))
		return 0;
	header_free(header);
	return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
}

static int fill_reply(struct session *session, Perseas__RebuildReply *reply, struct why *why)
{
	reply->header = scratch_alloc(sizeof(*reply->header));
	if (!reply->header)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	header_tell(reply->header, header_of(session));
	return session_grant(session, &reply->grant, why);
}

/*
 * Drops the pieces of an earlier rebuild, makes empty ones, and points the session's data path at
 * them. After an error the path of a session that has not rebuilt yet still leads to the image.
 * That of one that has leads to its earlier pieces, or nowhere once these are dropped, and never
 * back to the image.
 */
static int make_beside(struct session *session, const Perseas__RebuildRequest *request,
                       struct why *why)
{
	struct store *store = session->store;
	uint64_t generation = store->header->generation + 1;
	Perseas__Header *header;
	int ret = quota_grow(store, true, ps_header_bytes(request->header), why);

	if (!ret)
		ret = rebuilt_header(store, session, request, generation, &header, why);
	if (ret)
		return ret;
	beside_drop(store);
	ret = image_make(store, header, generation, &store->beside, why);
	if (ret) {
		header_free(header);
		return ret;
	}
	image_promise(&store->beside, request->epoch, request->owner);
	store->beside_header = header;
	session->beside = true;
	store_tell(store, STORE_REBUILD_BEGUN, session, session->epoch, 0);
	return 0;
}

static int rebuild_beside(struct session *session, const Perseas__RebuildRequest *request,
                          Perseas__RebuildReply *reply, struct why *why)
{
	int ret;

	if (session->epoch != request->epoch || !ps_id_equal(request->owner, session->owner))
		return refuse(why, STATUS(BAD_REQUEST),
		              "this connection's claim is of another epoch or owner");
	ret = make_beside(session, request, why);
	if (ret)
		return ret;
	session->shared = session->store->beside_header->shared;
	return fill_reply(session, reply, why);
}

/*
 * What may be made anew without a claim: nothing (the memory was lost), what is damaged, and
 * what was never created on all mirrors. A promise that can still be read is kept.
 */
static int check_anew(const struct store *store, const Perseas__RebuildRequest *request,
                      struct why *why)
{
	const Perseas__Header *header = store->header;

	if (!header)
		return store_check_later(store, why);
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
	return promise_check(store, request->epoch, request->owner, why);
}

/* Pieces first, then the header, which makes them the image; what was there goes last. */
static int make_anew(struct store *store, const struct session *session,
                     const Perseas__RebuildRequest *request, struct why *why)
{
	uint64_t generation = store->header ? store->header->generation + 1 : 1;
	struct image image;
	Perseas__Header *header;
	int ret = rebuilt_header(store, session, request, generation, &header, why);

	if (ret)
		return ret;
	/* Files of a header that cannot be read may have any generation. */
	if (!store->header)
		pieces_sweep(store, NULL);
	ret = image_make(store, header, generation, &image, why);
	if (ret) {
		header_free(header);
		return ret;
	}
	image_promise(&image, request->epoch, request->owner);
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

/* A store that was there, if only in a header, is its creator's still. */
static int check_quotas(const struct store *store, const struct session *session,
                        const Perseas__RebuildRequest *request, struct why *why)
{
	uint64_t bytes = ps_header_bytes(request->header);
	int ret = store->header
	                  ? quota_grow(store, false, bytes, why)
	                  : quota_create(store->stores, session->identity.name, store, bytes, why);

	return ret ? ret : quota_claim(session, store, why);
}

/* Where to make it: NULL when there is no room for another store. */
static struct store *place_anew(struct stores *stores, const char *name, struct why *why)
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

static int rebuild_anew(struct stores *stores, struct session *session,
                        const Perseas__RebuildRequest *request, Perseas__RebuildReply *reply,
                        struct why *why)
{
	const char *name = request->header->store;
	struct store *store;
	int ret = store_find(stores, name) ? 0 : rights_to_make(stores, session, name, why);

	if (ret)
		return ret;
	store = place_anew(stores, name, why);
	if (!store)
		return -STATUS(LIMIT);
	ret = check_anew(store, request, why);
	if (!ret)
		ret = check_quotas(store, session, request, why);
	if (!ret)
		ret = make_anew(store, session, request, why);
	if (ret) {
		if (!store->header && !store->damage[0]) {
			pieces_sweep(store, NULL);
			store_delete(store);
		}
		return ret;
	}
	session_attach(store, session, request->epoch, request->owner, store->header->shared,
	               request->rdma);
	store_tell(store, STORE_REBUILD_BEGUN, session, session->epoch, 0);
	ret = fill_reply(session, reply, why);
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
		return refuse(why, STATUS(BAD_REQUEST), "an owner's epoch is not 0");
	if (!session->store)
		return rebuild_anew(stores, session, request, reply, why);
	if (strcmp(session->store->name, name) != 0)
		return refuse(why, STATUS(BAD_REQUEST),
		              "this connection holds store %s; use another connection for store %s",
		              session->store->name, name);
	return rebuild_beside(session, request, reply, why);
}

/* The header's replacement is the one moment in which the image beside becomes the image. */
static int swap_in(struct session *session, Perseas__Header *header, struct why *why)
{
	struct store *store = session->store;
	int ret = header_commit(store, header, why);

	if (ret)
		return ret;
	image_remove(store, &store->image);
	store->image = store->beside;
	image_init(&store->beside);
	header_free(store->beside_header);
	store->beside_header = NULL;
	session->beside = false;
	return 0;
}

int store_finish(struct session *session, Perseas__FinishReply *reply, struct why *why)
{
	Perseas__Header *header;
	struct ps_slot slot;
	struct store *store;
	int ret = session_check(session, why);

	if (ret)
		return ret;
	store = session->store;
	reply->header = scratch_alloc(sizeof(*reply->header));
	if (!reply->header)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	header_tell(reply->header, store->header);
	if (!session->beside && store->header->state == STATE(CONSISTENT))
		return 0;
	if (image_slot(session->beside ? &store->beside : &store->image, &slot) < 0)
		return refuse(why, STATUS(DAMAGED),
		              "the image of store %s has no valid commit slot yet", store->name);
	ret = header_edit(header_of(session), &header, why);
	if (ret)
		return ret;
	header->state = STATE(CONSISTENT);
	header->harmless = false;
	header->shared = session->shared;
	ret = session->beside ? swap_in(session, header, why) : header_commit(store, header, why);
	if (ret)
		return ret;
	header_tell(reply->header, store->header);
	store_tell(store, STORE_CONSISTENT, session, session->epoch, slot.seq);
	return 0;
}

/*
 * What the ring holds is no history of what is copied in now. An image that joins is no
 * candidate, so a crash between its header and this does no harm: the owner then begins again here.
 */
static void forget_past(void *arg)
{
	const struct piece *log = arg;

	memset(log->base + PS_RING_OFFSET, 0, log->size - PS_RING_OFFSET);
}

/*
 * An image whose joining did not begin harmlessly does not become harmless by being told so
 * again: what it lost before still counts.
 */
int store_joining(struct session *session, const Perseas__JoiningRequest *request, struct why *why)
{
	Perseas__Header *header;
	struct store *store;
	int ret = session_check(session, why);

	if (ret)
		return ret;
	store = session->store;
	if (session->beside)
		return refuse(why, STATUS(BAD_STATE),
		              "store %s is being rebuilt beside its image, not in place",
		              store->name);
	ret = header_edit(store->header, &header, why);
	if (ret)
		return ret;
	header->harmless = request->harmless &&
	                   (header->state != STATE(JOINING) || header->harmless);
	header->state = STATE(JOINING);
	header->rewrites++;
	ret = header_commit(store, header, why);
	if (!ret && request->whole)
		job_aside(store->header->log_size, forget_past,
		          &store->image.regions[PS_REGION_LOG]);
	if (!ret)
		store_tell(store, STORE_RESYNC_BEGUN, session, session->epoch, 0);
	return ret;
}
