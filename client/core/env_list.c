/*
 * env_list.c - a list of mirrors as an application or a person gave it: written out, or by a name
 * that the environment knows. Whoever begins to ask mirrors calls it. It remembers nothing.
 */
#include "env.h"

#include "../../proto/base/number.h"

#include <string.h>

int ps_env_list(struct ps_env *env, const char *text, struct ps_address *addresses, unsigned *count,
                struct ps_error *error)
{
	char list[PS_LIST_TEXT] = "";
	int rc = env->ops->name_list ? env->ops->name_list(env, text, list, error) : 0;

	if (rc || !*list)
		return rc ? rc : ps_address_list(text, addresses, count, error);
	rc = ps_address_list(list, addresses, count, error);
	return rc ? ps_error_prefix(error, "the mirrors of %.300s", text) : 0;
}

/* False: it is not as it should be. */
static bool read_places(const char *text, struct ps_places *places)
{
	struct ps_error ignored;

	return ps_number_read(text, &text, &places->epoch) && *text == ':' &&
	       ps_number_read(text + 1, &text, &places->version) && *text == ' ' &&
	       !ps_address_list(text + 1, places->addresses, &places->count, &ignored);
}

void ps_env_learnt(const struct ps_env *env, const char *store, const char *list,
                   struct ps_places *places)
{
	const size_t length = strlen(store);

	memset(places, 0, sizeof(*places));
	if (!env->learnt || !env->learnt_beside || strcmp(env->learnt_beside, list) != 0 ||
	    strncmp(env->learnt, store, length) != 0 || env->learnt[length] != ' ')
		return;
	if (!read_places(env->learnt + length + 1, places))
		memset(places, 0, sizeof(*places));
}
