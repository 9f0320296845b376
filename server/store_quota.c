/*
 * store_quota.c - how much an identity may have (access.h). Who has a store is who created it, as
 * its header says; what has no creator is of no quota.
 */
#include "store_private.h"

#include <string.h>

static uint64_t bytes_of(const Perseas__Header *header)
{
	return header ? ps_header_bytes(header) : 0;
}

static bool created(const struct store *store, const char *who)
{
	return store->header && strcmp(store->header->creator, who) == 0;
}

/* What it created beside `except`; the sizes of headers are checked, so that no sum overflows. */
static void sum_up(const struct stores *stores, const char *who, const struct store *except,
                   uint64_t *count, uint64_t *bytes)
{
	*count = *bytes = 0;
	for (const struct store *store = stores->first; store; store = store->next) {
		uint64_t image = bytes_of(store->header), beside = bytes_of(store->beside_header);

		if (store == except || !created(store, who))
			continue;
		*count += 1;
		*bytes += image > beside ? image : beside;
	}
}

static int check_bytes(const char *who, uint64_t have, uint64_t more, uint64_t limit,
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

int quota_create(struct stores *stores, const char *who, const struct store *instead,
                 uint64_t bytes, struct why *why)
{
	uint64_t limit, count, have;

	if (!who || !*who)
		return 0;
	limit = access_limit(stores->access, who, LIMIT_STORES);
	sum_up(stores, who, instead, &count, &have);
	if (count >= limit)
		return refuse(why, STATUS(LIMIT),
		              "%s has created %llu stores on this mirror, all that its quota "
		              "\"%s\" allows",
		              who, (unsigned long long)count, limit_name(LIMIT_STORES));
	return check_bytes(who, have, bytes, access_limit(stores->access, who, LIMIT_MEMORY), why);
}

int quota_grow(const struct store *store, uint64_t bytes, struct why *why)
{
	const char *who = store->header ? store->header->creator : "";
	uint64_t count, have;

	if (!*who)
		return 0;
	sum_up(store->stores, who, store, &count, &have);
	return check_bytes(who, have, bytes, access_limit(store->stores->access, who, LIMIT_MEMORY),
	                   why);
}

int quota_claim(const struct session *session, const struct store *store, struct why *why)
{
	const char *who = session->identity.name;
	uint64_t limit = access_limit(store->stores->access, who, LIMIT_SESSIONS), count = 0;

	for (const struct store *each = store->stores->first; each; each = each->next)
		if (each != store && each->session &&
		    strcmp(each->session->identity.name, who) == 0)
			count++;
	if (count < limit)
		return 0;
	return refuse(why, STATUS(LIMIT),
	              "%s holds %llu stores of this mirror already, all that its quota \"%s\" "
	              "allows",
	              who, (unsigned long long)count, limit_name(LIMIT_SESSIONS));
}
