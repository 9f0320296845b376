/*
 * named_list.c - see named_list.h. An open and a create call it. It must never replace the mirrors
 * of an owner that has claimed some.
 */
#include "named_list.h"

#include "../core/mirror.h"
#include "../keeper/attempt.h"
#include "../keeper/session.h"
#include "examine.h"

#include <string.h>

void ps_mirror_list_drop_name_lookup(struct perseas *p)
{
	if (p->opening.named_list.lookup)
		p->env->ops->list_drop(p->opening.named_list.lookup);
	p->opening.named_list.lookup = NULL;
}

void ps_mirrors_forget_from_index(struct perseas *p, unsigned first)
{
	while (p->mirror_count > first) {
		struct ps_mirror *m = &p->mirrors[--p->mirror_count];

		ps_mirror_disconnect(p, m);
		ps_probe_result_clear(m);
		memset(m, 0, sizeof(*m));
	}
}

/* Returns true if the mirrors of the handle that no roster added are exactly these, in this
 * order. */
static bool is_same_mirror_list(const struct perseas *p, const struct ps_address *addresses,
                                unsigned count)
{
	if (p->mirror_count < count ||
	    (p->mirror_count > count && !p->mirrors[count].is_from_roster))
		return false;
	for (unsigned i = 0; i < count; i++)
		if (p->mirrors[i].is_from_roster ||
		    strcmp(p->mirrors[i].address.text, addresses[i].text) != 0)
			return false;
	return true;
}

static int replace_mirrors(struct perseas *p, const struct ps_address *addresses, unsigned count,
                           struct ps_error *error)
{
	if (is_same_mirror_list(p, addresses, count))
		return 0;
	/* Forgetting claimed mirrors would lose track of the images that this owner has written
	 * to. */
	if (p->epoch)
		return ps_error_set(error, PERSEAS_EUNREACHABLE,
		                    "%.300s names other mirrors than before: open the store again",
		                    p->opening.named_list.list);
	ps_mirrors_forget_from_index(p, 0);
	if (ps_handle_set_mirrors(p, p->opening.named_list.list, addresses, count, error))
		return error->code;
	return PS_AGAIN;
}

int ps_mirror_list_await_name_lookup(struct perseas *p, struct ps_error *error)
{
	const struct ps_named_list *named = &p->opening.named_list;
	struct ps_address addresses[PS_MIRRORS_MAX];
	unsigned count = 0;

	if (!named->lookup)
		return 0;
	if (!ps_env_list_take_result(p->env, named->lookup, named->lookup_deadline, named->list,
	                             addresses, &count, error))
		ps_env_list_fail_timeout(named->list, named->lookup_limit_ms, error);
	ps_mirror_list_drop_name_lookup(p);
	return error->code ? error->code : replace_mirrors(p, addresses, count, error);
}
