/*
 * store_claim.c - claims: the promise, cutting the earlier session off, rolling back, copying
 * away, and what the new session is told. control.c calls it. No claim may be answered before the
 * earlier owner can write no more (I5).
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
	bool shared;             /* the session gets the memory itself */
	enum memory_whose whose; /* the image is, where it was ever given */
	bool away;               /* the old owner may still write: the image is copied away */
	struct image copy;       /* what it was copied to */
	struct ps_slot slot;
	int index; /* of the slot; -1: a joining image has none */
	bool undone;
};

int promise_check(const struct store *store, uint64_t epoch, ProtobufCBinaryData owner,
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

/* Has this owner come again? Its id alone, which others may have learned, does not tell. */
static bool is_owner_of(const struct claim *claim, const struct session *old)
{
	return ps_id_equal(claim->request->owner, old->owner) &&
	       strcmp(claim->session->identity.name, old->identity.name) == 0;
}

/* The claim may name the image that this one was loaded from. */
static bool is_meant(const Perseas__ClaimRequest *request, const Perseas__Header *header)
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
	if (!is_meant(claim->request, store->header))
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
	ret = promise_check(store, claim->request->epoch, claim->request->owner, why);
	if (ret)
		return ret;
	if (session_lives(old) && !claim->request->takeover && !is_owner_of(claim, old)) {
		why->promised_epoch = store->header->promised_epoch;
		return refuse(why, STATUS(BUSY), "store %s has a live owner at %s", store->name,
		              old->peer);
	}
	return quota_claim(session, store, why);
}

/*
 * What is known of an owner's process, where the kernel cannot say who has the memory. Nobody but
 * the identity that was given it is believed. The promise page says who the owner is (a retired
 * one names nobody): the promise in the header may have moved on without a grant.
 */
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

/*
 * May anybody who was given the memory of the image still write to it? The kernel is asked, and
 * not the owner: what it says of itself, that its process has ended, and that it gave the memory
 * back, says nothing of a child, or of another process to which it passed a descriptor.
 */
static bool may_write(struct claim *claim)
{
	const struct store *store = claim->store;

	claim->whose = MEMORY_ALONE;
	if (!store->header->shared && !store->header->sharer[0])
		return false;
	claim->whose = image_whose(store, &store->image);
	return claim->whose == MEMORY_HELD ||
	       (claim->whose == MEMORY_UNKNOWN && is_believed_to_write(claim));
}

struct waiting {
	struct holder *holder;
	uint32_t left_ms;
};

static void wait_aside(void *arg)
{
	struct waiting *waiting = arg;

	waiting->holder->await_end(waiting->holder, &waiting->left_ms);
}

/*
 * A process that was killed ends its connections before it is gone, and has the memory until then:
 * to wait for that takes less than to copy the image away. The turn is given up meanwhile, so that
 * nothing of what the claim has found so far needs to be so afterwards. False: it was not.
 */
static bool await_holder(const struct claim *claim)
{
	struct store *store = claim->store;
	struct session *old = store->session;
	struct waiting waiting = { store->holder, store->patience_ms };
	bool waits;

	/* The session may end meanwhile, with all that it has. */
	if (old)
		waiting.holder = old->shared && old->ops->keep ? old->ops->keep(old) : NULL;
	waits = waiting.holder && waiting.holder->await_end && waiting.left_ms > 0;
	if (waits) {
		job_aside(JOB_ASIDE_LEAST, wait_aside, &waiting);
		store->patience_ms = waiting.left_ms;
	}
	if (old && waiting.holder)
		waiting.holder->free(waiting.holder);
	return waits;
}

/* The promise is durable, then seen by an owner on this host, then the old session is cut. */
static int promise_epoch(struct claim *claim, struct why *why)
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
	/* What follows may roll back, of which the log tells no reader. */
	header->rewrites++;
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

static int refuse_damaged(struct store *store, const char *text, struct why *why)
{
	strcpy(store->damage, text);
	store_tell(store, STORE_DAMAGED, NULL, 0, 0);
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

/* A joining image is no state of the store: it is left as it is. */
static int recover_image(struct claim *claim, struct why *why)
{
	struct store *store = claim->store;
	struct recovering recovering;
	enum ps_recovery recovery;

	if (claim->whose == MEMORY_CUT)
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
	claim->index = image_slot(&claim->copy, &claim->slot);
	/* A copy stands where its image stood. Nobody else has the copy's memory. */
	assert(!ps_slot_later(&left, &claim->slot) && !ps_slot_later(&claim->slot, &left));
	return 0;
}

/* The identity that has been given the memory of the image, after this claim. */
static const char *sharer_of(const struct claim *claim)
{
	if (claim->shared) {
		assert(claim->session);
		return claim->session->identity.name;
	}
	return claim->away || claim->whose == MEMORY_ALONE ? "" : claim->store->header->sharer;
}

/* The header as it will be: without segments that were never born or are dead, and with no word of
 * deaths above the slot; with the memory given. */
static int commit_image(struct claim *claim, struct why *why)
{
	struct store *store = claim->store;
	const Perseas__Header *before = store->header;
	const char *sharer = sharer_of(claim);
	Perseas__Header *header;
	unsigned pruned;
	int ret = header_edit(before, &header, why);

	if (ret)
		return ret;
	pruned = header_prune(header, &claim->slot);
	/* What was rolled back the log tells no reader; a session's promise has counted it. */
	header->rewrites += claim->session == NULL;
	header->shared = claim->shared;
	if (claim->away)
		header->generation = claim->copy.generation;
	if (pruned == 0 && !claim->away && header->shared == before->shared &&
	    strcmp(sharer, before->sharer) == 0) {
		header_free(header);
		return 0;
	}
	if (!header_set_name(&header->sharer, sharer)) {
		header_free(header);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	return header_commit(store, header, why);
}

static int take_image(struct claim *claim, struct why *why)
{
	struct store *store = claim->store;
	int ret = claim->away ? copy_away(claim, why) : recover_image(claim, why);

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

/* Finds what is claimed, and whether it has to be copied away. */
static int look_at_image(struct claim *claim, struct stores *stores, struct why *why)
{
	int ret;

	if (claim->request->daemon.len > 0 && !ps_id_equal(claim->request->daemon, stores->daemon))
		return refuse(why, STATUS(OTHER),
		              "this is another daemon than the one that is "
		              "claimed: its address led there");
	claim->store = store_to_change(stores, claim->request->store, &ret, why);
	if (!claim->store)
		return ret;
	ret = check_claim(claim, why);
	if (ret)
		return ret;
	claim->shared = session_shares(claim->session, claim->store, claim->request->shared);
	claim->away = may_write(claim);
	return 0;
}

/* An image whose files were removed is copied to new ones. What was cut short is worth no copy. */
static void look_at_names(struct claim *claim)
{
	if (claim->whose != MEMORY_CUT)
		claim->away |= store_check_names(claim->store);
}

/* The same, once nobody has the image who is about to end. */
static int prepare_claim(struct claim *claim, struct stores *stores, struct why *why)
{
	int ret = look_at_image(claim, stores, why);

	if (ret || !claim->away)
		return ret;
	if (await_holder(claim)) {
		if (job_cancelled())
			return refuse(why, STATUS(BUSY), "whoever claimed store %s has gone",
			              claim->request->store);
		ret = look_at_image(claim, stores, why);
	}
	return !ret && claim->away ? quota_copy(claim->store, why) : ret;
}

/* By this an owner knows whether it wrote that record, or another one under the same seq. 0: the
 * log was copied without its records, or the record is of an owner before. */
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
	look_at_names(&claim);
	ret = promise_epoch(&claim, why);
	if (ret)
		return ret;
	ret = take_image(&claim, why);
	if (ret)
		return ret;
	if (claim.store->astray[0])
		(void)store_check_names(claim.store);
	session_attach(claim.store, session, request->epoch, request->owner, claim.shared,
	               request->rdma);
	reply->header = claim.store->header;
	reply->slot = scratch_slot(&claim.slot, claim.index);
	reply->record = claim.index < 0 ? 0 : record_sum(claim.store, &claim.slot);
	reply->undone = claim.undone;
	reply->copied = claim.away;
	if (!reply->slot || session_grant(session, &reply->grant, why)) {
		session_detach(claim.store);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	return 0;
}

/* The steps of a claim, for nobody: after them the image is as it is while no owner has it. away:
 * it is copied, whoever has it. */
static int claim_for_nobody(struct store *store, bool away, struct why *why)
{
	const Perseas__ClaimRequest nobody = {
		.base = PROTOBUF_C_MESSAGE_INIT(&perseas__claim_request__descriptor),
		.epoch = PS_PROMISE_RETIRED,
	};
	struct claim claim = { .store = store, .request = &nobody, .index = -1 };
	int ret = 0;

	store->job = job_current();
	claim.away = may_write(&claim) || (away && claim.whose != MEMORY_CUT);
	promise_retire(store);
	if (store->session)
		session_detach(store);
	/* Without a copy to make, this says that the image was cut short. */
	if (claim.away || away)
		ret = take_image(&claim, why);
	store->job = NULL;
	return ret;
}

int store_copy_aside(struct store *store, struct why *why)
{
	(void)store_notice_torn(store);
	if (store->damage[0])
		return refuse(why, STATUS(DAMAGED), "%s", store->damage);
	return claim_for_nobody(store, true, why);
}

const struct access *stores_access(const struct stores *stores)
{
	return stores->access;
}

/* Without the right to share, an owner that has the memory comes again, and gets no more of it. */
static bool may_stay(const struct session *session)
{
	const struct store *store = session->store;

	return access_allows(store->stores->access, &session->identity, RIGHT_OWN, store->name) &&
	       (!session->shared || session_shares(session, store, true));
}

unsigned stores_set_access(struct stores *stores, const struct access *access)
{
	struct why why = { .text = "" };
	unsigned cut = 0;

	stores->access = access;
	for (struct store *store = stores->first; store; store = store->next)
		if (store->session && !may_stay(store->session)) {
			(void)claim_for_nobody(store, false, &why);
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
		store->exceeds = store->session && quota_exceeded(store);
	/* First, so that there is room for copies. */
	if (memory->ops->trim)
		memory->ops->trim(memory);
	for (struct store *store = stores->first; store; store = store->next) {
		if (!store->exceeds || !store->session)
			continue;
		store_tell(store, STORE_EXCEEDED, store->session, store->session->epoch, 0);
		(void)claim_for_nobody(store, false, &why);
		cut++;
	}
	return cut;
}

uint64_t stores_excess(const struct stores *stores)
{
	struct memory *memory = stores->memory;

	return memory->ops->excess ? memory->ops->excess(memory) : 0;
}

bool stores_share_memory(const struct stores *stores)
{
	struct memory *memory = stores->memory;

	for (const struct store *store = stores->first; store; store = store->next)
		if (store->header && (store->header->shared || store->header->sharer[0]))
			return true;
	return memory->ops->kept && memory->ops->kept(memory, NULL) > 0;
}
