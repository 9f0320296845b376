/*
 * set_aside.c - see set_aside.h.
 */
#include "set_aside.h"

#include <stdlib.h>
#include <string.h>

/* Returns the number of a folder that is named .STORE.aside-NUMBER, or 0 for any other name. */
static unsigned long aside_folder_number(const char *folder, const char *store)
{
	static const char mark[] = ".aside-";
	const size_t length = strlen(store);
	const char *at = folder + 1 + length;
	unsigned long number;
	char *end;

	if (*folder != '.' || strncmp(folder + 1, store, length) != 0 ||
	    strncmp(at, mark, strlen(mark)) != 0)
		return 0;
	number = strtoul(at + strlen(mark), &end, 10);
	return *end ? 0 : number;
}

static const char *newest_aside_folder(const Perseas__ListReply *list, const char *store)
{
	const char *newest = NULL;
	unsigned long highest = 0;

	for (size_t k = 0; k < list->n_set_aside; k++) {
		const unsigned long number = aside_folder_number(list->set_aside[k]->folder, store);

		if (number <= highest)
			continue;
		highest = number;
		newest = list->set_aside[k]->folder;
	}
	return newest;
}

void ps_set_aside_ask(struct ps_set_aside *aside, const struct ps_images *images,
                      struct ps_peers *peers, const char *store)
{
	*aside = (struct ps_set_aside){ 0 };
	for (unsigned i = 0; i < peers->count; i++) {
		if (!images->told[i] && images->errors[i].code != PERSEAS_ENOSTORE)
			continue;
		if (ps_peers_send(peers, i, ps_peers_list_request()))
			aside->lists[i] = ps_peers_receive(peers, i);
		if (aside->lists[i])
			aside->folders[i] = newest_aside_folder(aside->lists[i]->list, store);
	}
}

void ps_set_aside_free(struct ps_set_aside *aside)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		if (aside->lists[i])
			perseas__reply__free_unpacked(aside->lists[i], NULL);
}

void ps_set_aside_complain(const struct ps_set_aside *aside, const struct ps_images *images,
                           const char *store)
{
	for (unsigned i = 0; i < images->peers->count; i++) {
		if (!aside->folders[i])
			continue;
		ps_complain(
			PS_EXIT_OK,
			"%s has set %s image of store '%s' aside, since it may be old: it is "
			"the folder %s of the daemon's --memory-dir, and counts for nothing. %s",
			images->peers->addresses[i].text, images->told[i] ? "an earlier" : "its",
			store, aside->folders[i],
			images->told[i]
				? "Remove the folder once W mirrors are live"
				: "While W other mirrors are live, an owner makes the image "
				  "anew; remove the folder then. If nothing else is left of "
				  "the store, read \"A mirror's memory was put back\" in "
				  "operating.md");
	}
}
