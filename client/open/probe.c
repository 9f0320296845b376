/*
 * probe.c - what the mirrors have, before anything is claimed: a refused open fences nobody.
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
	if (!m->warm)
		ps_mirror_disconnect(p, m);
	m->warm = false;
	ps_found_forget(m);
	m->known = m->votes = false;
}

/* Asks the mirrors from `first` on. */
static void ask_from(struct perseas *p, unsigned first)
{
	struct ps_round round;
	uint32_t set = 0;

	for (unsigned i = first; i < p->mirror_count; i++) {
		forget_answer(p, &p->mirrors[i]);
		/* To wait for it once more would keep the store without an owner for as long. */
		set |= (uint32_t)!p->mirrors[i].silent << i;
	}
	ps_round_status(p, set, true, &round, ps_answer_by(p));
	for (unsigned i = first; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		ps_found_note_status(m, round.replies[i], &round.errors[i]);
		if (m->silent)
			m->found.code = ps_error_set(&m->found.error, PERSEAS_EUNREACHABLE,
			                             "%s did not answer the standby, and was "
			                             "not asked once more",
			                             m->address.text);
		m->found.spared = m->silent;
		m->silent = false;
	}
	ps_round_free(&round);
}

void ps_probe_mirrors(struct perseas *p)
{
	ask_from(p, 0);
}

static int fail_ambiguous(struct perseas *p, const struct ps_judgement *j)
{
	char id[PS_HEX_TEXT], rival[PS_HEX_TEXT];

	return ps_fail(
		p, PERSEAS_EROSTER,
		"the mirrors hold two stores named '%s', with the ids %s and %s%s, and either "
		"may be the one that is meant: perseas status, asked of one mirror at a "
		"time, shows which has which; give the mirrors of one store",
		p->store, ps_hex_text(id, j->store_id), ps_hex_text(rival, j->rival_id),
		ps_judge_rival_note(j));
}

static bool has_store_id(const uint8_t *store_id)
{
	static const uint8_t none[PS_ID_SIZE];

	return memcmp(store_id, none, PS_ID_SIZE) != 0;
}

/* Lists what is wrong with each mirror for a message. */
static const char *format_troubles(const struct perseas *p, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (unsigned i = 0; i < p->mirror_count && used < size; i++)
		if (p->mirrors[i].found.code)
			used += ps_text_format(text + used, (size - used) / (p->mirror_count - i),
			                       "%s%s", used ? "; " : "",
			                       p->mirrors[i].found.error.text);
	return text;
}

/* Refuses images of the store's id that lack its key, which an attempt before this one has seen.
 * Judged alone they would pass for a store of level 0. */
static int check_key(struct perseas *p)
{
	const struct ps_mirror *without = NULL;
	char text[PS_ERROR_TEXT / 2];

	if (!p->roster || p->roster->level == 0)
		return 0;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->found.code || !ps_id_equal(m->found.header->store_id, p->store_id))
			continue;
		if (ps_store_is(m->found.header, p->store_id, p->roster))
			return 0;
		without = m;
	}
	if (!without)
		return 0;
	return ps_fail(p, PERSEAS_EUNREACHABLE,
	               "the mirrors of store '%s' answered before and do not answer any more, and "
	               "%s has an image without the key of this store: start the mirrors (%s)",
	               p->store, without->address.text, format_troubles(p, text, sizeof(text)));
}

/* Of stores that bear the same name (one was made again elsewhere), the one that is meant. */
static int choose_store(struct perseas *p)
{
	struct ps_told told[PS_MIRRORS_MAX];
	struct ps_judgement j;

	ps_examine_told(p, told);
	ps_judge_store(&j, told, p->mirror_count);
	if (j.outlook == PS_OUTLOOK_AMBIGUOUS)
		return fail_ambiguous(p, &j);
	if (j.outlook < PS_OUTLOOK_AMBIGUOUS)
		return PERSEAS_ENOSTORE;
	if (p->fills && has_store_id(p->store_id) &&
	    memcmp(p->store_id, j.store_id, PS_ID_SIZE) != 0)
		return ps_fail(p, PERSEAS_EEXIST,
		               "the store '%s' that was being filled was removed meanwhile, and "
		               "another store has its name now",
		               p->store);
	if (!memcmp(p->store_id, j.store_id, PS_ID_SIZE))
		return check_key(p);
	memcpy(p->store_id, j.store_id, PS_ID_SIZE);
	return 0;
}

static int fail_no_store(struct perseas *p)
{
	unsigned without = 0, unfinished = 0, unfilled = 0, silent = 0;
	int other = 0;
	char text[PS_ERROR_TEXT - 256];

	for (unsigned i = 0; i < p->mirror_count; i++) {
		int code = p->mirrors[i].found.code;

		without += code == PERSEAS_ENOSTORE;
		silent += code == PERSEAS_EUNREACHABLE;
		unfinished += !code;
		unfilled += !code && p->mirrors[i].found.header->roster->filling;
		if (code && code != PERSEAS_ENOSTORE && code != PERSEAS_EUNREACHABLE)
			other = code;
	}
	format_troubles(p, text, sizeof(text));
	if (other)
		return ps_fail(p, other, "%s", text);
	if (unfilled)
		return ps_fail_unfilled(p);
	if (unfinished)
		return ps_fail(p, PERSEAS_ENOSTORE,
		               "the making of store '%s' was not finished: create it again",
		               p->store);
	if (silent)
		return ps_fail(p, PERSEAS_EUNREACHABLE,
		               "no mirror that answered has store '%s': %s", p->store, text);
	return ps_fail(p, PERSEAS_ENOSTORE,
	               "%u mirrors answered, and none has a store '%s': create it, or give the "
	               "mirrors that have it",
	               without, p->store);
}

/* A second session would end the one over the other address. */
static void drop_duplicate(struct perseas *p, struct ps_mirror *m, const struct ps_mirror *same)
{
	m->found.code = ps_error_set(&m->found.error, PERSEAS_EUNREACHABLE, PS_SAME_MIRROR_NOTE,
	                             m->address.text, same->address.text);
	ps_mirror_disconnect(p, m);
	m->found.claimed = false;
}

/* Returns a judgement that goes by the rosters of the handle. */
static struct ps_judgement known_judgement(const struct perseas *p)
{
	return (struct ps_judgement){ .store_id = p->store_id,
		                      .naming_roster = p->roster,
		                      .settled = p->roster,
		                      .next = p->next_roster };
}

/* Who is which member of the rosters of the handle. */
static void find_members(struct perseas *p, const struct ps_told *told)
{
	struct ps_judgement j = known_judgement(p);

	ps_judge_members(&j, told, p->mirror_count);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->known = j.member_ids[i];
		m->found.listed = j.member_set >> i & 1;
		m->loaded = false;
		if (m->known)
			memcpy(m->image_id, j.member_ids[i], PS_ID_SIZE);
		if (j.loaded_set >> i & 1)
			ps_mirror_loaded(m, m->found.header);
		if (j.duplicate_set >> i & 1)
			drop_duplicate(p, m, &p->mirrors[j.duplicate_of[i]]);
	}
	ps_quorum_renew(p);
}

/* Replaces *have by a copy of `found`. Returns 0 or ENOMEM. */
static int replace_roster(struct perseas *p, Perseas__Roster **have, const Perseas__Roster *found)
{
	Perseas__Roster *copy = ps_roster_copy(found);

	if (!copy)
		return ps_fail(p, PERSEAS_ENOMEM, "out of memory");
	ps_roster_free(have);
	*have = copy;
	return 0;
}

int ps_probe_roster(struct perseas *p)
{
	struct ps_told told[PS_MIRRORS_MAX];
	struct ps_judgement j = { .store_id = p->store_id, .naming_roster = p->roster };
	int rc = 0;

	ps_examine_told(p, told);
	ps_judge_rosters(&j, told, p->mirror_count);
	/* Those that were seen stay the newest, also when their mirror does not answer again. */
	p->marked &= ps_roster_newer(p->next_roster, j.settled);
	if (ps_roster_outranks(j.settled, p->roster))
		rc = replace_roster(p, &p->roster, j.settled);
	if (!rc && ps_roster_newer(j.next, p->next_roster))
		rc = replace_roster(p, &p->next_roster, j.next);
	if (rc)
		return rc;
	if (p->next_roster && !ps_roster_newer(p->next_roster, p->roster))
		ps_roster_free(&p->next_roster);
	/* Once seen it stays decided, also when the mirror that told it does not answer again. */
	p->marked = p->next_roster && (p->marked || j.is_decided);
	find_members(p, told);
	return 0;
}

static bool is_known(const struct perseas *p, const uint8_t *image_id)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].known && !memcmp(p->mirrors[i].image_id, image_id, PS_ID_SIZE))
			return true;
	return false;
}

/* Whoever is in a roster and was not named gets a place here, once: both rosters may list it, and
 * the attempt before may have added it. True: there was one. */
static bool add_members(struct perseas *p, const Perseas__Roster *roster)
{
	bool added = false;

	for (size_t k = 0; roster && k < roster->n_members; k++) {
		const Perseas__Member *member = roster->members[k];
		struct ps_error ignored;
		struct ps_address address;
		struct ps_mirror *m;

		if (is_known(p, member->image_id.data) ||
		    ps_address_parse(member->address, &address, &ignored) ||
		    ps_handle_has(p, address.text))
			continue;
		m = ps_mirror_add(p, &address);
		if (m)
			m->added = added = true;
	}
	return added;
}

/* Do the mirrors tell of more than one store? */
static bool has_several_stores(const struct perseas *p)
{
	const Perseas__Header *first = NULL;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const Perseas__Header *header = p->mirrors[i].found.header;

		if (p->mirrors[i].found.code || !header)
			continue;
		first = first ? first : header;
		if (!ps_id_equal(header->store_id, first->store_id.data))
			return true;
	}
	return false;
}

static bool has_all_members(const struct perseas *p, const Perseas__Roster *roster)
{
	for (size_t k = 0; roster && k < roster->n_members; k++) {
		struct ps_error ignored;
		struct ps_address address;

		if (!ps_address_parse(roster->members[k]->address, &address, &ignored) &&
		    !ps_handle_has(p, address.text))
			return false;
	}
	return true;
}

/* Of several stores the one is meant that shows enough of its roster, so that each must be able to
 * show it: the members of all rosters are asked, whichever of them the list names. */
static int ask_rival_members(struct perseas *p)
{
	const unsigned given = p->mirror_count;
	bool all = true;

	if (!has_several_stores(p))
		return 0;
	for (unsigned i = 0; i < given; i++) {
		const Perseas__Header *header = p->mirrors[i].found.header;

		if (p->mirrors[i].found.code || !header)
			continue;
		add_members(p, header->roster);
		add_members(p, header->next_roster);
		all = all && has_all_members(p, header->roster) &&
		      has_all_members(p, header->next_roster);
	}
	if (p->mirror_count > given)
		ask_from(p, given);
	if (all)
		return 0;
	return ps_fail(p, PERSEAS_EROSTER,
	               "the mirrors hold several stores named '%s', whose rosters list more than "
	               "%d mirrors together: give the mirrors of one store",
	               p->store, PS_MIRRORS_MAX);
}

/* The list that was given may be older than the roster: its members are asked too. */
static int ask_members(struct perseas *p)
{
	const unsigned given = p->mirror_count;
	bool added = add_members(p, p->roster);
	int rc;

	added |= add_members(p, p->next_roster);
	if (!added)
		return 0;
	ask_from(p, given);
	/* What they tell may be a making that others know to be complete. */
	ps_making_complete(p);
	rc = ps_probe_roster(p);
	if (rc)
		return rc;
	for (unsigned i = given; i < p->mirror_count; i++)
		ps_report(p, "%s: was not named, but the roster lists it",
		          p->mirrors[i].address.text);
	return 0;
}

/* By their numbers nobody can tell which of the two is what was acknowledged. */
static int check_fork(struct perseas *p)
{
	struct ps_judgement j = known_judgement(p);
	struct ps_told told[PS_MIRRORS_MAX];

	ps_examine_told(p, told);
	j.member_set = ps_noted(p).listed;
	if (!ps_judge_forked(&j, told, p->mirror_count))
		return 0;
	return ps_fail(p, PERSEAS_EROSTER,
	               "the mirrors hold store '%s' and a fork of it, whose rosters have no image "
	               "in common, and either may have what was acknowledged last: perseas status "
	               "shows both; give the mirrors of one of them, or drop the images of the "
	               "other",
	               p->store);
}

/* Refuses an unfinished restore to every process but the filler. */
static int check_filled(struct perseas *p)
{
	struct ps_judgement j = known_judgement(p);
	struct ps_told told[PS_MIRRORS_MAX];

	ps_examine_told(p, told);
	ps_judge_members(&j, told, p->mirror_count);
	ps_judge_state(&j, told, p->mirror_count);
	return !p->fills && ps_judge_unfilled(&j, told, p->mirror_count) ? ps_fail_unfilled(p) : 0;
}

static int check_live(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (ps_has_store(p, m) && m->found.live && !(p->options.flags & PERSEAS_TAKEOVER))
			return ps_fail(p, PERSEAS_EBUSY,
			               "store '%s' has a live owner (from %s, epoch %llu, seen "
			               "by %s): stop it, or ask for a takeover to fence it",
			               p->store, m->found.owner,
			               (unsigned long long)m->found.header->promised_epoch,
			               m->address.text);
	}
	return 0;
}

/* An open that cannot end well would fence an owner for nothing, and raise what it claims above
 * the state that the operator was told of. Whoever accepts fewer than R has said so. */
static int check_reach(struct perseas *p)
{
	const struct ps_standing *newest;
	const struct ps_noted n = ps_noted(p);
	const uint32_t reached = n.listed & n.told, counted = ps_examine(p, reached);

	newest = ps_newest_state(p);
	if (!ps_quorum_claims(p, counted) && !(newest && ps_accepted(p, newest)))
		return ps_fail_too_few(p, counted, newest);
	return p->salvage || !newest ? 0 : ps_check_adoptable(p, reached, newest);
}

/* The epoch, and what the mirrors that can follow it know of the roster; where there is none of
 * these, what all know of it serves to say what is missing. */
static int judge_epoch(struct perseas *p)
{
	struct ps_told told[PS_MIRRORS_MAX];
	struct ps_judgement j = { .store_id = p->store_id, .naming_roster = p->roster };

	if (!ps_epoch_choose(p))
		return 0;
	ps_examine_told(p, told);
	ps_judge_rosters(&j, told, p->mirror_count);
	if (!j.settled)
		return 0;
	ps_roster_free(&p->roster);
	ps_roster_free(&p->next_roster);
	return ps_probe_roster(p);
}

static int judge_probed(struct perseas *p)
{
	int rc = ask_rival_members(p);

	if (!rc)
		rc = choose_store(p);
	if (rc == PERSEAS_ENOSTORE)
		return fail_no_store(p);
	if (rc)
		return rc;
	/* All mirrors had the store once one of them calls it consistent: so do the others then. */
	ps_making_complete(p);
	/* The only mirror that had it so may just have gone. */
	if (choose_store(p))
		return PS_AGAIN;
	/* What an attempt before made of it may be recorded nowhere. */
	ps_roster_free(&p->roster);
	ps_roster_free(&p->next_roster);
	p->marked = p->opening.cancelled = false;
	rc = ps_probe_roster(p);
	if (!rc)
		rc = ask_members(p);
	if (!rc)
		rc = check_fork(p);
	if (!rc)
		rc = check_filled(p);
	if (!rc)
		rc = check_live(p);
	if (!rc)
		rc = judge_epoch(p);
	return rc ? rc : check_reach(p);
}

/* A mirror of these that has the store no more, and does not say that it has none. */
static const struct ps_mirror *find_unreachable(const struct perseas *p, uint32_t had)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (had >> i & 1 && m->found.code && m->found.code != PERSEAS_ENOSTORE)
			return m;
	}
	return NULL;
}

/* A roster that changes while mirrors answer, one after the other, can look as that of a fork does.
 * A fork looks so again, as long as its mirrors answer. */
int ps_probe_judge(struct perseas *p)
{
	const struct ps_mirror *gone;
	uint32_t had;
	int rc = judge_probed(p);

	if (rc != PERSEAS_EROSTER)
		return rc;
	had = ps_noted(p).told;
	ps_probe_mirrors(p);
	gone = find_unreachable(p, had);
	if (gone)
		return ps_fail(
			p, PERSEAS_EUNREACHABLE,
			"the mirrors told of store '%s' and of a fork of it or another store of "
			"its name, or its roster was being changed, and one of them did not answer "
			"once more (%s): start it, or open the store again",
			p->store, gone->found.error.text);
	return judge_probed(p);
}
