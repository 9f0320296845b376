/*
 * env_list.c - turns the list of mirrors that an application or a person gave into addresses: the
 * list itself, or a name that the env can look up. It keeps no state.
 */
#include "env.h"

#include <string.h>

/* How long a lookup may take before the mirrors that the name stood for earlier are used. */
enum { PRECEDENCE_MS = 200 };

bool ps_env_list_take_result(struct ps_env *env, struct ps_list_lookup *lookup, uint64_t until_ns,
                             const char *text, struct ps_address *addresses, unsigned *count,
                             struct ps_error *error)
{
	char list[PS_LIST_TEXT];

	if (!env->ops->list_await(lookup, until_ns, list, error))
		return false;
	if (!error->code && ps_address_parse_list(list, addresses, count, error))
		ps_error_prefix(error, "the mirrors of %.300s", text);
	return true;
}

int ps_env_list_fail_timeout(const char *text, uint32_t timeout_ms, struct ps_error *error)
{
	return ps_error_set(
		error, PERSEAS_EUNREACHABLE,
		"the mirrors of %.300s: the lookup took more than %u ms; check the name "
		"server, or list the mirrors themselves",
		text, timeout_ms);
}

int ps_env_resolve_list(struct ps_env *env, const char *text, uint32_t timeout_ms,
                        struct ps_address *addresses, unsigned *count, struct ps_error *error)
{
	const uint64_t until_ns = env->ops->now(env) + ps_ms(timeout_ms);
	struct ps_list_lookup *lookup = NULL;

	if (env->ops->list_begin && env->ops->list_begin(env, text, &lookup, error))
		return error->code;
	if (!lookup)
		return ps_address_parse_list(text, addresses, count, error);
	if (!ps_env_list_take_result(env, lookup, until_ns, text, addresses, count, error))
		ps_env_list_fail_timeout(text, timeout_ms, error);
	env->ops->list_drop(lookup);
	return error->code;
}

int ps_env_resolve_list_quickly(struct ps_env *env, const char *text, uint32_t timeout_ms,
                                struct ps_address *addresses, unsigned *count,
                                struct ps_list_lookup **lookup, struct ps_error *error)
{
	const uint32_t wait_ms = timeout_ms < PRECEDENCE_MS ? timeout_ms : PRECEDENCE_MS;
	const uint64_t until_ns = env->ops->now(env) + ps_ms(wait_ms);
	struct ps_address known[PS_MIRRORS_MAX];
	unsigned known_count;

	*lookup = NULL;
	if (!env->ops->list_begin ||
	    ps_address_parse_list(ps_inherited_mirrors_of_list(env->told_by_run, text), known,
	                          &known_count, NULL))
		return ps_env_resolve_list(env, text, timeout_ms, addresses, count, error);
	if (env->ops->list_begin(env, text, lookup, error))
		return error->code;
	if (!*lookup)
		return ps_address_parse_list(text, addresses, count, error);
	if (ps_env_list_take_result(env, *lookup, until_ns, text, addresses, count, error) &&
	    error->code != PERSEAS_EUNREACHABLE) {
		env->ops->list_drop(*lookup);
		*lookup = NULL;
		return error->code;
	}
	memcpy(addresses, known, known_count * sizeof(known[0]));
	*count = known_count;
	return error->code = 0;
}
