/*
 * store_torn.c - images whose memory was truncated by a process that has it. Whoever answers for
 * an image asks here before he does: what was read of a torn one is zeros, and what was written to
 * it is lost. Such a store is damaged, no other is touched, and nothing of it is ever acknowledged
 * or spilled.
 */
#include "store_private.h"
#include "../host/jobs.h"

#include "../../proto/image/sigbus_guard.h"

#include <stdio.h>

static bool is_torn(const struct image *image)
{
	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++)
		if (ps_guard_torn(image->regions[region].guard))
			return true;
	return false;
}

bool store_is_torn(const struct store *store)
{
	return is_torn(&store->image) || is_torn(&store->beside);
}

bool store_notice_torn(struct store *store)
{
	const bool image = is_torn(&store->image), beside = is_torn(&store->beside);

	/* Not between the steps of a request: it finds out itself. */
	if ((!image && !beside) || (store->job && store->job != job_current()) ||
	    (store->damage[0] && !store->session))
		return false;
	promise_retire(store);
	if (store->session)
		session_detach(store); /* the image beside goes with it */
	if (!image || store->damage[0])
		return true;
	snprintf(store->damage, sizeof(store->damage),
	         "its memory was cut short by a process that has it");
	store_tell(store, STORE_DAMAGED, NULL, 0, 0);
	return true;
}

bool stores_notice_torn(struct stores *stores)
{
	const unsigned tears = ps_guard_tears();
	bool any = false, busy = false;

	if (stores->tears == tears)
		return false;
	for (struct store *store = stores->first; store; store = store->next) {
		any |= store_notice_torn(store);
		busy |= store->job != NULL;
	}
	if (!busy)
		stores->tears = tears;
	return any;
}

bool session_torn(const struct session *session)
{
	return session->store->stores->tears != ps_guard_tears() && is_torn(image_of(session));
}

int store_check_torn(struct stores *stores, const char *name, struct why *why)
{
	int ret = 0;

	if (stores_notice_torn(stores) && store_find(stores, name))
		(void)store_sound(stores, name, &ret, why);
	return ret;
}
