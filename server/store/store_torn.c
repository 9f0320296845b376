/*
 * store_torn.c - images whose memory was truncated by a process that has it. Code that answers for
 * an image calls this first: what was read of a torn image is zeros, and what was written to it is
 * lost. Such a store is damaged, other stores are not affected, and nothing of it is acknowledged
 * or spilled.
 */
#include "store_private.h"
#include "../host/jobs.h"

#include "../../proto/image/sigbus_guard.h"

#include <stdio.h>

static bool is_torn(const struct image *image)
{
	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++)
		if (ps_guard_is_torn(image->regions[region].guard))
			return true;
	return false;
}

bool store_is_torn(const struct store *store)
{
	return is_torn(&store->image) || is_torn(&store->rebuilt);
}

bool store_notice_torn(struct store *store)
{
	const bool image = is_torn(&store->image), rebuilt = is_torn(&store->rebuilt);

	/* A job that works on the store checks by itself between its steps. */
	if ((!image && !rebuilt) || (store->job && store->job != job_current()) ||
	    (store->damage[0] && !store->session))
		return false;
	promise_retire(store);
	if (store->session)
		session_detach(store); /* also drops the rebuilt image */
	if (!image || store->damage[0])
		return true;
	snprintf(store->damage, sizeof(store->damage),
	         "its memory was cut short by a process that has it");
	store_report(store, STORE_DAMAGED, NULL, 0, 0);
	return true;
}

bool stores_notice_torn(struct stores *stores)
{
	const unsigned tears_seen = ps_guards_torn();
	bool any = false, busy = false;

	if (stores->tears_seen == tears_seen)
		return false;
	for (struct store *store = stores->first; store; store = store->next) {
		any |= store_notice_torn(store);
		busy |= store->job != NULL;
	}
	if (!busy)
		stores->tears_seen = tears_seen;
	return any;
}

bool session_is_torn(const struct session *session)
{
	return session->store->stores->tears_seen != ps_guards_torn() &&
	       is_torn(session_image(session));
}

int store_check_torn(struct stores *stores, const char *name, struct why *why)
{
	int ret = 0;

	if (stores_notice_torn(stores) && store_find(stores, name))
		(void)store_find_sound(stores, name, &ret, why);
	return ret;
}
