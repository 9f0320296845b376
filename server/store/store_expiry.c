/*
 * store_expiry.c - reports when the daemon's TLS files expire. control.c calls it for List and
 * Confirm.
 */
#include "store_private.h"

enum { EXPIRY_VERSION = 9 }; /* first protocol version that reports when TLS files expire */

/* Returns NULL if the daemon has no TLS, or if the session's version has no field for it. */
static const struct ps_expiries *expiries_of(struct session *session)
{
	const struct session_ops *ops = session->ops;

	if (session->version && session->version < EXPIRY_VERSION)
		return NULL;
	return ops && ops->expiries ? ops->expiries(session) : NULL;
}

static uint64_t session_clock_s(struct session *session)
{
	const struct session_ops *ops = session->ops;

	return ops->clock_ns ? ops->clock_ns(session) / 1000000000 : 0;
}

/* Returns a message that is valid until the reply is packed, or NULL if memory is out. */
static Perseas__Expiry *expiry_message(const struct ps_expiry *expiry)
{
	Perseas__Expiry *message = scratch_alloc(sizeof(*message));

	if (!message)
		return NULL;
	perseas__expiry__init(message);
	message->kind = (Perseas__Expiry__Kind)expiry->kind;
	message->name = (char *)(uintptr_t)expiry->name;
	message->valid_from = expiry->from_s;
	message->expires = expiry->until_s;
	return message;
}

int store_tell_expiries(struct session *session, enum ps_expiry_stage stage, size_t *count,
                        Perseas__Expiry ***list, struct why *why)
{
	const struct ps_expiries *all = expiries_of(session);
	const uint64_t now_s = all ? session_clock_s(session) : 0;

	for (unsigned i = 0; all && i < all->count; i++) {
		if (ps_expiry_stage(&all->list[i], now_s) < stage)
			continue;
		if (!*list)
			*list = scratch_alloc(all->count * sizeof(**list));
		if (!*list || !((*list)[*count] = expiry_message(&all->list[i])))
			return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
		++*count;
	}
	return 0;
}
