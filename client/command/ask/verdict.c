/*
 * verdict.c - see verdict.h.
 */
#include "verdict.h"
#include "../../../proto/base/json.h"
#include "../../../proto/control/envelope.h"
#include "next_loss.h"
#include "owner_report.h"

#include <string.h>

enum { NO_MIRRORS = 0 };

/* Returns true if the store could be opened without the mirrors in `lost`. */
static bool can_open_without(const struct ps_images *images, uint32_t lost)
{
	struct ps_told told[PS_MIRRORS_MAX];
	struct ps_judgement judged;

	ps_images_fill_told(images, told);
	for (unsigned i = 0; i < images->peers->count; i++)
		if (lost >> i & 1)
			told[i] = (struct ps_told){ .address = told[i].address };
	ps_judge(&judged, told, images->peers->count);
	return judged.outlook == PS_OUTLOOK_OPENS;
}

/* Returns the peer that is this member, as a set. The set is empty if it is none of the peers. */
static uint32_t peer_set_of_member(const struct ps_images *images, const Perseas__Member *member)
{
	const char *address = ps_images_address_of(images, member);

	for (unsigned i = 0; i < images->peers->count; i++)
		if (!strcmp(images->peers->addresses[i].text, address))
			return UINT32_C(1) << i;
	return 0;
}

/* Returns true if the report is about an image that a roster lists. */
static bool names_member(const struct ps_images *images, const Perseas__MirrorReport *report)
{
	return report->image_id.len &&
	       (ps_roster_member(images->judged.settled, report->image_id.data) ||
	        ps_roster_member(images->judged.next, report->image_id.data));
}

/* The member's image may have got another id since the owner reported, so the address counts, too.
 * But a report with another member's image id never counts, whatever its address is. */
const Perseas__MirrorReport *ps_verdict_find_report(const struct ps_images *images,
                                                    const Perseas__StoreStatus *owner,
                                                    const Perseas__Member *member)
{
	for (size_t k = 0; k < owner->n_mirrors; k++) {
		const Perseas__MirrorReport *report = owner->mirrors[k];

		if (report->image_id.len && ps_id_equal(member->image_id, report->image_id.data))
			return report;
	}
	for (size_t k = 0; k < owner->n_mirrors; k++) {
		const Perseas__MirrorReport *report = owner->mirrors[k];

		if (!names_member(images, report) && !strcmp(report->address, member->address))
			return report;
	}
	return NULL;
}

static bool is_member_live(const struct ps_images *images, const Perseas__StoreStatus *owner,
                           const Perseas__Member *member)
{
	const Perseas__MirrorReport *report = ps_verdict_find_report(images, owner, member);

	return report && !strcmp(report->state, "live");
}

bool ps_verdict_is_member_live(const struct ps_images *images, const Perseas__Member *member)
{
	const int at = ps_images_find_owner(images);

	return at >= 0 && is_member_live(images, images->told[at], member);
}

/* Returns the mirrors that did not answer the command, because a daemon is stopped or a network is
 * cut. An owner counts such a mirror as live until its own time limit is over. */
static uint32_t mirror_set_silent(const struct ps_images *images)
{
	uint32_t silent = 0;

	for (unsigned i = 0; i < images->peers->count; i++)
		if (!images->told[i] && images->errors[i].code == PERSEAS_EUNREACHABLE)
			silent |= UINT32_C(1) << i;
	return silent;
}

/* Returns whether W members of the roster are live for the owner, without the mirrors in `lost`. */
static enum ps_can can_reach_acks(const struct ps_images *images, const Perseas__Roster *roster,
                                  const Perseas__StoreStatus *owner, uint32_t lost)
{
	const uint32_t silent = mirror_set_silent(images);
	unsigned live = 0, heard = 0;

	for (size_t k = 0; roster && k < roster->n_members; k++) {
		const Perseas__Member *member = roster->members[k];

		if (peer_set_of_member(images, member) & lost ||
		    !is_member_live(images, owner, member))
			continue;
		live++;
		heard += !(peer_set_of_member(images, member) & silent);
	}
	if (!roster || heard >= roster->acks)
		return PS_CAN;
	return live >= roster->acks ? PS_CAN_UNKNOWN : PS_CAN_NOT;
}

static enum ps_can worse_can(enum ps_can one, enum ps_can other)
{
	return one < other ? one : other;
}

/* Returns whether the store's owner could commit without the mirrors in `lost`. Without an owner,
 * or before its first report, an open decides, and it succeeds only with W. */
static enum ps_can can_commit_without(const struct ps_images *images, uint32_t lost)
{
	const int at = ps_images_find_owner(images);
	const Perseas__StoreStatus *owner = at < 0 ? NULL : images->told[at];

	if (!owner || !owner->n_mirrors)
		return can_open_without(images, lost) ? PS_CAN : PS_CAN_NOT;
	if (owner->figures && owner->figures->doubt_ms)
		return PS_CAN_NOT;
	return worse_can(can_reach_acks(images, images->judged.settled, owner, lost),
	                 can_reach_acks(images, images->judged.next, owner, lost));
}

static uint32_t mirror_set_live_for_owner(const struct ps_images *images,
                                          const Perseas__StoreStatus *owner,
                                          const Perseas__Roster *roster)
{
	uint32_t live = 0;

	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (is_member_live(images, owner, roster->members[k]))
			live |= peer_set_of_member(images, roster->members[k]);
	return live;
}

/* Returns the mirrors that the owner calls live and that did not answer the command. */
static uint32_t mirror_set_live_but_silent(const struct ps_images *images)
{
	const int at = ps_images_find_owner(images);
	const Perseas__StoreStatus *owner = at < 0 ? NULL : images->told[at];

	if (!owner)
		return 0;
	return mirror_set_silent(images) &
	       (mirror_set_live_for_owner(images, owner, images->judged.settled) |
	        mirror_set_live_for_owner(images, owner, images->judged.next));
}

/* Returns the mirrors whose image has no files any more, so that it is lost when their daemon ends.
 */
static uint32_t mirror_set_only_in_memory(const struct ps_images *images)
{
	uint32_t only_in_memory = 0;

	for (unsigned i = 0; i < images->peers->count; i++)
		if (images->told[i] && images->told[i]->files_missing[0])
			only_in_memory |= UINT32_C(1) << i;
	return only_in_memory;
}

/* Returns the mirrors whose image a restart of their daemon would lose, or which the owner calls
 * lost already. */
static uint32_t mirror_set_counted_lost(const struct ps_images *images)
{
	return mirror_set_only_in_memory(images) | ps_owner_lost_mirror_set(images);
}

static bool can_commit_after_loss(const void *images, uint32_t lost)
{
	return can_commit_without(images, lost) == PS_CAN;
}

static bool can_open_after_loss(const void *images, uint32_t lost)
{
	return can_open_without(images, lost);
}

/* Returns the mirrors of a loss that do not have to be lost together: the loss of one alone hurts.
 */
static uint32_t mirror_set_lost_alone(const struct ps_loss *loss)
{
	return loss->domain == PS_DOMAINS ? loss->spots : 0;
}

static void find_losses(struct ps_verdict *verdict, const struct ps_images *images)
{
	const unsigned count = images->peers->count;
	const uint32_t counted_lost = mirror_set_counted_lost(images);
	struct ps_spot spots[PS_MIRRORS_MAX];

	ps_images_fill_spots(images, spots);
	if (verdict->commit == PS_CAN) {
		verdict->commit_loss = ps_smallest_fatal_loss(spots, count, counted_lost,
		                                              can_commit_after_loss, images);
		verdict->single_losses |= mirror_set_lost_alone(&verdict->commit_loss);
	}
	if (verdict->open) {
		verdict->open_loss = ps_smallest_fatal_loss(spots, count, counted_lost,
		                                            can_open_after_loss, images);
		verdict->single_losses |= mirror_set_lost_alone(&verdict->open_loss);
	}
}

void ps_verdict_fill(struct ps_verdict *verdict, const struct ps_images *images)
{
	*verdict = (struct ps_verdict){
		.commit = can_commit_without(images, NO_MIRRORS),
		.live_but_silent = mirror_set_live_but_silent(images),
		.open = can_open_without(images, NO_MIRRORS),
		.only_in_memory = mirror_set_only_in_memory(images),
	};
	find_losses(verdict, images);
}

/* --- how many losses can be borne --- */

static bool is_usable_without(const struct ps_images *images, uint32_t lost)
{
	return can_commit_without(images, lost) == PS_CAN && can_open_without(images, lost);
}

/* Returns true if the store cannot be used after the loss of `lost` and of some `more` other
 * mirrors with an index of `from` or more. */
static bool is_unusable_after(const struct ps_images *images, uint32_t lost, unsigned from,
                              unsigned more)
{
	if (!more)
		return !is_usable_without(images, lost);
	for (unsigned i = from; i < images->peers->count; i++)
		if (ps_images_is_listed(images, i) &&
		    is_unusable_after(images, lost | UINT32_C(1) << i, i + 1, more - 1))
			return true;
	return false;
}

unsigned ps_verdict_count_bearable_losses(const struct ps_images *images)
{
	const unsigned most = ps_verdict_count_promised_losses(images);
	const uint32_t counted_lost = mirror_set_counted_lost(images);
	unsigned bears = 0;

	if (!is_usable_without(images, counted_lost))
		return 0;
	while (bears < most && !is_unusable_after(images, counted_lost, 0, bears + 1))
		bears++;
	return bears;
}

static unsigned roster_losses_promised(const Perseas__Roster *roster)
{
	const struct ps_quorum quorum = { .members = (unsigned)roster->n_members,
		                          .acks = roster->acks };

	return quorum.members - ps_quorum_r_and_w(&quorum);
}

unsigned ps_verdict_count_promised_losses(const struct ps_images *images)
{
	const struct ps_judgement *judged = &images->judged;
	unsigned promise = judged->settled ? roster_losses_promised(judged->settled) : 0;

	if (judged->next && roster_losses_promised(judged->next) < promise)
		promise = roster_losses_promised(judged->next);
	return promise;
}

/* Returns true if the member's image is whole and the owner calls it live, or the last owner did
 * not leave it behind. */
static bool is_up_to_date(const struct ps_images *images, const Perseas__Member *member)
{
	const int at = ps_images_find_owner(images);
	const Perseas__StoreStatus *image = ps_images_find_member(images, member);

	if (!image || image->header->state != PERSEAS__STATE__STATE_CONSISTENT)
		return false;
	if (image->files_missing[0])
		return false;
	return at < 0 ? !ps_images_is_left_behind(images, image)
	              : is_member_live(images, images->told[at], member);
}

const Perseas__Member *ps_verdict_find_member_behind(const struct ps_images *images)
{
	const Perseas__Roster *roster = images->judged.settled;

	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (!is_up_to_date(images, roster->members[k]))
			return roster->members[k];
	return NULL;
}

bool ps_verdict_is_store_whole(const struct ps_images *images)
{
	return images->judged.settled && !images->judged.next &&
	       is_usable_without(images, NO_MIRRORS) && !ps_verdict_find_member_behind(images);
}

static const char unfilled[] =
	" (restore unfinished: run it again, or delete the store with perseas drop)";

static const char too_few_hold[] = " (too few mirrors can come to hold the newest state)";

static const char *explain_unfilled(const struct ps_images *images)
{
	return ps_images_find_owner(images) < 0
	               ? unfilled
	               : " (restore unfinished: a command is filling the store, wait for it)";
}

static const char *explain_unknown_state(const struct ps_images *images)
{
	if (ps_images_is_unfinished(images))
		return unfilled;
	return ps_images_is_removal_remainder(images)
	               ? " (restore unfinished, unless mirrors that did not answer have more)"
	               : " (too few images are seen to know the newest state)";
}

const char *ps_verdict_explain_not_openable(const struct ps_images *images)
{
	switch (images->judged.outlook) {
	case PS_OUTLOOK_NOTHING:
		return " (no image was seen)";
	case PS_OUTLOOK_UNFINISHED:
		return " (its making was not finished: create it again)";
	case PS_OUTLOOK_UNFILLED:
		return explain_unfilled(images);
	case PS_OUTLOOK_AMBIGUOUS:
		return " (two stores bear this name: ask the mirrors of one of them)";
	case PS_OUTLOOK_FORKED:
		return " (the mirrors hold a fork of it, too: ask those of one of the two)";
	case PS_OUTLOOK_BELOW_R:
		return explain_unknown_state(images);
	case PS_OUTLOOK_BELOW_T:
		if (images->judged.next)
			return " (too few images are seen to know of changes of the roster)";
		/* T is at most W if it is more than R, so W cannot hold the state either. An open
		 * says the same. */
		return too_few_hold;
	case PS_OUTLOOK_BELOW_W:
		return too_few_hold;
	case PS_OUTLOOK_OPENS:
		break;
	}
	return "";
}

/* Prints how much the owner still has to read. Every live mirror has those bytes, so the loss that
 * hurts is the same; but until they are read, mirrors are needed and lost images are not made anew.
 */
static void print_missing(const struct ps_images *images)
{
	const int at = ps_images_find_owner(images);
	const uint64_t missing = at < 0 ? 0 : ps_owner_missing_bytes(images->told[at]);
	char size[PS_SIZE_TEXT];

	if (missing)
		printf("; its owner still reads %s from mirrors", ps_size_text(size, missing));
}

/* Prints the addresses of these mirrors as a list that begins with `begin`. */
static void print_mirrors(const struct ps_images *images, uint32_t mirrors, const char *begin)
{
	for (unsigned i = 0; i < images->peers->count; i++) {
		if (!(mirrors >> i & 1))
			continue;
		printf("%s%s", begin, images->peers->addresses[i].text);
		begin = ", ";
	}
}

static const char *can_text(enum ps_can can)
{
	if (can == PS_CAN_UNKNOWN)
		return "not known";
	return can == PS_CAN ? "yes" : "no";
}

/* Prints the silent mirrors, and how old the owner's report is that calls them live. */
static void print_live_but_silent(const struct ps_verdict *verdict, const struct ps_images *images)
{
	const Perseas__StoreStatus *owner = images->told[ps_images_find_owner(images)];

	print_mirrors(images, verdict->live_but_silent, " (no answer from ");
	printf("; the owner called %s live %.1f s ago)",
	       verdict->live_but_silent & (verdict->live_but_silent - 1) ? "them" : "it",
	       (double)owner->silent_ms / 1000);
}

static bool is_same_loss(const struct ps_loss *one, const struct ps_loss *other)
{
	return one->is_certain == other->is_certain && one->domain == other->domain &&
	       one->spots == other->spots;
}

static void print_loss(FILE *out, const char *before, const char *what, const struct ps_loss *loss,
                       const struct ps_images *images)
{
	fprintf(out, "%snext loss that %s: ", before, what);
	ps_loss_print(out, loss, images);
}

void ps_verdict_print_losses(FILE *out, const struct ps_verdict *verdict,
                             const struct ps_images *images)
{
	const bool commit = verdict->commit == PS_CAN, open = verdict->open;
	const bool differ = commit && open &&
	                    !is_same_loss(&verdict->commit_loss, &verdict->open_loss);

	if (commit)
		print_loss(out, "", differ ? "stops commits" : "hurts", &verdict->commit_loss,
		           images);
	if (open && (differ || !commit))
		print_loss(out, differ ? "; " : "", differ ? "stops an open" : "hurts",
		           &verdict->open_loss, images);
}

static bool is_domain_loss(const struct ps_loss *loss)
{
	return !loss->is_certain || (loss->spots && loss->domain != PS_DOMAINS);
}

bool ps_verdict_loses_whole_domain(const struct ps_verdict *verdict)
{
	return (verdict->commit == PS_CAN && is_domain_loss(&verdict->commit_loss)) ||
	       (verdict->open && is_domain_loss(&verdict->open_loss));
}

void ps_verdict_print(const struct ps_verdict *verdict, const struct ps_images *images)
{
	printf("can commit: %s", can_text(verdict->commit));
	if (verdict->commit == PS_CAN_UNKNOWN)
		print_live_but_silent(verdict, images);
	printf("; can open: %s%s", verdict->open ? "yes" : "no",
	       ps_verdict_explain_not_openable(images));
	if (verdict->commit == PS_CAN || verdict->open) {
		printf("; ");
		ps_verdict_print_losses(stdout, verdict, images);
	}
	print_mirrors(images, verdict->only_in_memory, "; would not survive a restart: ");
	print_missing(images);
	printf("\n");
}

void ps_can_json(struct ps_json *json, const char *key, enum ps_can can)
{
	if (can == PS_CAN_UNKNOWN)
		ps_json_text(json, key, NULL);
	else
		ps_json_bool(json, key, can == PS_CAN);
}

void ps_verdict_json(struct ps_json *json, const struct ps_verdict *verdict,
                     const struct ps_images *images)
{
	struct ps_spot spots[PS_MIRRORS_MAX];
	const unsigned count = images->peers->count;

	ps_images_fill_spots(images, spots);
	ps_json_begin(json, "verdict", '{');
	ps_can_json(json, "can_commit", verdict->commit);
	ps_json_bool(json, "can_open", verdict->open);
	ps_json_begin(json, "hurts", '[');
	for (unsigned i = 0; i < images->peers->count; i++)
		if (verdict->single_losses >> i & 1)
			ps_json_text(json, NULL, images->peers->addresses[i].text);
	ps_json_end(json, ']');
	ps_json_begin(json, "unheard", '[');
	for (unsigned i = 0; i < images->peers->count; i++)
		if (verdict->live_but_silent >> i & 1)
			ps_json_text(json, NULL, images->peers->addresses[i].text);
	ps_json_end(json, ']');
	ps_json_begin(json, "next_loss", '{');
	ps_loss_json(json, "commit", verdict->commit == PS_CAN ? &verdict->commit_loss : NULL,
	             spots, count);
	ps_loss_json(json, "open", verdict->open ? &verdict->open_loss : NULL, spots, count);
	ps_json_end(json, '}');
	ps_json_end(json, '}');
}
