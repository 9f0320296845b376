/*
 * store_session.c - sessions of owners and the memory that they were given: attach, detach, bury,
 * the roster and the release. control.c and the other store_*.c call it. A session that was cut
 * must reach nothing of the store any more.
 */
#include "store_private.h"

#include "../host/jobs.h"
#include "../../proto/control/judge.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void holder_drop(struct store *store)
{
	if (store->holder)
		store->holder->free(store->holder);
	store->holder = NULL;
}

void beside_drop(struct store *store)
{
	image_remove(store, &store->beside);
	header_free(store->beside_header);
	store->beside_header = NULL;
}

/* Of a store, what is left when its image beside is given up: its name, and that image. */
struct grave {
	struct job job; /* first */
	struct grave *next;
	struct store store;
};

static void run_burial(struct job *job)
{
	beside_drop(&((struct grave *)job)->store);
}

static void forget_grave(struct job *job)
{
	struct grave *grave = (struct grave *)job, **link = &grave->store.stores->graves;

	while (*link != grave)
		link = &(*link)->next;
	*link = grave->next;
	free(grave);
}

static bool has_pieces(const struct image *image)
{
	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++)
		if (image->regions[region].base)
			return true;
	return false;
}

void beside_bury(struct store *store)
{
	struct stores *stores = store->stores;
	struct grave *grave = NULL;

	if (has_pieces(&store->beside) && !job_current())
		grave = calloc(1, sizeof(*grave));
	if (!grave) {
		beside_drop(store);
		return;
	}
	grave->store.stores = stores;
	memcpy(grave->store.name, store->name, sizeof(store->name));
	grave->store.beside = store->beside;
	grave->store.beside_header = store->beside_header;
	image_init(&store->beside);
	store->beside_header = NULL;
	grave->next = stores->graves;
	stores->graves = grave;
	grave->job = (struct job){ .run = run_burial, .done = forget_grave };
	if (job_later(&grave->job))
		forget_grave(&grave->job);
}

bool stores_burying(const struct stores *stores, const char *name)
{
	for (const struct grave *grave = stores->graves; grave; grave = grave->next)
		if (!name || strcmp(grave->store.name, name) == 0)
			return true;
	return false;
}

uint64_t store_next_generation(const struct store *store)
{
	uint64_t generation = store->header->generation;

	for (const struct grave *grave = store->stores->graves; grave; grave = grave->next)
		if (strcmp(grave->store.name, store->name) == 0 &&
		    grave->store.beside.generation > generation)
			generation = grave->store.beside.generation;
	return generation + 1;
}

void session_attach(struct store *store, struct session *session, uint64_t epoch,
                    ProtobufCBinaryData owner, bool shared, bool rdma)
{
	struct memory *memory = store->stores->memory;

	/* I5: one session has the store, and it is that of the owner who has the promise. */
	assert(!store->session && !session->store);
	assert(epoch == store->header->promised_epoch);
	assert(ps_id_equal(store->header->promised_owner, owner.data));
	store->session = session;
	session->store = store;
	session->epoch = epoch;
	memcpy(session->owner, owner.data, PS_ID_SIZE);
	/* A lifeline of a lifeline would be a chain, of which one end ends all. */
	memset(session->lifeline, 0, sizeof(session->lifeline));
	memory->ops->random(memory, session->token, PS_ID_SIZE);
	session->shared = shared;
	session->rdma = rdma;
	session->opened = false;
	session->beside = false;
	store->patience_ms = store->stores->patience_ms;
	handover_claimed(store);
	store_tell(store, STORE_CLAIMED, session, epoch, 0);
}

static bool is_too_long(const struct session *session, uint64_t silent_ms)
{
	const uint64_t limit = session->store->stores->owner_timeout_ms;

	return limit != 0 && silent_ms > limit;
}

bool session_was_dead(const struct session *session, uint64_t silent_ms)
{
	return session->store && is_too_long(session, silent_ms);
}

bool session_lives(const struct session *session)
{
	uint64_t silent = 0;

	if (!session)
		return false;
	if (session->ops->silent_ms)
		silent = session->ops->silent_ms((struct session *)session);
	return silent != UINT64_MAX && !is_too_long(session, silent);
}

bool session_shares(const struct session *session, const struct store *store, bool wanted)
{
	return wanted &&
	       access_allows(store->stores->access, &session->identity, RIGHT_SHARE, store->name);
}

void promise_retire(struct store *store)
{
	static const ProtobufCBinaryData nobody = { 0, NULL };
	struct memory *memory = store->stores->memory;

	image_promise(&store->image, PS_PROMISE_RETIRED, nobody);
	image_promise(&store->beside, PS_PROMISE_RETIRED, nobody);
	memory->ops->fence(memory);
}

static void end_session(struct store *store, bool released)
{
	struct session *session = store->session;

	session->ops->cut(session);
	handover_ends(store, released);
	store_tell(store, STORE_SESSION_OVER, session, session->epoch, 0);
	if (session->shared) {
		holder_drop(store);
		if (session->ops->keep)
			store->holder = session->ops->keep(session);
	}
	board_drop(store);
	memset(session->token, 0, sizeof(session->token));
	session->shared = false;
	session->rdma = false;
	session->beside = false;
	session->store = NULL;
	store->session = NULL;
	/* It may take long, and the session may end meanwhile. */
	beside_bury(store);
}

void session_detach(struct store *store)
{
	end_session(store, false);
}

void store_session_ended(struct session *session)
{
	standby_forget(session);
	if (session->store)
		session_detach(session->store);
}

int store_lifeline(struct stores *stores, struct session *session,
                   const Perseas__LifelineRequest *request, struct why *why)
{
	const struct session *owner = stores_session(stores, request->token.data);

	if (session->store)
		return refuse(why, STATUS(BAD_REQUEST),
		              "this connection holds store %s; a lifeline is another connection",
		              session->store->name);
	if (!owner || strcmp(owner->identity.name, session->identity.name) != 0)
		return refuse(why, STATUS(NO_SESSION),
		              "no session that %s has here is of this token",
		              session->identity.name);
	memcpy(session->lifeline, request->token.data, PS_ID_SIZE);
	return 0;
}

struct session *stores_kept_by(struct stores *stores, const struct session *lifeline)
{
	static const uint8_t none[PS_ID_SIZE];

	if (memcmp(lifeline->lifeline, none, PS_ID_SIZE) == 0)
		return NULL;
	return stores_session(stores, lifeline->lifeline);
}

const char *session_store(const struct session *session)
{
	return session->store ? session->store->name : NULL;
}

int session_check(struct session *session, struct why *why)
{
	if (!session->store)
		return refuse(why, STATUS(NO_SESSION),
		              "this connection holds no claim, or lost it to another owner");
	scratch_reset();
	return 0;
}

int session_grant(struct session *session, Perseas__Grant **given, struct why *why)
{
	struct stores *stores = session->store->stores;
	struct image *image = image_of(session);
	Perseas__Grant *grant = scratch_alloc(sizeof(*grant));
	Perseas__Region *regions = scratch_alloc(PS_REGIONS_MAX * sizeof(*regions));
	Perseas__Region **table = scratch_alloc(PS_REGIONS_MAX * sizeof(*table));

	if (!grant || !regions || !table)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	perseas__grant__init(grant);
	grant->token.data = session->token;
	grant->token.len = PS_ID_SIZE;
	grant->owner_timeout_ms = (uint32_t)stores->owner_timeout_ms;
	grant->regions = table;
	for (uint32_t id = 0; id < PS_REGIONS_MAX; id++) {
		Perseas__Region *region = &regions[grant->n_regions];

		if (!image->regions[id].base)
			continue;
		perseas__region__init(region);
		region->id = id;
		region->length = image->regions[id].size;
		table[grant->n_regions++] = region;
	}
	grant->descriptors = session->shared ? (uint32_t)grant->n_regions : 0;
	grant->barrier = session->shared && stores->memory->ops->reaches_owners &&
	                 stores->memory->ops->reaches_owners(stores->memory);
	if (session->ops->grant)
		session->ops->grant(session, grant);
	*given = grant;
	return 0;
}

int session_descriptors(struct session *session, int fds[PS_REGIONS_MAX], unsigned *count)
{
	struct memory *memory;
	struct image *image;
	char name[PIECE_NAME];

	*count = 0;
	if (!session->store || !session->shared)
		return 0;
	memory = session->store->stores->memory;
	image = image_of(session);
	for (uint32_t id = 0; id < PS_REGIONS_MAX; id++) {
		if (!image->regions[id].base)
			continue;
		piece_name(name, id, image->generation);
		if (memory->ops->give(memory, session->store->name, name, &image->regions[id],
		                      &fds[*count]) == 0) {
			++*count;
			continue;
		}
		while (*count > 0)
			close(fds[--*count]);
		return -1;
	}
	return 0;
}

uint8_t *session_memory(struct session *session, uint32_t region, uint64_t offset, uint64_t length,
                        bool write)
{
	const struct piece *piece;

	if (!session->store || region >= PS_REGIONS_MAX || (write && region == PS_REGION_PROMISE))
		return NULL;
	piece = &image_of(session)->regions[region];
	if (!piece->base || offset > piece->size || length > piece->size - offset)
		return NULL;
	return piece->base + offset;
}

int store_confirm(struct session *session, const Perseas__ConfirmRequest *request,
                  Perseas__ConfirmReply *reply, struct why *why)
{
	struct ps_slot slot;
	int index, ret = session_check(session, why);

	if (!ret)
		ret = board_tell(session->store, request, why);
	if (ret)
		return ret;
	handover_confirmed(session->store);
	reply->order = board_order(session->store);
	reply->handover = handover_asked(session->store);
	index = image_slot(image_of(session), &slot);
	reply->slot = scratch_slot(&slot, index);
	if (!reply->slot)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	return 0;
}

/* Puts a copy in the place of a roster; NULL: nothing. False: out of memory. */
static bool put_roster(Perseas__Roster **place, const Perseas__Roster *roster)
{
	Perseas__Roster *copy = roster ? ps_roster_copy(roster) : NULL;

	if (roster && !copy)
		return false;
	if (*place)
		perseas__roster__free_unpacked(*place, NULL);
	*place = copy;
	return true;
}

/* Gives the header the key, or none. False: out of memory. */
static bool put_key(Perseas__Header *header, ProtobufCBinaryData key)
{
	uint8_t *copy = key.len ? malloc(key.len) : NULL;

	if (key.len && !copy)
		return false;
	if (copy)
		memcpy(copy, key.data, key.len);
	free(header->key.data);
	header->key = (ProtobufCBinaryData){ key.len, copy };
	return true;
}

/* The one in force and what comes next; or, when it is not settled, only the latter. */
static bool set_rosters(Perseas__Header *header, const Perseas__RosterRequest *request)
{
	header->marked = request->mark;
	if (!request->settled)
		return put_roster(&header->next_roster, request->roster);
	return put_roster(&header->roster, request->roster) &&
	       put_roster(&header->next_roster, request->next);
}

static int with_roster(const Perseas__Header *header, const Perseas__RosterRequest *request,
                       Perseas__Header **edit, struct why *why)
{
	int ret = header_edit(header, edit, why);

	if (ret)
		return ret;
	if (set_rosters(*edit, request) && put_key(*edit, request->key))
		return 0;
	header_free(*edit);
	*edit = NULL;
	return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
}

/* Both the image and the one beside it learn of the roster: either may be served next. */
int store_roster(struct session *session, const Perseas__RosterRequest *request, struct why *why)
{
	Perseas__Header *header, *beside = NULL;
	const Perseas__Roster *told = request->next ? request->next : request->roster, *newest;
	struct store *store;
	int ret = session_check(session, why);

	if (ret)
		return ret;
	store = session->store;
	/* A later one could never be replaced by those who own the store next. */
	if (told->epoch > session->epoch || request->roster->epoch > session->epoch)
		return refuse(why, STATUS(BAD_REQUEST),
		              "a roster of epoch %llu cannot come from the owner of epoch %llu",
		              (unsigned long long)told->epoch, (unsigned long long)session->epoch);
	newest = ps_roster_newest(store->header);
	if (ps_roster_newer(newest, told))
		return refuse(why, STATUS(BAD_STATE),
		              "roster %llu of epoch %llu is older than roster %llu of epoch %llu, "
		              "which this mirror has",
		              (unsigned long long)told->version, (unsigned long long)told->epoch,
		              (unsigned long long)newest->version,
		              (unsigned long long)newest->epoch);
	if (store->beside_header) {
		ret = with_roster(store->beside_header, request, &beside, why);
		if (ret)
			return ret;
	}
	ret = with_roster(store->header, request, &header, why);
	if (!ret)
		ret = header_commit(store, header, why);
	if (ret || !beside) {
		header_free(beside);
		return ret;
	}
	header_free(store->beside_header);
	store->beside_header = beside;
	return 0;
}

int store_release(struct session *session, struct why *why)
{
	Perseas__Header *header;
	enum memory_whose whose;
	struct store *store;
	int ret = session_check(session, why);

	if (ret)
		return ret;
	store = session->store;
	/* What an owner says of itself counts only where the kernel cannot be asked. */
	whose = image_whose(store, &store->image);
	if (store->header->shared && whose != MEMORY_HELD) {
		ret = header_edit(store->header, &header, why);
		if (ret)
			return ret;
		header->shared = false;
		ret = header_commit(store, header, why);
		if (ret)
			return ret;
	}
	end_session(store, true);
	holder_drop(store);
	return 0;
}
