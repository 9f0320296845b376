/*
 * tell_command.c - see tell_command.h. COMMAND's open needs the result of the looks: with a list
 * that is older than the roster, it might ask no mirror that has the store; if it looked names up,
 * it would fail while the name service is silent; and if it waited for a silent mirror, the store
 * would have no owner for as long as the last look took. A mirror that answered when it was last
 * asked must never be passed on as silent.
 */
#include "tell_command.h"

#include "../../../proto/base/text.h"
#include "../../host/resolver.h"

#include <stdlib.h>
#include <string.h>

enum { MS_NS = 1000000 };

static void fill_in_list_mirrors(struct ps_inherited *told, const struct ps_peers *looks)
{
	size_t used = 0;

	for (unsigned i = 0; i < looks->listed_count; i++)
		used += ps_text_format(told->list_mirrors + used, sizeof(told->list_mirrors) - used,
		                       "%s%s", used ? "," : "", looks->addresses[i].text);
}

static void fill_in_unlisted_members(struct ps_inherited *told, const struct ps_follow *follow)
{
	const struct ps_peers *looks = &follow->status_peers;
	struct ps_roster_places *places = &told->unlisted_mirrors;

	places->epoch = follow->roster_epoch;
	places->version = follow->roster_version;
	for (unsigned i = looks->listed_count; i < looks->count; i++)
		if (ps_follow_is_unlisted_member(follow, i))
			places->addresses[places->count++] = looks->addresses[i];
}

static void fill_in_silent_mirrors(struct ps_inherited *told, const struct ps_follow *follow)
{
	const struct ps_peers *looks = &follow->status_peers;
	size_t used = 0;

	told->silent_at_ms = ps_follow_now_ns(follow) / MS_NS;
	for (unsigned i = 0; i < looks->count; i++)
		if (ps_follow_is_silent(follow, looks->addresses[i].text))
			used += ps_text_format(told->mirrors_silent_to_run + used,
			                       sizeof(told->mirrors_silent_to_run) - used, "%s%s",
			                       used ? "," : "", looks->addresses[i].text);
}

void ps_set_inherited_variable(const struct ps_follow *follow, int warm_fd)
{
	struct ps_inherited told = { .has_mark = follow->mark, .warm_fd = warm_fd };
	char text[PS_INHERITED_TEXT];

	if (follow->mark)
		memcpy(told.mark, follow->mark, sizeof(told.mark));
	ps_resolver_export(told.answered_addresses, sizeof(told.answered_addresses));
	ps_text_format(told.store, sizeof(told.store), "%s", follow->store);
	/* A list that is too long is left out: then an open without a list of mirrors is refused.
	 */
	if (strlen(follow->list) < sizeof(told.list))
		strcpy(told.list, follow->list);
	fill_in_list_mirrors(&told, &follow->status_peers);
	fill_in_unlisted_members(&told, follow);
	fill_in_silent_mirrors(&told, follow);
	ps_inherited_write(&told, text);
	setenv(PS_INHERITED_VARIABLE, text, 1);
}

void ps_export_options_to_command(const struct ps_run *run)
{
	const struct perseas_options *options = run->options;

	setenv("PERSEAS_STORE", run->store, 1);
	setenv(PS_MIRRORS_VARIABLE, run->mirrors, 1);
	if (options->tls_cert)
		setenv("PERSEAS_TLS_CERT", options->tls_cert, 1);
	if (options->tls_key)
		setenv("PERSEAS_TLS_KEY", options->tls_key, 1);
	if (options->tls_ca)
		setenv("PERSEAS_TLS_CA", options->tls_ca, 1);
	if (options->tls_crl)
		setenv("PERSEAS_TLS_CRL", options->tls_crl, 1);
}
