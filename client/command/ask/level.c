/*
 * level.c - see level.h.
 */
#include "level.h"

#include "../../../proto/base/json.h"

/* Faults that a store of level 0 still has, and that level 1 ended. */
static const char *const risks[] = {
	"a client that may create stores on any daemon can make images that pass for this store's",
	"a restore that ends in between leaves a store that opens, without its contents",
	("the first open after an owner of an earlier version, and the first open of that "
	 "version's spill, can take bytes that users stored for an unfinished transaction"),
	("stored values that carry their own CRC-32C can complete an interrupted undo record of "
	 "the same lengths, which is then rolled back"),
};

enum { RISKS = sizeof(risks) / sizeof(risks[0]) };

void ps_store_level_print(const struct ps_images *images)
{
	const Perseas__Roster *settled = images->judged.settled;

	if (!settled || settled->level > 0)
		return;
	printf("\nthe store has level 0, so that it is not protected from this:\n");
	for (unsigned i = 0; i < RISKS; i++)
		printf("  %s\n", risks[i]);
	printf("perseas roster raise gives it level 1, once all of its programs and mirrors know "
	       "that level\n");
}

void ps_store_level_json(struct ps_json *json, const struct ps_images *images)
{
	const Perseas__Roster *settled = images->judged.settled;

	if (!settled)
		return;
	ps_json_number(json, "level", settled->level);
	ps_json_begin(json, "level_risks", '[');
	for (unsigned i = 0; i < RISKS && settled->level == 0; i++)
		ps_json_text(json, NULL, risks[i]);
	ps_json_end(json, ']');
}
