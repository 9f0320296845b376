/*
 * drain_judge.c - judges an image, and daemons that may take its place, by what mirrors reported;
 * see drain.h. drain_image.c and drain_target.c call it. It must never ask a mirror.
 */
#include "drain.h"
#include "../../../proto/control/envelope.h"

#include <string.h>

const Perseas__Member *ps_drain_find_member(const struct ps_images *images,
                                            const Perseas__Header *header, const char *gone)
{
	const Perseas__Roster *roster = images->judged.settled;
	const Perseas__Member *member;

	if (gone)
		return ps_images_member_at(images, gone);
	member = ps_roster_member(roster, header->image_id.data);
	if (!member && header->parent_id.len == PS_ID_SIZE)
		member = ps_roster_member(roster, header->parent_id.data);
	return member;
}

static bool is_equal(ProtobufCBinaryData a, ProtobufCBinaryData b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool ps_drain_is_same_image(const Perseas__Header *here, const Perseas__Header *there)
{
	return is_equal(here->store_id, there->store_id) &&
	       is_equal(here->image_id, there->image_id) &&
	       is_equal(here->parent_id, there->parent_id) && is_equal(here->boot, there->boot) &&
	       here->promised_epoch == there->promised_epoch &&
	       is_equal(here->promised_owner, there->promised_owner) &&
	       here->rewrites == there->rewrites && here->generation == there->generation &&
	       !strcmp(here->creator, there->creator);
}

/* Returns true if the store can be opened or, with --gone, has an owner: an owner can change the
 * roster even if nobody could open the store. */
static bool is_openable_or_owned(const struct ps_images *images, const char *gone)
{
	const struct ps_judgement *judged = &images->judged;

	return judged->settled &&
	       (judged->outlook == PS_OUTLOOK_OPENS || (gone && ps_images_find_owner(images) >= 0));
}

/* Returns why a store that nobody can open keeps its image on the drained mirror. */
static const char *explain_not_openable(const struct ps_judgement *judged)
{
	if (judged->outlook == PS_OUTLOOK_UNFILLED)
		return "its restore was not finished: run that again, or delete the store with "
		       "perseas drop";
	return "too few of its mirrors are seen to open it; perseas status says more";
}

const char *ps_drain_explain_obstacle(const struct ps_images *images, const Perseas__Header *header,
                                      const char *gone)
{
	const struct ps_judgement *judged = &images->judged;

	if (header->state == PERSEAS__STATE__STATE_CREATING)
		return "its making was not finished: perseas create completes it, perseas drop "
		       "deletes it";
	if (!images->header)
		return "no mirror that its roster names tells of it";
	if (!ps_image_is_of_store(header, images->header->store_id.data, judged->naming_roster))
		return "the mirrors that its roster names have another store of that name: this "
		       "image is of no use, and perseas drop deletes it";
	if (!gone && ps_image_is_forked(header, judged->settled, judged->next))
		return "the image here is of a fork of the store: what it has may be newer. "
		       "perseas status shows both, and perseas drop deletes the one that is of no "
		       "more use";
	if (!is_openable_or_owned(images, gone))
		return explain_not_openable(judged);
	if (gone && ps_images_are_addresses_unclear(images))
		return PS_UNCLEAR_ADDRESSES;
	return NULL;
}

bool ps_drain_note_silence(struct ps_drain_silence *silence, const char *address, uint64_t now_ns)
{
	if (!address || strcmp(silence->address, address) != 0) {
		snprintf(silence->address, sizeof(silence->address), "%s", address ? address : "");
		silence->since_ns = now_ns;
		return false;
	}
	return now_ns - silence->since_ns >= (uint64_t)PS_DRAIN_SILENT_MS * 1000000;
}

/* Returns true if `theirs` is another view of the same image, or the image of a member of the
 * roster. */
static bool is_same_or_member(const Perseas__Header *theirs, const Perseas__Header *mine,
                              const Perseas__Roster *roster)
{
	return ps_id_equal(theirs->image_id, mine->image_id.data) ||
	       ps_roster_member(roster, theirs->image_id.data);
}

enum ps_drain_refusal ps_drain_check_daemon(const Perseas__Header *theirs,
                                            const Perseas__Header *mine,
                                            const struct ps_images *images)
{
	const struct ps_judgement *judged = &images->judged;

	if (!theirs)
		return PS_DRAIN_ACCEPTS;
	if (!ps_image_is_of_store(theirs, mine->store_id.data, judged->naming_roster))
		return PS_DRAIN_HAS_OTHER_STORE;
	if (is_same_or_member(theirs, mine, judged->settled))
		return PS_DRAIN_HAS_THIS_IMAGE;
	if (ps_roster_newer(ps_roster_newest(theirs), images->roster))
		return PS_DRAIN_HAS_NEWER_ROSTER;
	return ps_image_is_forked(theirs, judged->settled, judged->next) ? PS_DRAIN_HAS_FORK
	                                                                 : PS_DRAIN_ACCEPTS;
}

const char *ps_drain_find_newer_roster(const struct ps_fleet *fleet,
                                       const struct ps_fleet_image *entries, unsigned count,
                                       const struct ps_images *images)
{
	const Perseas__Header *header = images->header;

	for (unsigned i = 0; i < count; i++) {
		const Perseas__Header *theirs = entries[i].status->header;

		if (!strcmp(theirs->store, header->store) &&
		    ps_id_equal(theirs->store_id, header->store_id.data) &&
		    theirs->state != PERSEAS__STATE__STATE_CREATING &&
		    ps_roster_newer(theirs->roster, images->roster))
			return ps_fleet_address(&fleet->daemons[entries[i].daemon]);
	}
	return NULL;
}
