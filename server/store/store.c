/*
 * store.c - the table of stores, and requests that only read: status, list, digest, read. control.c
 * calls it for requests, and the other store_*.c files for shared functions. Nothing here changes
 * an image.
 */
#include "store_private.h"

#include "../../proto/base/keyed_digest_tls.h"
#include "../../proto/control/envelope.h"
#include "../../proto/control/key.h"
#include "../../proto/image/crc32c.h"
#include "../../proto/base/text.h"
#include "../host/jobs.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOLDER_WAIT_MS = 5000 };

#define DIGEST_MAX ((uint64_t)64 << 20)
#define DIGEST_SLICE ((uint64_t)4 << 20)

struct scratch {
	struct scratch *next;
	_Alignas(16) unsigned char bytes[];
};

int refuse(struct why *why, Perseas__Status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	ps_text_vformat(why->text, sizeof(why->text), format, args);
	va_end(args);
	return -(int)status;
}

const char *errno_text(char text[ERRNO_TEXT], int error)
{
	text[0] = '\0';
	if (error)
		snprintf(text, ERRNO_TEXT, " (%s)", strerror(error));
	return text;
}

/* Memory of the current reply. One list for each thread: a job that has given up its turn keeps the
 * part of its reply that is done. */
static _Thread_local struct scratch *scratch_list;

void scratch_reset(void)
{
	while (scratch_list) {
		struct scratch *scratch = scratch_list;

		scratch_list = scratch->next;
		free(scratch);
	}
}

void *scratch_alloc(size_t size)
{
	struct scratch *scratch = calloc(1, sizeof(*scratch) + size);

	if (!scratch)
		return NULL;
	scratch->next = scratch_list;
	scratch_list = scratch;
	return scratch->bytes;
}

Perseas__Slot *scratch_slot(const struct ps_slot *slot, int index)
{
	Perseas__Slot *message = scratch_alloc(sizeof(*message));

	if (!message)
		return NULL;
	perseas__slot__init(message);
	if (index < 0)
		return message;
	message->epoch = slot->epoch;
	message->seq = slot->seq;
	message->next = slot->next;
	message->last = slot->last;
	message->index = (uint32_t)index;
	return message;
}

bool same_id(ProtobufCBinaryData id, ProtobufCBinaryData other)
{
	return id.len == PS_ID_SIZE && other.len == PS_ID_SIZE &&
	       memcmp(id.data, other.data, PS_ID_SIZE) == 0;
}

struct stores *stores_new(struct memory *memory)
{
	struct stores *stores = calloc(1, sizeof(*stores));

	if (!stores)
		return NULL;
	stores->memory = memory;
	stores->holder_wait_ms = HOLDER_WAIT_MS;
	stores->copies_max = 1;
	memory->ops->identity(memory, stores->daemon);
	return stores;
}

void stores_set_owner_timeout(struct stores *stores, uint64_t ms)
{
	stores->owner_timeout_ms = ms;
}

void stores_set_holder_wait(struct stores *stores, uint32_t ms)
{
	stores->holder_wait_ms = ms;
}

void stores_begin_request(struct stores *stores, const char *name)
{
	struct store *store = store_find(stores, name);

	assert(!store || !store->job);
	if (store)
		store->job = job_current();
}

void stores_end_request(struct stores *stores, const char *name)
{
	struct store *store = store_find(stores, name);

	if (store)
		store->job = NULL;
}

void stores_free_reply(void)
{
	scratch_reset();
}

int stores_check_open(struct stores *stores, struct why *why)
{
	scratch_reset();
	if (stores->closing)
		return refuse(why, STATUS(BAD_STATE), "the daemon of this mirror is stopping");
	return 0;
}

void stores_on_unmap(struct stores *stores,
                     void (*before_unmap)(void *arg, const struct piece *piece), void *arg)
{
	stores->before_unmap = before_unmap;
	stores->before_unmap_arg = arg;
}

void stores_on_event(struct stores *stores,
                     void (*on_event)(void *arg, const struct store_event_info *news), void *arg)
{
	stores->on_event = on_event;
	stores->on_event_arg = arg;
}

void store_report(struct store *store, enum store_event event, const struct session *session,
                  uint64_t epoch, uint64_t seq)
{
	const struct store_event_info news = { event, store->name, session,
		                               epoch, seq,         store->restart_loss };

	store->events[event]++;
	if (store->stores->on_event)
		store->stores->on_event(store->stores->on_event_arg, &news);
}

void stores_free(struct stores *stores)
{
	if (!stores)
		return;
	scratch_reset();
	standbys_forget(stores);
	copy_turns_free(stores);
	while (stores->first)
		store_delete(stores->first);
	free(stores);
}

struct store *store_find(struct stores *stores, const char *name)
{
	for (struct store *store = stores->first; store; store = store->next)
		if (strcmp(store->name, name) == 0)
			return store;
	return NULL;
}

struct store *store_find_served(struct stores *stores, const char *name, int *ret, struct why *why)
{
	struct store *store = store_find(stores, name);

	/* A store that is being created has no header yet, and does not exist for clients. */
	if (store && !store->header && !store->damage[0])
		store = NULL;
	if (!store)
		*ret = refuse(why, STATUS(NO_STORE), "this mirror has no store named %s", name);
	else if ((*ret = store_check_touchable(store, why)))
		store = NULL;
	return store;
}

int store_check_touchable(const struct store *store, struct why *why)
{
	return store->untouchable
	               ? refuse(why, store->untouchable, "the image of store %s is not served: %s",
	                        store->name, store->damage)
	               : 0;
}

int store_check_level(const struct stores *stores, const char *name, uint32_t level,
                      struct why *why)
{
	const struct store *store = store_find((struct stores *)stores, name);
	const Perseas__Header *header = store ? store->header : NULL;

	if (!header || ps_store_level(header->roster, header->next_roster) <= level)
		return 0;
	return refuse(why, STATUS(BAD_VERSION),
	              "store %s is of level %u, which the version of the protocol that its sender "
	              "speaks does not know: upgrade that",
	              name, ps_store_level(header->roster, header->next_roster));
}

struct store *store_find_sound(struct stores *stores, const char *name, int *ret, struct why *why)
{
	struct store *store = store_find_served(stores, name, ret, why);

	if (store && store->damage[0]) {
		*ret = refuse(why, STATUS(DAMAGED), "the image of store %s is damaged: %s", name,
		              store->damage);
		return NULL;
	}
	return store;
}

struct store *store_find_to_change(struct stores *stores, const char *name, int *ret,
                                   struct why *why)
{
	*ret = stores_check_open(stores, why);
	return *ret ? NULL : store_find_sound(stores, name, ret, why);
}

struct store *store_insert(struct stores *stores, const char *name)
{
	struct store *store = calloc(1, sizeof(*store));

	assert(!store_find(stores, name));
	if (!store)
		return NULL;
	snprintf(store->name, sizeof(store->name), "%s", name);
	store->stores = stores;
	image_init(&store->image);
	image_init(&store->rebuilt);
	store->next = stores->first;
	stores->first = store;
	stores->count++;
	return store;
}

void store_delete(struct store *store)
{
	struct store **link = &store->stores->first;

	image_close(store, &store->rebuilt);
	header_free(store->rebuilt_header);
	holder_drop(store);
	owner_reports_drop(store);
	handover_drop(store);
	image_close(store, &store->image);
	header_free(store->header);
	assert(store->stores->count > 0);
	while (*link != store)
		link = &(*link)->next;
	*link = store->next;
	store->stores->count--;
	free(store);
}

/* Fills in the fields of a status about the store's owner. Returns false if memory is out. */
static bool fill_session(struct store *store, Perseas__StoreStatus *status)
{
	struct session *session = store->session;
	uint64_t silent;

	status->live = session_lives(session);
	if (!session)
		return true;
	status->owner_address = session->peer;
	if (session->fabric)
		status->fabric = (char *)session->fabric;
	silent = session->ops->silent_ms ? session->ops->silent_ms(session) : 0;
	if (silent != UINT64_MAX)
		status->silent_ms = silent;
	return owner_reports_fill_status(store, status);
}

void header_without_key(Perseas__Header *copy, const Perseas__Header *header)
{
	*copy = *header;
	copy->key = (ProtobufCBinaryData){ 0, NULL };
}

/* Copies the header for clients: without the key, and with only the first PS_OWNER_SHOWN_SIZE bytes
 * of the owner's id. Returns NULL if memory is out. */
static Perseas__Header *header_for_clients(struct store *store)
{
	Perseas__Header *header = scratch_alloc(sizeof(*header));
	uint8_t *owner = scratch_alloc(PS_ID_SIZE);

	if (!header || !owner)
		return NULL;
	header_without_key(header, store->header);
	if (header->promised_owner.len != PS_ID_SIZE)
		return header;
	memset(owner, 0, PS_ID_SIZE);
	memcpy(owner, header->promised_owner.data, PS_OWNER_SHOWN_SIZE);
	header->promised_owner.data = owner;
	return header;
}

int store_fill_status(struct store *store, Perseas__StoreStatus *status, struct why *why)
{
	struct ps_slot slot;
	int index = image_slot(&store->image, &slot);

	status->files_missing = store->restart_loss;
	status->host = store->stores->labels.host;
	status->rack = store->stores->labels.rack;
	status->zone = store->stores->labels.zone;
	if (!fill_session(store, status) || !handover_status(store, status))
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	if (store->header) {
		status->bytes = ps_image_size(store->header);
		status->header = header_for_clients(store);
	}
	if (index >= 0)
		status->slot = scratch_slot(&slot, index);
	if ((store->header && !status->header) || (index >= 0 && !status->slot))
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	return 0;
}

/* Lists damaged stores, too, without slots, as long as their headers can be read. */
int store_list(struct stores *stores, const struct identity *who, Perseas__ListReply *reply,
               struct why *why)
{
	const struct access *access = who ? stores->access : NULL;
	int ret;

	scratch_reset();
	reply->memory_limit = stores->memory->ops->limit(stores->memory);
	reply->stores = scratch_alloc((stores->count + 1) * sizeof(*reply->stores));
	if (!reply->stores)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	for (struct store *store = stores->first; store; store = store->next) {
		Perseas__StoreStatus *status = scratch_alloc(sizeof(*status));

		if (!status)
			return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
		if (!store->header || !access_allows(access, who, RIGHT_READ, store->name))
			continue;
		perseas__store_status__init(status);
		ret = store_fill_status(store, status, why);
		if (ret)
			return ret;
		if (store->damage[0])
			status->slot = NULL;
		reply->stores[reply->n_stores++] = status;
		reply->memory_used += status->bytes;
	}
	if (access_allows(access, who, RIGHT_ADMIN, NULL))
		reply->memory_used = stores->memory->ops->used(stores->memory);
	return 0;
}

int store_status(struct stores *stores, const char *name, Perseas__StoreStatus *status,
                 struct why *why)
{
	struct store *store;
	int ret = 0;

	scratch_reset();
	store = store_find_sound(stores, name, &ret, why);
	if (!store)
		return ret;
	return store_fill_status(store, status, why);
}

/* Returns the piece if the region may be read and has these bytes, else NULL with a refusal in
 * `why`. */
static struct piece *readable_piece(struct store *store, uint32_t region, uint64_t offset,
                                    uint64_t length, struct why *why)
{
	struct piece *piece = region < PS_REGIONS_MAX ? &store->image.regions[region] : NULL;

	/* The promise page has the owner's whole id, which is secret (header_for_clients()). */
	if (!piece || !piece->base || region == PS_REGION_PROMISE) {
		refuse(why, STATUS(BAD_REQUEST), "store %s has no region %u to read", store->name,
		       region);
		return NULL;
	}
	if (offset > piece->size || length > piece->size - offset) {
		refuse(why, STATUS(BAD_REQUEST), "region %u has only %llu bytes", region,
		       (unsigned long long)piece->size);
		return NULL;
	}
	return piece;
}

struct digest_work {
	const uint8_t *bytes;
	uint64_t left;
	uint32_t crc;
	/* The key of the granules' digests, or NULL: the CRC of the region is computed. */
	const uint8_t *key;
	uint8_t *digests;
	bool failed;
};

static void digest_region(void *arg)
{
	struct digest_work *digest_work = arg;

	while (digest_work->left > 0 && !job_cancelled()) {
		uint64_t len = digest_work->left < DIGEST_SLICE ? digest_work->left : DIGEST_SLICE;

		digest_work->crc = ps_crc32c(digest_work->crc, digest_work->bytes, len);
		digest_work->bytes += len;
		digest_work->left -= len;
	}
}

static void digest_granules(void *arg)
{
	struct digest_work *work = arg;

	work->failed = !ps_keyed_digests(work->key, work->bytes, work->left, PS_GRANULE,
	                                 work->digests);
}

/* Computes the digests of the granules with the key of the request. */
static int answer_granules(const Perseas__DigestRequest *request, struct digest_work *work,
                           Perseas__DigestReply *reply, struct why *why)
{
	const size_t count = (work->left + PS_GRANULE - 1) / PS_GRANULE;

	assert(count <= PS_DIGESTS_MAX);
	work->key = request->key.data;
	work->digests = scratch_alloc(count * PS_DIGEST);
	if (!work->digests)
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	job_aside(work->left, digest_granules, work);
	if (work->failed)
		return refuse(why, STATUS(IO), "this daemon's OpenSSL has no Poly1305");
	reply->digests = (ProtobufCBinaryData){ count * PS_DIGEST, work->digests };
	return 0;
}

int store_digest(struct stores *stores, const Perseas__DigestRequest *request,
                 Perseas__DigestReply *reply, struct why *why)
{
	struct store *store;
	struct piece *piece;
	struct digest_work digest_work = { 0 };
	struct ps_slot slot;
	int index, ret = 0;

	scratch_reset();
	store = store_find_sound(stores, request->store, &ret, why);
	if (!store)
		return ret;
	if (request->length > DIGEST_MAX)
		return refuse(why, STATUS(BAD_REQUEST), "a digest covers 64 MiB at most");
	piece = readable_piece(store, request->region, request->offset, request->length, why);
	if (!piece)
		return -STATUS(BAD_REQUEST);
	index = image_slot(&store->image, &slot);
	if (index >= 0) {
		reply->slot = scratch_slot(&slot, index);
		if (!reply->slot)
			return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	digest_work.bytes = piece->base + request->offset;
	digest_work.left = request->length;
	if (request->key.len)
		ret = answer_granules(request, &digest_work, reply, why);
	else
		job_aside(request->length, digest_region, &digest_work);
	reply->crc = digest_work.crc;
	reply->live = session_lives(store->session);
	return ret;
}

int store_read(struct stores *stores, const Perseas__ReadRequest *request,
               Perseas__ReadReply *reply, struct why *why)
{
	struct store *store;
	struct piece *piece;
	int ret = 0;

	scratch_reset();
	store = store_find_sound(stores, request->store, &ret, why);
	if (!store)
		return ret;
	if (request->length < 1 || request->length > PS_READ_REQUEST_MAX)
		return refuse(why, STATUS(BAD_REQUEST), "a read is of 1 byte to 512 KiB");
	piece = readable_piece(store, request->region, request->offset, request->length, why);
	if (!piece)
		return -STATUS(BAD_REQUEST);
	reply->bytes.data = piece->base + request->offset;
	reply->bytes.len = request->length;
	return 0;
}

/* Compares in constant time, so that timing reveals nothing about a token. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
	unsigned differ = 0;

	for (int i = 0; i < PS_ID_SIZE; i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

struct session *stores_find_session(struct stores *stores, const uint8_t token[PS_ID_SIZE])
{
	struct session *found = NULL;

	for (struct store *store = stores->first; store; store = store->next)
		if (store->session && same_token(store->session->token, token))
			found = store->session;
	return found;
}
