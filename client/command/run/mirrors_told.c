/*
 * mirrors_told.c - tells COMMAND which mirrors its store has beside those of the list, which
 * mirrors did not answer the looks before it was started, and at which addresses the others did.
 * The runner calls it. An open by a list that is older than the roster may ask none that has the
 * store, and one that waits for a silent mirror keeps the store without an owner for as long as the
 * look did. It must never name a mirror as silent that answered the last time that it was asked.
 */
#include "mirrors_told.h"

#include "../../../proto/base/text.h"
#include "../../host/resolver.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	MS_NS = 1000000,
	FIRST_TEXT = 128,         /* a time, or a store's name and its roster */
	ADDRESSES_TEXT = 8 << 10, /* more than a store's mirrors need */
};

/* Addresses, one behind the other. */
struct text {
	char bytes[FIRST_TEXT + PS_LIST_TEXT];
	size_t used;
};

static void text_add(struct text *text, char before, const struct ps_address *address)
{
	text->used += ps_text_format(text->bytes + text->used, sizeof(text->bytes) - text->used,
	                             "%c%s", before, address->text);
}

static void tell_learnt(const struct ps_follow *follow)
{
	const struct ps_panel *looks = &follow->looks;
	struct text text = { .used = 0 };
	char before = ' ';

	text.used = ps_text_format(text.bytes, sizeof(text.bytes), "%s %" PRIu64 ":%" PRIu64,
	                           follow->store, follow->roster_epoch, follow->roster_version);
	unsetenv(PS_LEARNT_VARIABLE);
	for (unsigned i = looks->given; i < looks->count; i++) {
		if (!ps_follow_learnt(follow, i))
			continue;
		text_add(&text, before, &looks->addresses[i]);
		before = ',';
	}
	if (before == ',')
		setenv(PS_LEARNT_VARIABLE, text.bytes, 1);
}

static void tell_silent(const struct ps_follow *follow)
{
	const struct ps_panel *looks = &follow->looks;
	struct text text = { .used = 0 };
	char before = ':';

	text.used = ps_text_format(text.bytes, sizeof(text.bytes), "%" PRIu64,
	                           ps_follow_now(follow) / MS_NS);
	unsetenv(PS_SILENT_VARIABLE);
	for (unsigned i = 0; i < looks->count; i++) {
		if (!ps_follow_silent(follow, looks->addresses[i].text))
			continue;
		text_add(&text, before, &looks->addresses[i]);
		before = ',';
	}
	if (before == ',')
		setenv(PS_SILENT_VARIABLE, text.bytes, 1);
}

/* COMMAND could not open the store while the name service is silent if it had to look names up. */
static void tell_addresses(void)
{
	char text[ADDRESSES_TEXT];

	ps_resolver_tell(text, sizeof(text));
	unsetenv(PS_ADDRESSES_VARIABLE);
	if (*text)
		setenv(PS_ADDRESSES_VARIABLE, text, 1);
}

void ps_mirrors_told(const struct ps_follow *follow)
{
	tell_learnt(follow);
	tell_silent(follow);
	tell_addresses();
}
