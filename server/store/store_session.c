/*
 * store_session.c - sessions of owners and the memory that they were given: attaches and detaches
 * sessions, frees rebuilt images, and handles roster and release. control.c and the other store_*.c
 * files call it. A session that was cut must not reach the store any more.
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

void rebuilt_drop(struct store *store)
{
	image_remove(store, &store->rebuilt);
	header_free(store->rebuilt_header);
	store->rebuilt_header = NULL;
}

/* A copy of a store's name and its rebuilt image, while that image is freed in a job. */
struct freed_image {
	struct job job; /* must be first */
	struct freed_image *next;
	struct store store;
};

static void free_rebuilt_image(struct job *job)
{
	rebuilt_drop(&((struct freed_image *)job)->store);
}

static void remove_freed_image(struct job *job)
{
	struct freed_image *freed_image = (struct freed_image *)job,
			   **link = &freed_image->store.stores->freed_images;

	while (*link != freed_image)
		link = &(*link)->next;
	*link = freed_image->next;
	free(freed_image);
}

static bool has_pieces(const struct image *image)
{
	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++)
		if (image->regions[region].base)
			return true;
	return false;
}

void rebuilt_free_later(struct store *store)
{
	struct stores *stores = store->stores;
	struct freed_image *freed_image = NULL;

	if (has_pieces(&store->rebuilt) && !job_current())
		freed_image = calloc(1, sizeof(*freed_image));
	if (!freed_image) {
		rebuilt_drop(store);
		return;
	}
	freed_image->store.stores = stores;
	memcpy(freed_image->store.name, store->name, sizeof(store->name));
	freed_image->store.rebuilt = store->rebuilt;
	freed_image->store.rebuilt_header = store->rebuilt_header;
	image_init(&store->rebuilt);
	store->rebuilt_header = NULL;
	freed_image->next = stores->freed_images;
	stores->freed_images = freed_image;
	freed_image->job = (struct job){ .run = free_rebuilt_image, .done = remove_freed_image };
	if (job_queue(&freed_image->job))
		remove_freed_image(&freed_image->job);
}

bool stores_are_freeing(const struct stores *stores, const char *name)
{
	for (const struct freed_image *freed_image = stores->freed_images; freed_image;
	     freed_image = freed_image->next)
		if (!name || strcmp(freed_image->store.name, name) == 0)
			return true;
	return false;
}

uint64_t store_next_generation(const struct store *store)
{
	uint64_t generation = store->header->generation;

	for (const struct freed_image *freed_image = store->stores->freed_images; freed_image;
	     freed_image = freed_image->next)
		if (strcmp(freed_image->store.name, store->name) == 0 &&
		    freed_image->store.rebuilt.generation > generation)
			generation = freed_image->store.rebuilt.generation;
	return generation + 1;
}

/* I5: each session that was granted and has not ended is that of one store, which promised its
 * epoch or, while another owner claims it, a later one. */
static void assert_sessions_add_up(const struct stores *stores)
{
	unsigned count = 0;

	for (const struct store *store = stores->first; store; store = store->next) {
		if (!store->session)
			continue;
		assert(store->session->store == store);
		assert(store->session->epoch <= store->header->promised_epoch);
		count++;
	}
	assert(count == stores->session_count);
}

void session_attach(struct store *store, struct session *session, uint64_t epoch,
                    ProtobufCBinaryData owner, bool shared, bool rdma)
{
	struct memory *memory = store->stores->memory;

	/* I5: a store has one session, that of the owner with the promise. */
	assert(!store->session && !session->store);
	assert(epoch == store->header->promised_epoch);
	assert(ps_id_equal(store->header->promised_owner, owner.data));
	store->session = session;
	store->stores->session_count++;
	session->store = store;
	session->epoch = epoch;
	assert_sessions_add_up(store->stores);
	memcpy(session->owner, owner.data, PS_ID_SIZE);
	/* A session that owns a store cannot be a lifeline, so that lifelines form no chains. */
	memset(session->lifeline, 0, sizeof(session->lifeline));
	memory->ops->random(memory, session->token, PS_ID_SIZE);
	session->shared = shared;
	session->rdma = rdma;
	session->opened = false;
	session->is_rebuilding = false;
	store->holder_wait_left_ms = store->stores->holder_wait_ms;
	handover_record_claim(store);
	store_report(store, STORE_CLAIMED, session, epoch, 0);
}

static bool exceeds_timeout(const struct session *session, uint64_t silent_ms)
{
	const uint64_t limit = session->store->stores->owner_timeout_ms;

	return limit != 0 && silent_ms > limit;
}

bool session_silence_exceeds_limit(const struct session *session, uint64_t silent_ms)
{
	return session->store && exceeds_timeout(session, silent_ms);
}

bool session_lives(const struct session *session)
{
	uint64_t silent = 0;

	if (!session)
		return false;
	if (session->ops->silent_ms)
		silent = session->ops->silent_ms((struct session *)session);
	return silent != UINT64_MAX && !exceeds_timeout(session, silent);
}

bool session_may_share(const struct session *session, const struct store *store, bool wanted)
{
	return wanted &&
	       access_allows(store->stores->access, &session->identity, RIGHT_SHARE, store->name);
}

void promise_retire(struct store *store)
{
	static const ProtobufCBinaryData nobody = { 0, NULL };
	struct memory *memory = store->stores->memory;

	image_write_promise(&store->image, PS_PROMISE_RETIRED, nobody);
	image_write_promise(&store->rebuilt, PS_PROMISE_RETIRED, nobody);
	memory->ops->fence(memory);
}

static void end_session(struct store *store, bool released)
{
	struct session *session = store->session;

	assert(session && session->store == store);
	session->ops->cut(session);
	handover_record_end(store, released);
	store_report(store, STORE_SESSION_ENDED, session, session->epoch, 0);
	if (session->shared) {
		holder_drop(store);
		if (session->ops->get_holder)
			store->holder = session->ops->get_holder(session);
	}
	owner_reports_drop(store);
	copy_turn_end(session);
	memset(session->token, 0, sizeof(session->token));
	session->shared = false;
	session->rdma = false;
	session->is_rebuilding = false;
	session->store = NULL;
	store->session = NULL;
	store->stores->session_count--;
	assert_sessions_add_up(store->stores);
	/* Called last, because it may give up the turn, and the session may end in the meantime. */
	rebuilt_free_later(store);
}

void session_detach(struct store *store)
{
	end_session(store, false);
}

void store_session_ended(struct session *session)
{
	standby_forget(session);
	copy_turn_end(session);
	if (session->store)
		session_detach(session->store);
}

int store_lifeline(struct stores *stores, struct session *session,
                   const Perseas__LifelineRequest *request, struct why *why)
{
	const struct session *owner = stores_find_session(stores, request->token.data);

	if (session->store)
		return refuse(why, STATUS(BAD_REQUEST),
		              "this connection holds store %s; a lifeline is another connection",
		              session->store->name);
	if (!owner || strcmp(owner->identity.name, session->identity.name) != 0)
		return refuse(why, STATUS(NO_SESSION), "no session of %s has this token",
		              session->identity.name);
	memcpy(session->lifeline, request->token.data, PS_ID_SIZE);
	return 0;
}

struct session *stores_find_lifeline_session(struct stores *stores, const struct session *lifeline)
{
	static const uint8_t none[PS_ID_SIZE];

	if (memcmp(lifeline->lifeline, none, PS_ID_SIZE) == 0)
		return NULL;
	return stores_find_session(stores, lifeline->lifeline);
}

const char *session_store(const struct session *session)
{
	return session->store ? session->store->name : NULL;
}

int session_check_claim(struct session *session, struct why *why)
{
	if (!session->store)
		return refuse(why, STATUS(NO_SESSION),
		              "this connection holds no claim, or lost it to another owner");
	scratch_reset();
	return 0;
}

int session_make_grant(struct session *session, Perseas__Grant **given, struct why *why)
{
	struct stores *stores = session->store->stores;
	struct image *image = session_image(session);
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
	grant->barrier = session->shared && stores->memory->ops->fence_reaches_owners &&
	                 stores->memory->ops->fence_reaches_owners(stores->memory);
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
	image = session_image(session);
	for (uint32_t id = 0; id < PS_REGIONS_MAX; id++) {
		if (!image->regions[id].base)
			continue;
		piece_name(name, id, image->generation);
		if (memory->ops->open_shared(memory, session->store->name, name,
		                             &image->regions[id], &fds[*count]) == 0) {
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
	piece = &session_image(session)->regions[region];
	if (!piece->base || offset > piece->size || length > piece->size - offset)
		return NULL;
	return piece->base + offset;
}

int store_confirm(struct session *session, const Perseas__ConfirmRequest *request,
                  Perseas__ConfirmReply *reply, struct why *why)
{
	struct ps_slot slot;
	int index, ret = session_check_claim(session, why);

	if (!ret)
		ret = owner_reports_update(session->store, request, why);
	if (ret)
		return ret;
	handover_record_confirm(session->store);
	copy_turn_take_report(session, request);
	reply->order = store_pending_order(session->store);
	reply->handover = handover_for_owner(session->store);
	index = image_slot(session_image(session), &slot);
	reply->slot = scratch_slot(&slot, index);
	if (!reply->slot)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	return 0;
}

/* Replaces a roster by a copy; NULL removes it. Returns false if memory is out. */
static bool replace_roster(Perseas__Roster **place, const Perseas__Roster *roster)
{
	Perseas__Roster *copy = roster ? ps_roster_copy(roster) : NULL;

	if (roster && !copy)
		return false;
	if (*place)
		perseas__roster__free_unpacked(*place, NULL);
	*place = copy;
	return true;
}

/* Sets or removes the header's key. Returns false if memory is out. */
static bool replace_key(Perseas__Header *header, ProtobufCBinaryData key)
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

/* Stores the request's rosters in the header: the settled roster and the next one. If the request's
 * roster is not settled, it becomes the next one. Returns false if memory is out. */
static bool set_rosters(Perseas__Header *header, const Perseas__RosterRequest *request)
{
	header->marked = request->mark;
	if (!request->settled)
		return replace_roster(&header->next_roster, request->roster);
	return replace_roster(&header->roster, request->roster) &&
	       replace_roster(&header->next_roster, request->next);
}

static int edit_rosters(const Perseas__Header *header, const Perseas__RosterRequest *request,
                        Perseas__Header **edit, struct why *why)
{
	int ret = header_edit(header, edit, why);

	if (ret)
		return ret;
	if (set_rosters(*edit, request) && replace_key(*edit, request->key))
		return 0;
	header_free(*edit);
	*edit = NULL;
	return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
}

/* Updates the headers of both the image and the rebuilt image, because either may be served
 * next. */
int store_roster(struct session *session, const Perseas__RosterRequest *request, struct why *why)
{
	Perseas__Header *header, *rebuilt = NULL;
	const Perseas__Roster *told = request->next ? request->next : request->roster, *newest;
	struct store *store;
	int ret = session_check_claim(session, why);

	if (ret)
		return ret;
	store = session->store;
	/* The next owners could never replace a roster of a later epoch. */
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
	if (store->rebuilt_header) {
		ret = edit_rosters(store->rebuilt_header, request, &rebuilt, why);
		if (ret)
			return ret;
	}
	ret = edit_rosters(store->header, request, &header, why);
	if (!ret)
		ret = header_commit(store, header, why);
	if (ret || !rebuilt) {
		header_free(rebuilt);
		return ret;
	}
	header_free(store->rebuilt_header);
	store->rebuilt_header = rebuilt;
	return 0;
}

int store_release(struct session *session, struct why *why)
{
	Perseas__Header *header;
	enum memory_sharing sharing;
	struct store *store;
	int ret = session_check_claim(session, why);

	if (ret)
		return ret;
	store = session->store;
	/* A Release says that the owner no longer has the memory. The kernel may know better. */
	sharing = image_sharing(store, &store->image);
	if (store->header->shared && sharing != MEMORY_SHARED) {
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
