/*
 * drain_named.c - finds stores whose rosters name the drained mirror although the mirror lists no
 * image of them, because it lost the image or has a damaged one. The lists of other daemons show
 * these stores. cmd_drain.c calls it. It must never change anything on a mirror.
 */
#include "drain.h"
#include "../fleet/fleet.h"
#include "../../../proto/control/envelope.h"

#include <stdlib.h>
#include <string.h>

/* Returns true if the drain has dealt with this store already. */
static bool is_among_images(const struct ps_drain *drain, const Perseas__Header *header)
{
	for (unsigned i = 0; i < drain->count; i++)
		if (ps_id_equal(drain->images[i].status->header->store_id, header->store_id.data))
			return true;
	return false;
}

/* Returns true if the mirror is a member whose image nobody shows. An image that arrived meanwhile
 * is shown, since ps_fleet_ask_daemons asks members that were not seen. */
static bool is_unseen_member(const struct ps_fleet *fleet, const struct ps_fleet_image *entries,
                             unsigned count, const char *mirror)
{
	struct ps_peers peers;
	struct ps_images images;

	ps_fleet_fill_images(fleet, entries, count, false, &peers, &images);
	return ps_fleet_is_image_unseen(&images, mirror);
}

enum ps_exit ps_drain_check_unlisted_members(const struct ps_drain *drain, unsigned *named)
{
	const char *mirror = drain->args->members[0].text;
	struct ps_fleet_image *entries;
	struct ps_fleet fleet;
	unsigned count, run;
	enum ps_exit status = ps_fleet_ask_daemons(&fleet, drain->args->mirrors,
	                                           &drain->args->options);

	*named = 0;
	if (status)
		return status;
	entries = ps_fleet_list_images(&fleet, &count);
	for (unsigned i = 0; i < count; i += run) {
		const Perseas__Header *header = entries[i].status->header;

		run = ps_fleet_count_images_of_first_store(entries + i, count - i);
		if (is_among_images(drain, header) ||
		    !is_unseen_member(&fleet, entries + i, run, mirror))
			continue;
		(*named)++;
		status = ps_complain(PS_EXIT_NO, "store '%s': its roster names %s, which %s",
		                     header->store, mirror,
		                     drain->gone ? "is gone: run perseas drain --gone again"
		                                 : "has lost its image or has a damaged one: give "
		                                   "its place to another daemon by perseas roster "
		                                   "replace");
	}
	free(entries);
	ps_fleet_free(&fleet);
	return status;
}
