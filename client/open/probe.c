/*
 * probe.c - asks the mirrors for their images, and decides which store, rosters and epoch an open
 * uses. It must never claim a mirror, so that an open that is refused fences no owner.
 */
#include "probe.h"

#include "../keeper/attempt.h"
#include "../keeper/epoch.h"
#include "examine.h"
#include "making.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "../keeper/rpc.h"
#include "../keeper/session.h"
#include "../../proto/base/text.h"

#include <stdio.h>
#include <string.h>

static void forget_answer(struct perseas *p, struct ps_mirror *m)
{
	if (!m->was_left_connected)
		ps_mirror_disconnect(p, m);
	m->was_left_connected = false;
	ps_probe_result_clear(m);
	m->is_image_in_roster = m->has_vote = false;
}

/* Asks all mirrors with an index of `first` or more for their status, and notes the answers in
 * `probe`. */
static void ask_mirrors_from_index(struct perseas *p, unsigned first)
{
	struct ps_round round;
	uint32_t set = 0;

	for (unsigned i = first; i < p->mirror_count; i++) {
		forget_answer(p, &p->mirrors[i]);
		/* The process that started this one has just waited for the silent mirrors in
		 * vain. */
		set |= (uint32_t)!p->mirrors[i].was_silent << i;
	}
	ps_round_ask_status(p, set, true, &round, ps_answer_deadline(p));
	for (unsigned i = first; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		ps_probe_result_set(m, round.replies[i], &round.errors[i]);
		if (m->was_silent)
			m->probe.code = ps_error_set(&m->probe.error, PERSEAS_EUNREACHABLE,
			                             "%s did not answer the standby, and was "
			                             "not asked again",
			                             m->address.text);
		m->probe.was_skipped = m->was_silent;
		m->was_silent = false;
	}
	ps_round_free(&round);
}

void ps_probe_mirrors(struct perseas *p)
{
	ask_mirrors_from_index(p, 0);
}

static int fail_ambiguous_store(struct perseas *p, const struct ps_judgement *j)
{
	char id[PS_HEX_TEXT], rival[PS_HEX_TEXT];

	return ps_fail(
		p, PERSEAS_EROSTER,
		"the mirrors hold two stores named '%s', with the ids %s and %s%s, and it is "
		"not clear which one to open: give only the mirrors of one store (perseas "
		"status, asked of one mirror at a time, shows which mirror has which store)",
		p->store, ps_hex_text(id, j->store_id), ps_hex_text(rival, j->rival_id),
		ps_judge_rival_note(j));
}

static bool is_store_id_set(const uint8_t *store_id)
{
	static const uint8_t none[PS_ID_SIZE];

	return memcmp(store_id, none, PS_ID_SIZE) != 0;
}

/* Writes the errors of all mirrors into text, separated by semicolons. Returns text. */
static const char *format_errors(const struct perseas *p, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (unsigned i = 0; i < p->mirror_count && used < size; i++)
		if (p->mirrors[i].probe.code)
			used += ps_text_format(text + used, (size - used) / (p->mirror_count - i),
			                       "%s%s", used ? "; " : "",
			                       p->mirrors[i].probe.error.text);
	return text;
}

/* Fails if the mirrors only show images with the store's id but without the key that an earlier
 * attempt has seen. Judged alone, such images would pass for a store of level 0. */
static int check_key_still_shown(struct perseas *p)
{
	const struct ps_mirror *without = NULL;
	char text[PS_ERROR_TEXT / 2];

	if (!p->roster || p->roster->level == 0)
		return 0;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->probe.code || !ps_id_equal(m->probe.header->store_id, p->store_id))
			continue;
		if (ps_image_is_of_store(m->probe.header, p->store_id, p->roster))
			return 0;
		without = m;
	}
	if (!without)
		return 0;
	return ps_fail(p, PERSEAS_EUNREACHABLE,
	               "the mirrors of store '%s' answered before and no longer do, and %s has an "
	               "image without the key of this store: start the mirrors (%s)",
	               p->store, without->address.text, format_errors(p, text, sizeof(text)));
}

/* Chooses the store to open among those with this name, for example after it was created again on
 * other mirrors. Sets p->store_id. Returns 0, PERSEAS_ENOSTORE without a message, or another error
 * code. */
static int choose_store(struct perseas *p)
{
	struct ps_told told[PS_MIRRORS_MAX];
	struct ps_judgement j;

	ps_fill_what_mirrors_told(p, told);
	ps_judge_store(&j, told, p->mirror_count);
	if (j.outlook == PS_OUTLOOK_AMBIGUOUS)
		return fail_ambiguous_store(p, &j);
	if (j.outlook < PS_OUTLOOK_AMBIGUOUS)
		return PERSEAS_ENOSTORE;
	if (p->fills_new_store && is_store_id_set(p->store_id) &&
	    memcmp(p->store_id, j.store_id, PS_ID_SIZE) != 0)
		return ps_fail(p, PERSEAS_EEXIST,
		               "the store '%s' that was being filled was removed meanwhile, and "
		               "another store has its name now",
		               p->store);
	if (!memcmp(p->store_id, j.store_id, PS_ID_SIZE))
		return check_key_still_shown(p);
	memcpy(p->store_id, j.store_id, PS_ID_SIZE);
	return 0;
}

static int fail_no_store(struct perseas *p)
{
	unsigned without = 0, unfinished = 0, unfilled = 0, silent = 0;
	int other = 0;
	char text[PS_ERROR_TEXT - 256];

	for (unsigned i = 0; i < p->mirror_count; i++) {
		int code = p->mirrors[i].probe.code;

		without += code == PERSEAS_ENOSTORE;
		silent += code == PERSEAS_EUNREACHABLE;
		unfinished += !code;
		unfilled += !code && p->mirrors[i].probe.header->roster->filling;
		if (code && code != PERSEAS_ENOSTORE && code != PERSEAS_EUNREACHABLE)
			other = code;
	}
	format_errors(p, text, sizeof(text));
	if (other)
		return ps_fail(p, other, "%s", text);
	if (unfilled)
		return ps_fail_restore_unfinished(p);
	if (unfinished)
		return ps_fail(p, PERSEAS_ENOSTORE,
		               "the creation of store '%s' was not finished: create it again",
		               p->store);
	if (silent)
		return ps_fail(p, PERSEAS_EUNREACHABLE,
		               "no mirror that answered has store '%s': %s", p->store, text);
	return ps_fail(p, PERSEAS_ENOSTORE,
	               "%u mirrors answered, and none has a store '%s': create it, or give the "
	               "mirrors that have it",
	               without, p->store);
}

/* Ignores mirror `m`, whose address leads to the same daemon as `same`: a second session with a
 * daemon ends the first. */
static void ignore_duplicate_mirror(struct perseas *p, struct ps_mirror *m,
                                    const struct ps_mirror *same)
{
	m->probe.code = ps_error_set(&m->probe.error, PERSEAS_EUNREACHABLE, PS_SAME_MIRROR_NOTE,
	                             m->address.text, same->address.text);
	ps_mirror_disconnect(p, m);
	m->probe.is_claimed = false;
}

/* Returns a judgement with the rosters that the handle already knows. */
static struct ps_judgement new_judgement_of_handle(const struct perseas *p)
{
	return (struct ps_judgement){ .store_id = p->store_id,
		                      .naming_roster = p->roster,
		                      .settled = p->roster,
		                      .next = p->next_roster };
}

/* Finds out which mirror is which member of the handle's rosters. */
static void match_mirrors_to_members(struct perseas *p, const struct ps_told *told)
{
	struct ps_judgement j = new_judgement_of_handle(p);

	ps_judge_members(&j, told, p->mirror_count);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->is_image_in_roster = j.member_ids[i];
		m->probe.is_listed = j.member_set >> i & 1;
		m->is_from_spill = false;
		if (m->is_image_in_roster)
			memcpy(m->image_id, j.member_ids[i], PS_ID_SIZE);
		if (j.loaded_set >> i & 1)
			ps_mirror_note_loaded(m, m->probe.header);
		if (j.duplicate_set >> i & 1)
			ignore_duplicate_mirror(p, m, &p->mirrors[j.duplicate_of[i]]);
	}
	ps_quorums_recompute(p);
}

/* Replaces *have by a copy of `found`. Returns 0 or PERSEAS_ENOMEM. */
static int replace_roster(struct perseas *p, Perseas__Roster **have, const Perseas__Roster *found)
{
	Perseas__Roster *copy = ps_roster_copy(found);

	if (!copy)
		return ps_fail(p, PERSEAS_ENOMEM, "out of memory");
	ps_roster_free(have);
	*have = copy;
	return 0;
}

int ps_probe_find_rosters(struct perseas *p)
{
	struct ps_told told[PS_MIRRORS_MAX];
	struct ps_judgement j = { .store_id = p->store_id, .naming_roster = p->roster };
	int rc = 0;

	ps_fill_what_mirrors_told(p, told);
	ps_judge_rosters(&j, told, p->mirror_count);
	/* Rosters and marks that were seen once stay, even if their mirror no longer answers. */
	p->is_change_decided &= ps_roster_newer(p->next_roster, j.settled);
	if (ps_roster_outranks(j.settled, p->roster))
		rc = replace_roster(p, &p->roster, j.settled);
	if (!rc && ps_roster_newer(j.next, p->next_roster))
		rc = replace_roster(p, &p->next_roster, j.next);
	if (rc)
		return rc;
	if (p->next_roster && !ps_roster_newer(p->next_roster, p->roster))
		ps_roster_free(&p->next_roster);
	p->is_change_decided = p->next_roster && (p->is_change_decided || j.is_decided);
	match_mirrors_to_members(p, told);
	return 0;
}

static bool has_mirror_with_image(const struct perseas *p, const uint8_t *image_id)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].is_image_in_roster &&
		    !memcmp(p->mirrors[i].image_id, image_id, PS_ID_SIZE))
			return true;
	return false;
}

/* Adds members of the roster that the handle's list does not have. Returns true if it added any.
 * Skips members that an earlier roster or attempt added. */
static bool add_missing_members(struct perseas *p, const Perseas__Roster *roster)
{
	bool added = false;

	for (size_t k = 0; roster && k < roster->n_members; k++) {
		const Perseas__Member *member = roster->members[k];
		struct ps_error ignored;
		struct ps_address address;
		struct ps_mirror *m;

		if (has_mirror_with_image(p, member->image_id.data) ||
		    ps_address_parse(member->address, &address, &ignored) ||
		    ps_handle_has_address(p, address.text))
			continue;
		m = ps_mirror_add(p, &address);
		if (m)
			m->is_from_roster = added = true;
	}
	return added;
}

/* Returns true if the mirrors report images of different stores. */
static bool has_several_stores(const struct perseas *p)
{
	const Perseas__Header *first = NULL;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const Perseas__Header *header = p->mirrors[i].probe.header;

		if (p->mirrors[i].probe.code || !header)
			continue;
		first = first ? first : header;
		if (!ps_id_equal(header->store_id, first->store_id.data))
			return true;
	}
	return false;
}

static bool has_address_of_every_member(const struct perseas *p, const Perseas__Roster *roster)
{
	for (size_t k = 0; roster && k < roster->n_members; k++) {
		struct ps_error ignored;
		struct ps_address address;

		if (!ps_address_parse(roster->members[k]->address, &address, &ignored) &&
		    !ps_handle_has_address(p, address.text))
			return false;
	}
	return true;
}

/* Asks the members of all reported rosters if there are several stores. The store to open is the
 * one that shows enough of its roster, so every store must get the chance to show it, whichever
 * members the list names. */
static int ask_rival_members(struct perseas *p)
{
	const unsigned given = p->mirror_count;
	bool all = true;

	if (!has_several_stores(p))
		return 0;
	for (unsigned i = 0; i < given; i++) {
		const Perseas__Header *header = p->mirrors[i].probe.header;

		if (p->mirrors[i].probe.code || !header)
			continue;
		add_missing_members(p, header->roster);
		add_missing_members(p, header->next_roster);
		all = all && has_address_of_every_member(p, header->roster) &&
		      has_address_of_every_member(p, header->next_roster);
	}
	if (p->mirror_count > given)
		ask_mirrors_from_index(p, given);
	if (all)
		return 0;
	return ps_fail(p, PERSEAS_EROSTER,
	               "the mirrors hold several stores named '%s', whose rosters list more than "
	               "%d mirrors together: give the mirrors of one store",
	               p->store, PS_MIRRORS_MAX);
}

/* Asks the members of the rosters that the given list, which may be older, does not name. */
static int ask_unnamed_members(struct perseas *p)
{
	const unsigned given = p->mirror_count;
	bool added = add_missing_members(p, p->roster);
	int rc;

	added |= add_missing_members(p, p->next_roster);
	if (!added)
		return 0;
	ask_mirrors_from_index(p, given);
	/* A new answer may be `creating` although other mirrors have settled that making. */
	ps_making_complete(p);
	rc = ps_probe_find_rosters(p);
	if (rc)
		return rc;
	for (unsigned i = given; i < p->mirror_count; i++)
		ps_report_add_line(p, "%s: was not named, but the roster lists it",
		                   p->mirrors[i].address.text);
	return 0;
}

/* Fails if the mirrors have a store and a fork of it, with no image in common: epochs and seqs
 * cannot tell which of the two has the acknowledged transactions. */
static int check_no_fork(struct perseas *p)
{
	struct ps_judgement j = new_judgement_of_handle(p);
	struct ps_told told[PS_MIRRORS_MAX];

	ps_fill_what_mirrors_told(p, told);
	j.member_set = ps_probe_sets(p).listed_set;
	if (!ps_judge_forked(&j, told, p->mirror_count))
		return 0;
	return ps_fail(p, PERSEAS_EROSTER,
	               "the mirrors hold store '%s' and a fork of it, whose rosters have no image "
	               "in common, and either may have what was acknowledged last: perseas status "
	               "shows both; give the mirrors of one of them, or drop the images of the "
	               "other",
	               p->store);
}

/* Fails if the restore of the store is unfinished, except in the process that fills the store. */
static int check_restore_finished(struct perseas *p)
{
	struct ps_judgement j = new_judgement_of_handle(p);
	struct ps_told told[PS_MIRRORS_MAX];

	ps_fill_what_mirrors_told(p, told);
	ps_judge_members(&j, told, p->mirror_count);
	ps_judge_state(&j, told, p->mirror_count);
	return !p->fills_new_store && ps_judge_unfilled(&j, told, p->mirror_count)
	               ? ps_fail_restore_unfinished(p)
	               : 0;
}

static int check_no_live_owner(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (ps_has_store(p, m) && m->probe.has_owner &&
		    !(p->options.flags & PERSEAS_TAKEOVER))
			return ps_fail(p, PERSEAS_EBUSY,
			               "store '%s' has a live owner (from %s, epoch %llu, seen "
			               "by %s): stop it, or ask for a takeover to fence it",
			               p->store, m->probe.owner_address,
			               (unsigned long long)m->probe.header->promised_epoch,
			               m->address.text);
	}
	return 0;
}

/* Fails if too few mirrors answered to adopt a state. Claiming them anyway would fence a live owner
 * for nothing, and would raise the epoch above the state that the operator was told. An operator
 * who accepts a state with fewer than R mirrors has named it. */
static int check_enough_mirrors_answered(struct perseas *p)
{
	const struct ps_image_position *newest;
	const struct ps_probe_sets n = ps_probe_sets(p);
	const uint32_t reached = n.listed_set & n.showed_image_set,
		       counted = ps_judge_images(p, reached);

	newest = ps_newest_state(p);
	if (!ps_quorum_is_r(p, counted) && !(newest && ps_state_is_accepted(p, newest)))
		return ps_fail_too_few_mirrors(p, counted, newest);
	return p->is_salvage || !newest ? 0 : ps_check_state_adoptable(p, reached, newest);
}

/* Chooses the epoch to claim above. If this excludes mirrors, finds
 * the rosters again from the remaining mirrors; if none remains, keeps the rosters of all of them
 * for the error message. */
static int choose_epoch_to_claim_above(struct perseas *p)
{
	struct ps_told told[PS_MIRRORS_MAX];
	struct ps_judgement j = { .store_id = p->store_id, .naming_roster = p->roster };

	if (!ps_epoch_raise_to_promises(p))
		return 0;
	ps_fill_what_mirrors_told(p, told);
	ps_judge_rosters(&j, told, p->mirror_count);
	if (!j.settled)
		return 0;
	ps_roster_free(&p->roster);
	ps_roster_free(&p->next_roster);
	return ps_probe_find_rosters(p);
}

static int judge_answers(struct perseas *p)
{
	int rc = ask_rival_members(p);

	if (!rc)
		rc = choose_store(p);
	if (rc == PERSEAS_ENOSTORE)
		return fail_no_store(p);
	if (rc)
		return rc;
	/* If one mirror has settled the making, all mirrors have the store: settle the others. */
	ps_making_complete(p);
	/* The only mirror that had settled may not have answered again. */
	if (choose_store(p))
		return PS_AGAIN;
	/* Rosters that an earlier attempt changed may be recorded on no mirror. */
	ps_roster_free(&p->roster);
	ps_roster_free(&p->next_roster);
	p->is_change_decided = p->opening.cancelled_change = false;
	rc = ps_probe_find_rosters(p);
	if (!rc)
		rc = ask_unnamed_members(p);
	if (!rc)
		rc = check_no_fork(p);
	if (!rc)
		rc = check_restore_finished(p);
	if (!rc)
		rc = check_no_live_owner(p);
	if (!rc)
		rc = choose_epoch_to_claim_above(p);
	return rc ? rc : check_enough_mirrors_answered(p);
}

/* Returns a mirror of the set `had` that fails now, except with PERSEAS_ENOSTORE, or NULL. */
static const struct ps_mirror *find_now_unreachable(const struct perseas *p, uint32_t had)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (had >> i & 1 && m->probe.code && m->probe.code != PERSEAS_ENOSTORE)
			return m;
	}
	return NULL;
}

/* Probes a second time if the answers look like a fork. A roster that changes while the mirrors
 * answer one after the other can look like that once; a real fork looks the same again. */
int ps_probe_judge_answers(struct perseas *p)
{
	const struct ps_mirror *gone;
	uint32_t had;
	int rc = judge_answers(p);

	if (rc != PERSEAS_EROSTER)
		return rc;
	had = ps_probe_sets(p).showed_image_set;
	ps_probe_mirrors(p);
	gone = find_now_unreachable(p, had);
	if (gone)
		return ps_fail(
			p, PERSEAS_EUNREACHABLE,
			"the mirrors hold store '%s' and a fork of it or another store of its "
			"name, or its roster was being changed, and one of them did not answer "
			"again (%s): start it, or open the store again",
			p->store, gone->probe.error.text);
	return judge_answers(p);
}
