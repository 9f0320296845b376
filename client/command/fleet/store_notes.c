/*
 * store_notes.c - see store_notes.h.
 */
#include "store_notes.h"

#include "../ask/next_loss.h"
#include "fleet.h"

#include <stdlib.h>

/* Returns the note on an unfinished restore, or "". All mirrors' answers count, because a single
 * image without transactions may only be behind. */
static const char *explain_unfinished(const struct ps_images *images,
                                      const Perseas__StoreStatus *status)
{
	if (!status->header->roster->filling || (status->slot && status->slot->seq))
		return "";
	if (images->judged.outlook == PS_OUTLOOK_UNFILLED)
		return "restore unfinished";
	return images->judged.outlook == PS_OUTLOOK_BELOW_R
	               ? "restore unfinished, unless other mirrors have more"
	               : "";
}

/* Names the host that mirror i shares with other mirrors of the store, if it shares one. */
static void print_shared_host(FILE *out, const struct ps_images *images, unsigned i)
{
	const unsigned count = images->peers->count;
	struct ps_spot spots[PS_MIRRORS_MAX];

	ps_images_fill_spots(images, spots);
	for (;;) {
		const struct ps_loss loss = ps_smallest_shared_host(spots, count);

		if (loss.spots >> i & 1) {
			ps_loss_print(out, &loss, images);
			fputs(" would be lost together", out);
		}
		if (!loss.spots || loss.spots >> i & 1)
			return;
		for (unsigned k = 0; k < count; k++)
			spots[k].closed = spots[k].closed || loss.spots >> k & 1;
	}
}

/* Returns the note on the image that peer i shows. */
static char *choose_note(const struct ps_images *images, unsigned i,
                         const Perseas__StoreStatus *status)
{
	size_t size;
	char *text;
	FILE *out = ps_exit_if_null(open_memstream(&text, &size));

	fputs(explain_unfinished(images, status), out);
	if (status->header->state == PERSEAS__STATE__STATE_CREATING)
		fputs("its making was not finished", out);
	fflush(out);
	if (!size)
		print_shared_host(out, images, i);
	fclose(out);
	return ps_exit_if_null(text);
}

/* Judges the store of these images, and writes the note on each image. */
static void note_store(struct ps_store_notes *notes, const struct ps_peers *peers,
                       const struct ps_fleet_image *entries, unsigned count)
{
	struct ps_images images = { .peers = peers };

	for (unsigned k = count; k-- > 0;)
		images.told[entries[k].daemon] = entries[k].status;
	ps_images_judge(&images);
	notes->judged++;
	for (unsigned k = 0; k < count; k++) {
		const unsigned mirror = entries[k].daemon, index = entries[k].index;

		notes->of[mirror][index] = choose_note(&images, mirror, entries[k].status);
	}
}

static unsigned count_stores(const struct ps_peers *peers, unsigned i)
{
	return peers->replies[i] ? (unsigned)peers->replies[i]->list->n_stores : 0;
}

void ps_store_notes_take(struct ps_store_notes *notes, const struct ps_peers *peers)
{
	struct ps_fleet_image *entries;
	unsigned count = 0, at = 0, run;

	*notes = (struct ps_store_notes){ 0 };
	for (unsigned i = 0; i < peers->count; i++)
		count += count_stores(peers, i);
	entries = ps_exit_if_null(calloc(count + 1, sizeof(*entries)));
	for (unsigned i = 0; i < peers->count; i++) {
		notes->of[i] = ps_exit_if_null(calloc(count_stores(peers, i) + 1, sizeof(char *)));
		for (unsigned k = 0; k < count_stores(peers, i); k++)
			entries[at++] = (struct ps_fleet_image){ i,
				                                 peers->replies[i]->list->stores[k],
				                                 k };
	}
	ps_fleet_sort_images(entries, count);
	for (at = 0; at < count; at += run) {
		run = ps_fleet_count_images_of_first_store(entries + at, count - at);
		note_store(notes, peers, entries + at, run);
	}
	free(entries);
}

void ps_store_notes_free(struct ps_store_notes *notes, const struct ps_peers *peers)
{
	for (unsigned i = 0; i < peers->count; i++) {
		for (unsigned k = 0; k < count_stores(peers, i); k++)
			free(notes->of[i][k]);
		free(notes->of[i]);
	}
}
