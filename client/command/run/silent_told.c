/*
 * silent_told.c - tells COMMAND which mirrors did not answer the looks before it was started. The
 * runner calls it. Its open would wait for them as long as a look did, with no owner meanwhile. It
 * must never name one that answered the last time that it was asked.
 */
#include "silent_told.h"

#include "../../../proto/base/text.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MS_NS = 1000000, TIME_TEXT = 32 };

void ps_silent_told(const struct ps_follow *follow)
{
	const struct ps_panel *looks = &follow->looks;
	char text[TIME_TEXT + PS_MIRRORS_MAX * sizeof(looks->addresses[0].text)];
	size_t used = ps_text_format(text, sizeof(text), "%" PRIu64, ps_follow_now(follow) / MS_NS);
	char before = ':';

	unsetenv(PS_SILENT_VARIABLE);
	for (unsigned i = 0; i < looks->count; i++) {
		if (!ps_follow_silent(follow, looks->addresses[i].text))
			continue;
		used += ps_text_format(text + used, sizeof(text) - used, "%c%s", before,
		                       looks->addresses[i].text);
		before = ',';
	}
	if (before == ',')
		setenv(PS_SILENT_VARIABLE, text, 1);
}
