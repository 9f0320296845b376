/*
 * drain_image.c - moves one image: looks at its store, takes the next step, and looks again, until
 * the image is deleted or nothing more can be done. cmd_drain.c calls it. A step must only depend
 * on the last look, since another run may have been killed after any step.
 */
#include "drain.h"
#include "../ask/drop.h"
#include "../ask/verdict.h"
#include "../change/lagging.h"
#include "../../../proto/control/envelope.h"

#include <poll.h>
#include <string.h>

enum { LOOK_MS = 100, TRIES = 8 }; /* pause between two looks; failed steps that are tried again */

static const struct ps_roster_action replaces = { "replace", PERSEAS__ORDER_KIND__ORDER_REPLACE, 2,
	                                          "OLD NEW" };

/* The work on one image. */
struct step {
	struct ps_drain *drain;
	struct ps_drain_image *image;
	struct ps_peers peers;
	struct ps_images images;
	uint64_t until_ns;
	struct ps_drain_silence silence;
	bool told_live; /* said that the owner calls the mirror live that is gone */
	unsigned tries; /* steps that failed and were tried again */
	enum ps_exit status;
};

static const char *store_name(const struct step *s)
{
	return s->image->status->header->store;
}

/* --- questions about the image --- */

/* Returns the image's header: the present one if a mirror that was asked shows the image, else the
 * one at the beginning. */
static const Perseas__Header *present_header(const struct step *s)
{
	const Perseas__Header *header = s->image->status->header;

	for (unsigned i = 0; i < s->peers.count; i++)
		if (s->images.told[i] &&
		    ps_id_equal(s->images.told[i]->header->image_id, header->image_id.data))
			return s->images.told[i]->header;
	return header;
}

/* Returns the member that replaced the drained mirror earlier and does not answer now, or NULL. */
static const Perseas__Member *find_silent_replacement(const struct step *s)
{
	const Perseas__Roster *roster = s->images.judged.settled;

	for (size_t k = 0; k < roster->n_members; k++) {
		const char *address = roster->members[k]->address;
		const int spot = ps_survey_find(&s->drain->survey, address);

		if (spot < 0 || (unsigned)spot >= s->drain->candidate_count)
			continue;
		for (unsigned i = 0; i < s->peers.count; i++)
			if (!strcmp(s->peers.addresses[i].text, address) &&
			    !ps_peers_answered(&s->peers, i))
				return roster->members[k];
	}
	return NULL;
}

/* Returns true if mirror i has an order for the owner that has no result yet. */
static bool has_order(const struct step *s, unsigned i)
{
	const Perseas__StoreStatus *status = s->images.told[i];

	return ps_images_is_of_store(&s->images, i) && status->live && status->order &&
	       !(status->result && status->result->done);
}

static bool is_roster_changing(const struct step *s)
{
	for (unsigned i = 0; i < s->peers.count; i++)
		if (has_order(s, i))
			return true;
	return s->images.judged.next != NULL;
}

/* --- steps --- */

/* Ends the work on this image. Returns true. */
static bool end_image_work(struct step *s, enum ps_drain_end end, enum ps_exit status)
{
	s->image->end = end;
	s->status = status;
	return true;
}

/* Returns true if the time limit is over or a signal says to stop. */
static bool is_time_over(const struct step *s)
{
	struct ps_env *env = s->peers.env;

	return ps_stop_requested() || env->ops->now(env) >= s->until_ns;
}

/* Waits for a moment. Returns true, after a complaint, if no time is left. */
static bool wait_or_give_up(struct step *s, const char *what)
{
	if (!is_time_over(s)) {
		poll(NULL, 0, LOOK_MS);
		return false;
	}
	ps_complain(PS_EXIT_PARTLY, "store '%s': %s; run perseas drain again", store_name(s), what);
	return end_image_work(s, PS_DRAIN_LEFT, PS_EXIT_PARTLY);
}

/* Opens the store, which completes a change that its owner left unfinished, and closes it once the
 * mirrors that lag are up to date. If that does not help, waits, and says `what` in the end. */
static bool finish_by_open(struct step *s, const char *what)
{
	struct perseas_options options = s->drain->args->options;
	perseas_t *p;
	int rc;

	if (s->tries++ >= TRIES || (s->tries > 1 && is_time_over(s)))
		return wait_or_give_up(s, what);
	rc = perseas_open(store_name(s), s->image->mirrors, &options, &p);
	if (rc && rc != PERSEAS_EBUSY)
		return end_image_work(s, PS_DRAIN_LEFT, ps_library_complain(NULL, rc));
	if (!rc) {
		ps_lagging_await(p);
		perseas_close(p);
	}
	return false;
}

/* Deletes the image, which no longer counts: no roster lists it, and the store is whole without it.
 * Returns true if the work on the image has ended. */
static bool delete_image(struct step *s)
{
	struct ps_peers *mirror = &s->drain->mirror;
	const struct ps_error *error = &mirror->errors[0];

	if (s->drain->args->dry_run)
		return end_image_work(s, PS_DRAIN_PLANNED, PS_EXIT_OK);
	ps_peers_connect(mirror, 0);
	ps_drop_ask_mirror(mirror, store_name(s), 0, s->image->status->header);
	if (mirror->replies[0] || error->code == PERSEAS_ENOSTORE)
		return end_image_work(s, *s->image->to ? PS_DRAIN_MOVED : PS_DRAIN_DELETED,
		                      PS_EXIT_OK);
	/* The owner is about to end its session with this mirror. */
	if (error->code == PERSEAS_EBUSY)
		return wait_or_give_up(
			s, "an owner that is no longer to be there still uses its image");
	/* The connection may be older than the mirror's restart, so the deletion is tried once
	 * more. */
	if (error->code == PERSEAS_EUNREACHABLE && s->tries++ == 0)
		return false;
	return end_image_work(s, PS_DRAIN_LEFT, ps_peers_complain(mirror, 0));
}

/* Notes that the image moves from the member at `from` to the daemon of the spot. */
static void note_move(struct step *s, struct ps_spot *spot, const char *from)
{
	const uint64_t bytes = s->image->status->bytes;

	snprintf(s->image->from, sizeof(s->image->from), "%s", from);
	snprintf(s->image->to, sizeof(s->image->to), "%s", spot->address);
	spot->used += bytes;
	spot->room -= bytes < spot->room ? bytes : spot->room;
	spot->stores++;
}

/* Replaces the member `old` by `new`. The store's owner makes the change, if there is one. */
static enum ps_exit change_roster(struct step *s, const char *old, const char *new)
{
	struct ps_args change = *s->drain->args;

	change.store = store_name(s);
	change.mirrors = s->image->mirrors;
	change.action = &replaces;
	change.is_gone_for_good = s->drain->gone && !strcmp(old, s->drain->gone);
	change.quiet = true;
	change.json = false;
	change.member_count = 2;
	if (ps_address_parse(old, &change.members[0], NULL) ||
	    ps_address_parse(new, &change.members[1], NULL))
		return ps_complain(PS_EXIT_FAILURE, "'%s' or '%s' is no address", old, new);
	if (ps_images_find_owner(&s->images) >= 0)
		return ps_roster_change_by_owner(&s->peers, &s->images, &change, &s->image->copy);
	return ps_roster_change_by_open(&change, &s->image->copy);
}

static bool target_answers(const struct step *s, const char *address)
{
	struct ps_peers peers;
	bool answers;

	if (ps_peers_open(&peers, address, &s->drain->args->options))
		return false;
	ps_peers_ask_all(&peers, ps_peers_list_request());
	answers = ps_peers_answered(&peers, 0);
	ps_peers_close(&peers);
	return answers;
}

static bool replace_member(struct step *s, const Perseas__Member *old)
{
	struct ps_spot *spot = ps_drain_choose_target(s->drain, s->image, &s->images, old);
	const char *place = ps_images_address_of(&s->images, old);
	char address[256], from[256];
	enum ps_exit status;

	if (!spot)
		return end_image_work(s, PS_DRAIN_LEFT, PS_EXIT_NO);
	if (s->drain->args->dry_run) {
		note_move(s, spot, place);
		return end_image_work(s, PS_DRAIN_PLANNED, PS_EXIT_OK);
	}
	snprintf(address, sizeof(address), "%s", spot->address);
	snprintf(from, sizeof(from), "%s", place);
	if (!s->drain->args->json)
		printf("store '%s': from %s to %s\n", store_name(s), from, address);
	fflush(stdout);
	status = change_roster(s, from, address);
	if (!status) {
		note_move(s, spot, from);
		return false;
	}
	if (status == PS_EXIT_PARTLY)
		return wait_or_give_up(s, "its change is not over");
	/* A target that died is not chosen again. Another failure repeats itself, unless an owner
	 * came or went meanwhile, so it gets one more try. */
	s->tries++;
	if (s->tries >= TRIES || (s->tries > 1 && target_answers(s, address)))
		return end_image_work(s, PS_DRAIN_LEFT, status);
	return false;
}

/* Waits for a silent mirror, which may be restarting, and then replaces it. */
static bool replace_silent(struct step *s, const Perseas__Member *silent)
{
	const bool known = !strcmp(s->silence.address, silent->address);
	struct ps_env *env = s->peers.env;

	if (s->drain->args->dry_run ||
	    ps_drain_note_silence(&s->silence, silent->address, env->ops->now(env)))
		return replace_member(s, silent);
	if (!known)
		ps_complain(PS_EXIT_OK,
		            "store '%s': %s, which is in its roster now, does not answer, and is "
		            "replaced unless it does within %d s",
		            store_name(s), silent->address, PS_DRAIN_SILENT_MS / 1000);
	return wait_or_give_up(s,
	                       "a mirror of its new roster does not answer, so the image that left "
	                       "the roster is kept");
}

static bool has_answered(const struct step *s, const char *address)
{
	for (unsigned i = 0; i < s->peers.count; i++)
		if (!strcmp(s->peers.addresses[i].text, address))
			return ps_peers_answered(&s->peers, i);
	return false;
}

/* Returns what the owner says is wrong with the member, or "". */
static const char *trouble_with_member(const struct step *s, const Perseas__Member *member)
{
	const int at = ps_images_find_owner(&s->images);
	const Perseas__MirrorReport *report = at < 0 ? NULL
	                                             : ps_verdict_find_report(&s->images,
	                                                                      s->images.told[at],
	                                                                      member);

	return report ? report->trouble : "";
}

/* Waits until all members are up to date. Without an owner, only an open brings one there. */
static bool await_store_to_be_whole(struct step *s)
{
	const Perseas__Member *behind = ps_verdict_find_member_behind(&s->images);
	const char *trouble;
	char what[PS_ERROR_TEXT];

	if (!behind)
		return wait_or_give_up(s,
		                       "the store cannot be used at the moment, so the image that "
		                       "left the roster is kept");
	trouble = trouble_with_member(s, behind);
	snprintf(what, sizeof(what),
	         "%s of its new roster is not up to date%s%s%s, so the image that left the roster "
	         "is kept",
	         behind->address, *trouble ? " (" : "", trouble, *trouble ? ")" : "");
	if (ps_images_find_owner(&s->images) < 0 && has_answered(s, behind->address))
		return finish_by_open(s, what);
	return wait_or_give_up(s, what);
}

/* Takes the next step for an image that no roster lists: deletes it if the store is whole without
 * it. */
static bool finish_unlisted_image(struct step *s)
{
	const Perseas__Member *silent = find_silent_replacement(s);

	/* --gone concerns the drained mirror only, not other silent ones. */
	if (s->drain->gone && !(silent && !strcmp(silent->address, s->image->to)))
		return end_image_work(s, PS_DRAIN_MOVED, PS_EXIT_OK);
	if (silent)
		return replace_silent(s, silent);
	ps_drain_note_silence(&s->silence, NULL, 0);
	if (ps_verdict_is_store_whole(&s->images))
		return delete_image(s);
	if (s->drain->args->dry_run)
		return end_image_work(
			s, PS_DRAIN_LEFT,
			ps_complain(PS_EXIT_NO,
		                    "store '%s': its image here is in no roster, and is "
		                    "kept, since the store is not whole without it",
		                    store_name(s)));
	return await_store_to_be_whole(s);
}

/* Waits for the owner to notice that the mirror is gone. If it keeps calling the mirror live, the
 * mirror is not gone, and keeps its place. */
static bool await_owner_to_notice_loss(struct step *s)
{
	if (!s->told_live)
		ps_complain(PS_EXIT_OK, "store '%s': its owner calls %s live, and is waited for",
		            store_name(s), s->drain->gone);
	s->told_live = true;
	return wait_or_give_up(s, "its owner calls the mirror live, so it is not gone");
}

/* Returns true if the drained mirror is this member: it is at the member's address, or shows the
 * image that is expected there. */
static bool is_members_mirror(const struct step *s, const Perseas__Member *member)
{
	const struct ps_drain *drain = s->drain;
	const char *address = drain->args->members[0].text;
	const Perseas__StoreStatus *there = ps_images_find_member(&s->images, member);
	struct ps_peers peers;
	struct ps_images images;
	bool same;

	if (drain->gone || !strcmp(member->address, address))
		return true;
	if (!there ||
	    ps_images_open(&images, &peers, store_name(s), address, &drain->args->options))
		return false;
	same = images.told[0] && ps_drain_is_same_image(images.told[0]->header, there->header);
	ps_images_close(&images, &peers);
	return same;
}

/* Leaves an image that has a member's id but is not that member's image. Looks once more before,
 * because an owner may have claimed the image between the two looks. */
static bool leave_foreign_image(struct step *s, const Perseas__Member *member)
{
	if (s->tries++ == 0)
		return false;
	return end_image_work(
		s, PS_DRAIN_LEFT,
		ps_complain(PS_EXIT_NO,
	                    "store '%s' stays: the image here has the id of the member at "
	                    "%s, and is not the image that is there: if that is this "
	                    "mirror by another address, drain it by that one; if not, "
	                    "perseas drop deletes the image here",
	                    store_name(s), member->address));
}

/* Takes one step. Returns true if it was the last one. */
static bool take_drain_step(struct step *s)
{
	const struct ps_drain *drain = s->drain;
	const Perseas__Header *header = present_header(s);
	const char *trouble = ps_drain_explain_obstacle(&s->images, header, drain->gone), *newer;
	const Perseas__Member *member;

	if (trouble)
		return end_image_work(s, PS_DRAIN_LEFT,
		                      ps_complain(PS_EXIT_NO, "store '%s' stays: %s", store_name(s),
		                                  trouble));
	if (is_roster_changing(s)) {
		if (s->drain->args->dry_run)
			return end_image_work(s, PS_DRAIN_PLANNED, PS_EXIT_OK);
		return ps_images_find_owner(&s->images) < 0
		               ? finish_by_open(s, "a change of its roster that was begun is "
		                                   "not completed")
		               : wait_or_give_up(s, "another change of its roster is "
		                                    "not over");
	}
	/* Checked after all changes have settled, because a change reaches some mirrors earlier
	 * than others. */
	newer = ps_drain_find_newer_roster(&drain->fleet, drain->entries, drain->entry_count,
	                                   &s->images);
	if (newer)
		return end_image_work(
			s, PS_DRAIN_LEFT,
			ps_complain(PS_EXIT_NO,
		                    "store '%s' stays: %s knows a newer roster of it than "
		                    "the mirrors that are named here, which may have been "
		                    "left behind; perseas status %s %s shows it",
		                    store_name(s), newer, store_name(s), newer));
	member = ps_drain_find_member(&s->images, header, drain->gone);
	if (!member)
		return finish_unlisted_image(s);
	if (drain->gone && !drain->args->dry_run && ps_verdict_is_member_live(&s->images, member))
		return await_owner_to_notice_loss(s);
	return is_members_mirror(s, member) ? replace_member(s, member)
	                                    : leave_foreign_image(s, member);
}

enum ps_exit ps_drain_image(struct ps_drain *drain, struct ps_drain_image *image)
{
	struct step s = { .drain = drain, .image = image };
	struct ps_env *env = drain->mirror.env;
	bool over = false;

	s.until_ns = env->ops->now(env) + (uint64_t)drain->args->wait_ms * 1000000;
	while (!over) {
		enum ps_exit status = ps_images_open(&s.images, &s.peers, store_name(&s),
		                                     image->mirrors, &drain->args->options);

		if (status) {
			image->end = PS_DRAIN_LEFT;
			return status;
		}
		while (ps_images_fetch_more(&s.images, &s.peers, store_name(&s)))
			;
		over = take_drain_step(&s);
		ps_images_close(&s.images, &s.peers);
	}
	return s.status;
}
