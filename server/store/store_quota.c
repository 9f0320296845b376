/*
 * store_quota.c - quotas of identities (access.h). A store is charged to the creator in its header;
 * a store without a creator is charged to nobody. Code that makes images and segments calls it, and
 * so do claims. It must count all bytes that are really occupied, also those by which an owner that
 * has the memory extended it, and replaced images that a process still has.
 */
#include "store_private.h"

#include <string.h>

/* Returns the bytes that the image occupies beyond its reservation. */
static uint64_t image_excess(const struct store *store, const struct image *image)
{
	struct memory *memory = store->stores->memory;
	uint64_t piece_excess = 0;

	for (uint32_t region = 0; memory->ops->piece_excess && region < PS_REGIONS_MAX; region++)
		if (image->regions[region].base)
			piece_excess += memory->ops->piece_excess(memory, &image->regions[region]);
	return piece_excess;
}

/* Returns the bytes that count against a quota: the size in the header, or the size of the pieces
 * if that is larger. */
static uint64_t charged_bytes(const struct store *store, const struct image *image,
                              const Perseas__Header *header)
{
	uint64_t told = header ? ps_image_size(header) : 0, taken = 0;

	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++)
		if (image->regions[region].base && region != PS_REGION_PROMISE)
			taken += image->regions[region].size;
	taken += image_excess(store, image);
	return taken > told ? taken : told;
}

static uint64_t removed_bytes(const struct store *store)
{
	struct memory *memory = store->stores->memory;

	return memory->ops->removed_bytes ? memory->ops->removed_bytes(memory, store->name) : 0;
}

static bool is_created_by(const struct store *store, const char *who)
{
	return store->header && strcmp(store->header->creator, who) == 0;
}

/* Sums up the stores that the identity `who` created, without the store `except`. The sizes in
 * headers were checked, so no sum overflows. */
static void sum_created(const struct stores *stores, const char *who, const struct store *except,
                        uint64_t *count, uint64_t *bytes)
{
	*count = *bytes = 0;
	for (const struct store *store = stores->first; store; store = store->next) {
		if (store == except || !is_created_by(store, who))
			continue;
		*count += 1;
		*bytes += charged_bytes(store, &store->image, store->header) +
		          charged_bytes(store, &store->rebuilt, store->rebuilt_header) +
		          removed_bytes(store);
	}
}

static int check_byte_quota(const char *who, uint64_t have, uint64_t more, uint64_t limit,
                            struct why *why)
{
	const unsigned long long wanted = have + more;

	if (limit == LIMIT_NONE || (have <= limit && more <= limit - have))
		return 0;
	return refuse(why, STATUS(NO_MEMORY),
	              "the images that %s created would take %llu bytes of this mirror, and its "
	              "quota \"%s\" is %llu",
	              who, wanted, limit_name(LIMIT_MEMORY), (unsigned long long)limit);
}

int quota_check_create(struct stores *stores, const char *who, const struct store *instead,
                       uint64_t bytes, struct why *why)
{
	uint64_t limit, count, have;

	if (!who || !*who)
		return 0;
	limit = access_limit(stores->access, who, LIMIT_STORES);
	sum_created(stores, who, instead, &count, &have);
	if (count >= limit)
		return refuse(why, STATUS(LIMIT),
		              "%s has created %llu stores on this mirror, all that its quota "
		              "\"%s\" allows",
		              who, (unsigned long long)count, limit_name(LIMIT_STORES));
	return check_byte_quota(who, have, bytes, access_limit(stores->access, who, LIMIT_MEMORY),
	                        why);
}

static int check_store_quota(const struct store *store, uint64_t store_bytes, struct why *why)
{
	const char *who = store->header ? store->header->creator : "";
	uint64_t count, have;

	if (!*who)
		return 0;
	sum_created(store->stores, who, store, &count, &have);
	return check_byte_quota(who, have + removed_bytes(store), store_bytes,
	                        access_limit(store->stores->access, who, LIMIT_MEMORY), why);
}

int quota_check_growth(const struct store *store, bool is_rebuilt, uint64_t bytes, struct why *why)
{
	const uint64_t other = is_rebuilt ? charged_bytes(store, &store->image, store->header)
	                                  : charged_bytes(store, &store->rebuilt,
	                                                  store->rebuilt_header);

	return check_store_quota(store, bytes + other, why);
}

int quota_check_copy(const struct store *store, struct why *why)
{
	return check_store_quota(store, ps_image_size(store->header), why);
}

bool quota_exceeded(const struct store *store)
{
	struct memory *memory = store->stores->memory;
	const uint64_t limit = memory->ops->limit(memory);
	struct why why;

	if (image_excess(store, &store->image) + image_excess(store, &store->rebuilt) == 0)
		return false;
	return (limit && memory->ops->used(memory) > limit) ||
	       quota_check_growth(store, false, charged_bytes(store, &store->image, store->header),
	                          &why) != 0;
}

/* Checks whether the daemon has capacity for another owner. A session that holds a store, or takes
 * it over from an owner, needs no additional capacity. */
static int check_capacity(const struct session *session, const struct store *store, struct why *why)
{
	if (store->session || session->store || !session->ops->has_room_for_owner ||
	    session->ops->has_room_for_owner(session))
		return 0;
	return refuse(
		why, STATUS(LIMIT),
		"this mirror has no place for another owner: its --max-connections leaves two "
		"connections to each, and some to operators; raise it, or close a store");
}

int quota_check_claim(const struct session *session, const struct store *store, struct why *why)
{
	const char *who = session->identity.name;
	uint64_t limit = access_limit(store->stores->access, who, LIMIT_SESSIONS), count = 0;

	for (const struct store *each = store->stores->first; each; each = each->next)
		if (each != store && each->session &&
		    strcmp(each->session->identity.name, who) == 0)
			count++;
	if (count < limit)
		return check_capacity(session, store, why);
	return refuse(why, STATUS(LIMIT),
	              "%s holds %llu stores of this mirror already, all that its quota \"%s\" "
	              "allows",
	              who, (unsigned long long)count, limit_name(LIMIT_SESSIONS));
}
