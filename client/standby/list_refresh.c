/*
 * list_refresh.c - see list_refresh.h.
 */
#include "list_refresh.h"

enum { NAME_MS = 5000 }; /* at least this long between two lookups */

#define MS_NS UINT64_C(1000000)

void ps_list_refresh_drop(struct ps_follow *follow)
{
	if (follow->lookup)
		follow->status_peers.env->ops->list_drop(follow->lookup);
	follow->lookup = NULL;
}

struct pollfd ps_list_refresh_fd(const struct ps_follow *follow)
{
	return (struct pollfd){ .fd = follow->status_peers.env->ops->list_fd(follow->lookup),
		                .events = POLLIN };
}

bool ps_list_refresh_has_ended(const struct ps_follow *follow)
{
	struct pollfd fd;

	if (!follow->lookup)
		return false;
	fd = ps_list_refresh_fd(follow);
	return poll(&fd, 1, 0) > 0;
}

/* Begins a lookup of the list's name, unless one is in flight or began less than NAME_MS ago. A
 * list without a name needs none. */
static void begin_lookup(struct ps_follow *follow)
{
	struct ps_env *env = follow->status_peers.env;
	const uint64_t now_ns = ps_follow_now_ns(follow);
	struct ps_error ignored;

	if (follow->lookup || !env->ops->list_begin ||
	    now_ns < follow->name_looked_up_ns + NAME_MS * MS_NS)
		return;
	follow->name_looked_up_ns = now_ns;
	follow->is_list_uncertain = env->ops->list_begin(env, follow->list, &follow->lookup,
	                                                 &ignored) ||
	                            follow->lookup;
}

/* Returns how many mirrors a lookup found, or 0 if none has ended. */
static unsigned take_lookup(struct ps_follow *follow, struct ps_address found[PS_MIRRORS_MAX])
{
	struct ps_error error = { 0 };
	unsigned count = 0;

	if (!follow->lookup || !ps_env_list_take_result(follow->status_peers.env, follow->lookup, 0,
	                                                follow->list, found, &count, &error))
		return 0;
	ps_list_refresh_drop(follow);
	follow->is_list_uncertain = error.code != 0;
	return error.code ? 0 : count;
}

unsigned ps_list_refresh_poll(struct ps_follow *follow, struct ps_address found[PS_MIRRORS_MAX])
{
	begin_lookup(follow);
	return take_lookup(follow, found);
}
