/*
 * store_claim.c - claims: records the promise, cuts the earlier session, rolls back, copies the
 * image if needed, and tells the new session its state. control.c calls it. A claim must not be
 * answered before the earlier owner can no longer write (I5).
 */
#include "store_private.h"
#include "../host/jobs.h"

#include <assert.h>
#include <string.h>

/* A claim on its way through the steps of I5. */
struct claim {
	struct store *store;
	struct session *session;
	const Perseas__ClaimRequest *request;
	bool shared;                 /* the session gets descriptors of the memory */
	enum memory_sharing sharing; /* which processes have the image's memory */
	bool is_copied;              /* the old owner may still write, so the image is copied */
	struct image copy;           /* the copy */
	struct ps_slot slot;
	int index;   /* index of `slot` in the log; -1: a joining image may have no slot */
	bool undone; /* a transaction was rolled back */
};

int promise_allows(const struct store *store, uint64_t epoch, ProtobufCBinaryData owner,
                   struct why *why)
{
	const Perseas__Header *header = store->header;
	const unsigned long long promised = header->promised_epoch;

	if (epoch > promised && promised < PS_EPOCH_MAX && epoch - promised <= PS_EPOCH_STEP)
		return 0;
	if (epoch == promised && epoch > 0 && promised < PS_EPOCH_MAX &&
	    same_id(owner, header->promised_owner))
		return 0;
	why->promised_epoch = promised;
	if (promised >= PS_EPOCH_MAX)
		return refuse(
			why, STATUS(LIMIT),
			"store %s is promised with epoch %llu, and no owner can have a higher "
			"one: the image was spoilt; perseas recover --help says what to do",
			store->name, promised);
	if (epoch > promised)
		return refuse(why, STATUS(LIMIT),
		              "store %s is promised with epoch %llu, and epoch %llu is more than "
		              "%llu above that: claim it step by step",
		              store->name, promised, (unsigned long long)epoch,
		              (unsigned long long)PS_EPOCH_STEP);
	return refuse(why, STATUS(STALE_EPOCH),
	              "store %s is promised to another owner with epoch %llu, so epoch %llu is too "
	              "low",
	              store->name, promised, (unsigned long long)epoch);
}

/* Returns true if the claim is from the owner of that session. The owner's id alone does not prove
 * it, because others may know it. */
static bool is_owner_of(const struct claim *claim, const struct session *old)
{
	return ps_id_equal(claim->request->owner, old->owner) &&
	       strcmp(claim->session->identity.name, old->identity.name) == 0;
}

/* Returns true if the claim names this image or the one that it was loaded from, or none. */
static bool names_image(const Perseas__ClaimRequest *request, const Perseas__Header *header)
{
	return request->image_id.len == 0 || same_id(request->image_id, header->image_id) ||
	       same_id(request->image_id, header->parent_id);
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
	if (!names_image(claim->request, store->header))
		return refuse(why, STATUS(OTHER),
		              "this mirror has another image of store %s than the one that is "
		              "claimed",
		              store->name);
	if (claim->request->shared && !session->local)
		return refuse(why, STATUS(BAD_REQUEST),
		              "memory can be shared over a Unix socket only");
	if (store->header->state == STATE(CREATING))
		return refuse(why, STATUS(NO_STORE),
		              "store %s is still being created; create it again", store->name);
	ret = promise_allows(store, claim->request->epoch, claim->request->owner, why);
	if (ret)
		return ret;
	if (session_lives(old) && !claim->request->takeover && !is_owner_of(claim, old)) {
		why->promised_epoch = store->header->promised_epoch;
		return refuse(why, STATUS(BUSY), "store %s has a live owner at %s", store->name,
		              old->peer);
	}
	return quota_check_claim(session, store, why);
}

/* Returns false only if the old owner's process is known not to write any more. Called if the
 * kernel cannot tell which processes have the memory. A claim may say that the old owner has
 * stopped writing (`quiesced`). That is believed only from the identity that was given the memory,
 * and only about the owner in the promise page: the promise in the header may be of a later claim
 * that was given nothing. */
static bool is_believed_to_write(const struct claim *claim)
{
	const struct store *store = claim->store;
	struct session *old = store->session;
	const char *sharer = store->header->sharer;
	struct ps_promise page;

	if (claim->session && *sharer && strcmp(sharer, claim->session->identity.name) != 0)
		return true;
	if (!store->header->shared)
		return false;
	memcpy(&page, store->image.regions[PS_REGION_PROMISE].base, sizeof(page));
	if (claim->request->quiesced && ps_id_equal(claim->request->owner, page.owner))
		return false;
	if (old && old->shared)
		return old->ops->may_write(old);
	return store->holder ? store->holder->may_write(store->holder) : true;
}

/* Returns true if any process that was given the image's memory may still write. Asks the kernel,
 * not the owner: even if an owner has ended and closed the memory, a child, or a process to which
 * it passed a descriptor, may have it. */
static bool may_still_write(struct claim *claim)
{
	const struct store *store = claim->store;

	claim->sharing = MEMORY_UNSHARED;
	if (!store->header->shared && !store->header->sharer[0])
		return false;
	claim->sharing = image_sharing(store, &store->image);
	return claim->sharing == MEMORY_SHARED ||
	       (claim->sharing == MEMORY_SHARING_UNKNOWN && is_believed_to_write(claim));
}

struct waiting {
	struct holder *holder;
	uint32_t left_ms;
};

static void run_await_end(void *arg)
{
	struct waiting *waiting = arg;

	waiting->holder->await_end(waiting->holder, &waiting->left_ms);
}

/* Waits for the old owner's process if it is about to end. A killed process closes its connections
 * before its memory is unmapped, and waiting for that is cheaper than copying the image. Gives up
 * the turn, so the caller must check the claim again. Returns false if it did not wait. */
static bool await_holder(const struct claim *claim)
{
	struct store *store = claim->store;
	struct session *old = store->session;
	struct waiting waiting = { store->holder, store->holder_wait_left_ms };
	bool waits;

	/* The session may end while we wait, so keep its process. */
	if (old)
		waiting.holder = old->shared && old->ops->get_holder ? old->ops->get_holder(old)
		                                                     : NULL;
	waits = waiting.holder && waiting.holder->await_end && waiting.left_ms > 0;
	if (waits) {
		job_aside(JOB_ASIDE_LEAST, run_await_end, &waiting);
		store->holder_wait_left_ms = waiting.left_ms;
	}
	if (old && waiting.holder)
		waiting.holder->free(waiting.holder);
	return waits;
}

/* Makes the promise durable, then visible to an owner on this host, then cuts the old session. */
static int record_promise(struct claim *claim, struct why *why)
{
	static const ProtobufCBinaryData nobody = { 0, NULL };
	const Perseas__ClaimRequest *request = claim->request;
	struct store *store = claim->store;
	struct memory *memory = store->stores->memory;
	Perseas__Header *header;
	uint64_t epoch = claim->is_copied ? PS_PROMISE_RETIRED : request->epoch;
	ProtobufCBinaryData owner = claim->is_copied ? nobody : request->owner;
	int ret = header_edit(store->header, &header, why);

	if (ret)
		return ret;
	if (!header_set_promise(header, request->epoch, request->owner)) {
		header_free(header);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	/* The claim may roll a transaction back, which the log does not record. Readers of the
	 * image notice it by this counter. */
	header->rewrites++;
	ret = header_commit(store, header, why);
	if (ret)
		return ret;
	assert(store->header->promised_epoch == request->epoch);
	image_write_promise(&store->image, epoch, owner);
	image_write_promise(&store->rebuilt, epoch, owner);
	memory->ops->fence(memory);
	if (store->session && !ps_id_equal(request->owner, store->session->owner))
		store_report(store, STORE_FENCED, store->session, request->epoch, 0);
	if (store->session)
		session_detach(store);
	assert(!store->session);
	return 0;
}

static int refuse_damaged(struct store *store, const char *text, struct why *why)
{
	strcpy(store->damage, text);
	store_report(store, STORE_DAMAGED, NULL, 0, 0);
	return refuse(why, STATUS(DAMAGED), "the image of store %s is damaged: %s", store->name,
	              text);
}

struct recovering {
	struct ps_image image;
	struct ps_slot slot;
	enum ps_recovery recovery;
};

static void roll_back(void *arg)
{
	struct recovering *recovering = arg;

	recovering->recovery = ps_image_recover(&recovering->image, &recovering->slot);
}

/* Rolls back the transaction in flight. A joining image is no state of the store and stays as it
 * is. */
static int recover_image(struct claim *claim, struct why *why)
{
	struct store *store = claim->store;
	struct recovering recovering;
	enum ps_recovery recovery;

	if (claim->sharing == MEMORY_TRUNCATED)
		return refuse_damaged(store, "an owner on this host has cut its memory short", why);
	if (store->header->state == STATE(JOINING)) {
		claim->index = image_slot(&store->image, &claim->slot);
		return 0;
	}
	image_view(&store->image, &recovering.image);
	job_aside(recovering.image.ring_size, roll_back, &recovering);
	claim->slot = recovering.slot;
	recovery = recovering.recovery;
	if (recovery >= 0) {
		claim->undone = recovery == PS_RECOVERY_UNDONE;
		claim->index = image_slot(&store->image, &claim->slot);
		return 0;
	}
	return refuse_damaged(store,
	                      recovery == PS_RECOVERY_NO_SLOT
	                              ? "neither of its commit slots is valid"
	                              : "its undo record names memory outside the image",
	                      why);
}

static int copy_away(struct claim *claim, struct why *why)
{
	struct ps_slot left;
	int ret = image_copy(claim->store, &claim->copy, &left, &claim->undone, why);

	if (ret)
		return ret;
	assert(claim->copy.generation > claim->store->header->generation);
	claim->index = image_slot(&claim->copy, &claim->slot);
	/* The copy has the same state as the image, and no other process can write to it. */
	assert(!ps_slot_later(&left, &claim->slot) && !ps_slot_later(&claim->slot, &left));
	return 0;
}

/* Returns the identity that has the memory of the image after this claim. */
static const char *sharer_after(const struct claim *claim)
{
	if (claim->shared) {
		assert(claim->session);
		return claim->session->identity.name;
	}
	return claim->is_copied || claim->sharing == MEMORY_UNSHARED ? ""
	                                                             : claim->store->header->sharer;
}

/* Commits the header after the claim: without segments that are unpublished or destroyed at the
 * slot, and with the identity that has the memory. */
static int commit_image(struct claim *claim, struct why *why)
{
	struct store *store = claim->store;
	const Perseas__Header *before = store->header;
	const char *sharer = sharer_after(claim);
	Perseas__Header *header;
	unsigned pruned;
	int ret = header_edit(before, &header, why);

	if (ret)
		return ret;
	pruned = header_prune(header, &claim->slot);
	/* For a claim with a session, record_promise() has counted the rewrite. */
	header->rewrites += claim->session == NULL;
	header->shared = claim->shared;
	if (claim->is_copied)
		header->generation = claim->copy.generation;
	if (pruned == 0 && !claim->is_copied && header->shared == before->shared &&
	    strcmp(sharer, before->sharer) == 0) {
		header_free(header);
		return 0;
	}
	if (!header_set_identity(&header->sharer, sharer)) {
		header_free(header);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	return header_commit(store, header, why);
}

static int adopt_image(struct claim *claim, struct why *why)
{
	struct store *store = claim->store;
	int ret = claim->is_copied ? copy_away(claim, why) : recover_image(claim, why);

	if (ret)
		return ret;
	ret = commit_image(claim, why);
	if (ret) {
		if (claim->is_copied)
			image_remove(store, &claim->copy);
		return ret;
	}
	if (claim->is_copied) {
		image_remove(store, &store->image);
		store->image = claim->copy;
		image_write_promise(&store->image, claim->request->epoch, claim->request->owner);
	}
	image_prune(store, &store->image, store->header);
	holder_drop(store);
	return 0;
}

/* Finds and checks the claimed store, and decides whether the image must be copied. */
static int find_image(struct claim *claim, struct stores *stores, struct why *why)
{
	int ret;

	if (claim->request->daemon.len > 0 && !ps_id_equal(claim->request->daemon, stores->daemon))
		return refuse(why, STATUS(OTHER),
		              "this is another daemon than the one that is "
		              "claimed: its address led there");
	claim->store = store_find_to_change(stores, claim->request->store, &ret, why);
	if (!claim->store)
		return ret;
	ret = check_claim(claim, why);
	if (ret)
		return ret;
	claim->shared = session_may_share(claim->session, claim->store, claim->request->shared);
	claim->is_copied = may_still_write(claim);
	return 0;
}

/* Decides to copy an image whose files were removed to new files. A truncated image is damaged, so
 * it is not copied. */
static void check_file_names(struct claim *claim)
{
	if (claim->sharing != MEMORY_TRUNCATED)
		claim->is_copied |= store_check_names(claim->store);
}

/* Finds and checks the claimed store like find_image(). If the image would have to be copied, first
 * waits for an old owner that is about to end, and checks the quota. */
static int prepare_claim(struct claim *claim, struct stores *stores, struct why *why)
{
	int ret = find_image(claim, stores, why);

	if (ret || !claim->is_copied)
		return ret;
	if (await_holder(claim)) {
		if (job_cancelled())
			return refuse(why, STATUS(BUSY),
			              "the owner that claimed store %s has disconnected",
			              claim->request->store);
		ret = find_image(claim, stores, why);
	}
	return !ret && claim->is_copied ? quota_check_copy(claim->store, why) : ret;
}

/* Returns the checksum of the slot's record, by which an owner recognizes whether it wrote that
 * record or another owner wrote one with the same seq. Returns 0 if the log does not have the
 * record. */
static uint32_t record_sum(const struct store *store, const struct ps_slot *slot)
{
	const struct piece *log = &store->image.regions[PS_REGION_LOG];
	const uint64_t ring = log->size - PS_RING_OFFSET, offset = slot->last % ring;
	struct ps_record head;

	if (!slot->last || offset + sizeof(head) > ring)
		return 0;
	memcpy(&head, log->base + PS_RING_OFFSET + offset, sizeof(head));
	return head.magic == PS_RECORD_MAGIC && head.position == slot->last &&
	                       head.seq == slot->seq && head.epoch == slot->epoch
	               ? head.crc
	               : 0;
}

int store_claim(struct stores *stores, struct session *session,
                const Perseas__ClaimRequest *request, Perseas__ClaimReply *reply, struct why *why)
{
	struct claim claim = { .session = session, .request = request, .index = -1 };
	int ret = prepare_claim(&claim, stores, why);

	if (ret)
		return ret;
	assert(claim.store);
	check_file_names(&claim);
	ret = record_promise(&claim, why);
	if (ret)
		return ret;
	ret = adopt_image(&claim, why);
	if (ret)
		return ret;
	if (claim.store->restart_loss[0])
		(void)store_check_names(claim.store);
	session_attach(claim.store, session, request->epoch, request->owner, claim.shared,
	               request->rdma);
	reply->header = claim.store->header;
	reply->slot = scratch_slot(&claim.slot, claim.index);
	reply->record = claim.index < 0 ? 0 : record_sum(claim.store, &claim.slot);
	reply->undone = claim.undone;
	reply->copied = claim.is_copied;
	if (!reply->slot || session_make_grant(session, &reply->grant, why)) {
		session_detach(claim.store);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	return 0;
}

/* Takes a store from its owner without a new one, by the steps of a claim. `away` forces a copy of
 * the image. */
static int take_store_from_owner(struct store *store, bool away, struct why *why)
{
	const Perseas__ClaimRequest nobody = {
		.base = PROTOBUF_C_MESSAGE_INIT(&perseas__claim_request__descriptor),
		.epoch = PS_PROMISE_RETIRED,
	};
	struct claim claim = { .store = store, .request = &nobody, .index = -1 };
	int ret = 0;

	store->job = job_current();
	claim.is_copied = may_still_write(&claim) || (away && claim.sharing != MEMORY_TRUNCATED);
	promise_retire(store);
	if (store->session)
		session_detach(store);
	/* If no copy is needed, adopt_image() still finds out whether the memory was truncated. */
	if (claim.is_copied || away)
		ret = adopt_image(&claim, why);
	store->job = NULL;
	return ret;
}

int store_copy_to_new_files(struct store *store, struct why *why)
{
	(void)store_notice_torn(store);
	if (store->damage[0])
		return refuse(why, STATUS(DAMAGED), "%s", store->damage);
	return take_store_from_owner(store, true, why);
}

const struct access *stores_access(const struct stores *stores)
{
	return stores->access;
}

/* Returns true if the session may keep the store. An owner that has the memory and lost the right
 * to share must reconnect, and does not get the memory again. */
static bool may_keep_store(const struct session *session)
{
	const struct store *store = session->store;

	return access_allows(store->stores->access, &session->identity, RIGHT_OWN, store->name) &&
	       (!session->shared || session_may_share(session, store, true));
}

unsigned stores_set_access(struct stores *stores, const struct access *access)
{
	struct why why = { .text = "" };
	unsigned cut = 0;

	stores->access = access;
	for (struct store *store = stores->first; store; store = store->next)
		if (store->session && !may_keep_store(store->session)) {
			(void)take_store_from_owner(store, false, &why);
			cut++;
		}
	return cut;
}

unsigned stores_cut_excess(struct stores *stores)
{
	struct memory *memory = stores->memory;
	struct why why = { .text = "" };
	unsigned cut = 0;

	for (struct store *store = stores->first; store; store = store->next)
		store->is_over_quota = store->session && quota_exceeded(store);
	/* Truncate first, which frees memory for the copies. */
	if (memory->ops->trim)
		memory->ops->trim(memory);
	for (struct store *store = stores->first; store; store = store->next) {
		if (!store->is_over_quota || !store->session)
			continue;
		store_report(store, STORE_QUOTA_EXCEEDED, store->session, store->session->epoch, 0);
		(void)take_store_from_owner(store, false, &why);
		cut++;
	}
	return cut;
}

uint64_t stores_excess(const struct stores *stores)
{
	struct memory *memory = stores->memory;

	return memory->ops->total_excess ? memory->ops->total_excess(memory) : 0;
}

bool stores_share_memory(const struct stores *stores)
{
	struct memory *memory = stores->memory;

	for (const struct store *store = stores->first; store; store = store->next)
		if (store->header && (store->header->shared || store->header->sharer[0]))
			return true;
	return memory->ops->removed_bytes && memory->ops->removed_bytes(memory, NULL) > 0;
}
