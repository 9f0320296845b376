#include "store_private.h"

#include <string.h>

/* A claim on its way through the steps of I5. */
struct claim {
	struct store *store;
	struct session *session;
	const Perseas__ClaimRequest *request;
	bool away;         /* the old owner may still write: the image is copied away */
	struct image copy; /* what it was copied to */
	struct ps_slot slot;
	int index; /* of the slot; -1: a joining image has none */
	bool undone;
};

static int check_promise(const struct claim *claim, struct why *why)
{
	const Perseas__Header *header = claim->store->header;
	const Perseas__ClaimRequest *request = claim->request;

	if (request->epoch > header->promised_epoch)
		return 0;
	if (request->epoch == header->promised_epoch && request->epoch > 0 &&
	    same_id(request->owner, header->promised_owner))
		return 0;
	why->promised_epoch = header->promised_epoch;
	return refuse(why, STATUS(STALE_EPOCH),
	              "store %s is promised to another owner with epoch %llu, so epoch %llu is too "
	              "low",
	              claim->store->name, (unsigned long long)header->promised_epoch,
	              (unsigned long long)request->epoch);
}

static int check_claim(const struct claim *claim, struct why *why)
{
	const struct store *store = claim->store;
	const struct session *session = claim->session;
	const struct session *old = store->session;
	int ret;

	if (session->store && session->store != store)
		return refuse(why, STATUS(BAD_REQUEST),
		              "this connection holds store %s; use another connection for store %s",
		              session->store->name, store->name);
	if (claim->request->store_id.len > 0 &&
	    !same_id(claim->request->store_id, store->header->store_id))
		return refuse(why, STATUS(NO_STORE),
		              "this mirror has another store named %s, made at another time",
		              store->name);
	if (claim->request->shared && !session->local)
		return refuse(why, STATUS(BAD_REQUEST),
		              "memory can be shared over a Unix socket only");
	if (store->header->state == STATE(CREATING))
		return refuse(why, STATUS(BAD_STATE),
		              "store %s is still being created; create it again", store->name);
	ret = check_promise(claim, why);
	if (ret)
		return ret;
	if (session_lives(old) && !claim->request->takeover &&
	    !ps_id_equal(claim->request->owner, old->owner)) {
		why->promised_epoch = store->header->promised_epoch;
		return refuse(why, STATUS(BUSY), "store %s has a live owner at %s", store->name,
		              old->peer);
	}
	return quota_claim(session, store, why);
}

/*
 * May the owner that was given the memory of the image still write to it? Its promise page
 * says who that is (a retired one names nobody): the promise in the header may have moved on
 * without a grant.
 */
static bool may_write(const struct claim *claim)
{
	struct store *store = claim->store;
	struct session *old = store->session;
	struct ps_promise page;

	if (!store->header->shared)
		return false;
	memcpy(&page, store->image.regions[PS_REGION_PROMISE].base, sizeof(page));
	if (claim->request->quiesced && ps_id_equal(claim->request->owner, page.owner))
		return false;
	if (old && old->shared)
		return old->ops->may_write(old);
	return store->holder ? store->holder->may_write(store->holder) : true;
}

/* The promise is durable, then seen by an owner on this host, then the old session is cut. */
static int promise(struct claim *claim, struct why *why)
{
	static const ProtobufCBinaryData nobody = { 0, NULL };
	const Perseas__ClaimRequest *request = claim->request;
	struct store *store = claim->store;
	struct memory *memory = store->stores->memory;
	Perseas__Header *header;
	uint64_t epoch = claim->away ? PS_PROMISE_RETIRED : request->epoch;
	ProtobufCBinaryData owner = claim->away ? nobody : request->owner;
	int ret = header_edit(store->header, &header, why);

	if (ret)
		return ret;
	if (!header_promise(header, request->epoch, request->owner)) {
		header_free(header);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	ret = header_commit(store, header, why);
	if (ret)
		return ret;
	image_promise(&store->image, epoch, owner);
	image_promise(&store->beside, epoch, owner);
	memory->ops->fence(memory);
	if (store->session && !ps_id_equal(request->owner, store->session->owner))
		store_tell(store, STORE_FENCED, store->session, request->epoch, 0);
	if (store->session)
		session_detach(store);
	return 0;
}

/* A joining image is no state of the store: it is left as it is. */
static int recover(struct claim *claim, struct why *why)
{
	struct store *store = claim->store;
	struct ps_image view;
	enum ps_recovery recovery;
	const char *text;

	if (store->header->state == STATE(JOINING)) {
		claim->index = image_slot(&store->image, &claim->slot);
		return 0;
	}
	image_view(&store->image, &view);
	recovery = ps_image_recover(&view, &claim->slot);
	if (recovery >= 0) {
		claim->undone = recovery == PS_RECOVERY_UNDONE;
		claim->index = image_slot(&store->image, &claim->slot);
		return 0;
	}
	text = recovery == PS_RECOVERY_NO_SLOT ? "neither of its commit slots is valid"
	                                       : "its undo record names memory outside the image";
	strcpy(store->damage, text);
	store_tell(store, STORE_DAMAGED, NULL, 0, 0);
	return refuse(why, STATUS(DAMAGED), "the image of store %s is damaged: %s", store->name,
	              text);
}

static int copy_away(struct claim *claim, struct why *why)
{
	int ret = image_copy(claim->store, &claim->copy, &claim->slot, &claim->undone, why);

	if (ret)
		return ret;
	claim->index = image_slot(&claim->copy, &claim->slot);
	return 0;
}

/* The header as it will be: without segments that were never born, with the memory given. */
static int commit_image(struct claim *claim, struct why *why)
{
	struct store *store = claim->store;
	Perseas__Header *header;
	unsigned pruned;
	int ret = header_edit(store->header, &header, why);

	if (ret)
		return ret;
	pruned = header_prune(header, claim->slot.seq);
	header->shared = claim->request->shared;
	if (claim->away)
		header->generation = claim->copy.generation;
	if (pruned == 0 && !claim->away && header->shared == store->header->shared) {
		header_free(header);
		return 0;
	}
	return header_commit(store, header, why);
}

static int take_image(struct claim *claim, struct why *why)
{
	struct store *store = claim->store;
	int ret = claim->away ? copy_away(claim, why) : recover(claim, why);

	if (ret)
		return ret;
	ret = commit_image(claim, why);
	if (ret) {
		if (claim->away)
			image_remove(store, &claim->copy);
		return ret;
	}
	if (claim->away) {
		image_remove(store, &store->image);
		store->image = claim->copy;
		image_promise(&store->image, claim->request->epoch, claim->request->owner);
	}
	image_prune(store, &store->image, store->header);
	holder_drop(store);
	return 0;
}

int store_claim(struct stores *stores, struct session *session,
                const Perseas__ClaimRequest *request, Perseas__ClaimReply *reply, struct why *why)
{
	struct claim claim = { .session = session, .request = request, .index = -1 };
	int ret;

	claim.store = store_to_change(stores, request->store, &ret, why);
	if (!claim.store)
		return ret;
	ret = check_claim(&claim, why);
	if (ret)
		return ret;
	claim.away = may_write(&claim);
	ret = promise(&claim, why);
	if (ret)
		return ret;
	ret = take_image(&claim, why);
	if (ret)
		return ret;
	session_attach(claim.store, session, request->epoch, request->owner, request->shared,
	               request->rdma);
	reply->header = claim.store->header;
	reply->slot = scratch_slot(stores, &claim.slot, claim.index);
	reply->undone = claim.undone;
	reply->copied = claim.away;
	reply->grant = session_grant(session);
	if (!reply->slot || !reply->grant) {
		session_detach(claim.store);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	return 0;
}

/* The steps of a claim, for nobody: after them the image is as it is while no owner has it. */
static void revoke(struct store *store)
{
	const Perseas__ClaimRequest nobody = {
		.base = PROTOBUF_C_MESSAGE_INIT(&perseas__claim_request__descriptor),
		.epoch = PS_PROMISE_RETIRED,
	};
	struct claim claim = { .store = store, .request = &nobody, .index = -1 };
	struct why why = { .text = "" };

	claim.away = may_write(&claim);
	promise_retire(store);
	session_detach(store);
	if (claim.away)
		take_image(&claim, &why);
}

const struct access *stores_access(const struct stores *stores)
{
	return stores->access;
}

void stores_set_access(struct stores *stores, const struct access *access)
{
	stores->access = access;
	for (struct store *store = stores->first; store; store = store->next)
		if (store->session &&
		    !access_allows(access, &store->session->identity, RIGHT_OWN, store->name))
			revoke(store);
}
