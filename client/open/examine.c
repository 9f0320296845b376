/*
 * examine.c - judges the images that mirrors reported, and writes the messages that say which
 * mirrors are missing. It sends nothing to mirrors, and changes only the notes in the handle.
 */
#include "examine.h"

#include "../core/quorum.h"
#include "../../proto/base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Appends a member that does not count, and the reason, to a list in a message. Returns the length
 * appended. */
static size_t append_missing_member(char *text, size_t size, bool has_predecessor,
                                    const char *address, const char *why)
{
	const size_t around = strlen(address) + sizeof(",  ()");
	char reason[PS_ERROR_TEXT];

	ps_text_format(reason, size > around ? size - around : 1, "%s", why);
	return ps_text_format(text, size, "%s%s (%s)", has_predecessor ? ", " : "", address,
	                      reason);
}

/* Returns why no mirror of this handle shows the member's image. */
static const char *explain_missing_member(const struct perseas *p, const Perseas__Member *member)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].probe.code &&
		    !strcmp(p->mirrors[i].address.text, member->address))
			return p->mirrors[i].probe.error.text;
	return "not among the mirrors given";
}

bool ps_mirror_is_forked(const struct perseas *p, const struct ps_mirror *m)
{
	return ps_has_store(p, m) && ps_image_is_forked(m->probe.header, p->roster, p->next_roster);
}

static const char *explain_why_not_counted(const struct perseas *p, const struct ps_mirror *m)
{
	if (m->probe.code)
		return m->probe.error.text;
	return ps_mirror_is_forked(p, m) ? PS_FORK_NOTE : "its image is not whole";
}

static void list_missing_members(const struct perseas *p, const Perseas__Roster *roster, char *text,
                                 size_t size)
{
	size_t used = 0;

	assert(roster);
	text[0] = 0;
	for (size_t k = 0; k < roster->n_members && used < size; k++) {
		const struct ps_mirror *m = NULL;
		const char *why = explain_missing_member(p, roster->members[k]);

		for (unsigned i = 0; i < p->mirror_count; i++)
			if (p->mirrors[i].is_image_in_roster &&
			    ps_id_equal(roster->members[k]->image_id, p->mirrors[i].image_id))
				m = &p->mirrors[i];
		if (m && m->probe.counts_for_r)
			continue;
		if (m)
			why = explain_why_not_counted(p, m);
		used += append_missing_member(text + used, (size - used) / (roster->n_members - k),
		                              used > 0, roster->members[k]->address, why);
	}
}

static bool have_all_mirrors_failed_with(const struct perseas *p, int code)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].probe.code != code)
			return false;
	return true;
}

/* Returns PERSEAS_EQUORUM, or the code with which all mirrors failed if more mirrors would not
 * help: damaged images only, no RDMA, no TLS, access denied, or a limit. */
static int choose_too_few_code(const struct perseas *p)
{
	static const int useless[] = {
		PERSEAS_EDAMAGED, PERSEAS_ERDMA, PERSEAS_ETLS, PERSEAS_EDENIED, PERSEAS_ELIMIT,
	};

	for (unsigned i = 0; i < sizeof(useless) / sizeof(useless[0]); i++)
		if (have_all_mirrors_failed_with(p, useless[i]))
			return useless[i];
	return PERSEAS_EQUORUM;
}

int ps_fail_restore_unfinished(struct perseas *p)
{
	return ps_fail(
		p, PERSEAS_EUNFINISHED,
		"the restore of store '%s' is not finished, and the store is empty: wait for "
		"the command that fills it; or, if that command has ended, run it again, or "
		"delete the store with perseas drop",
		p->store);
}

int ps_fail_too_few_mirrors(struct perseas *p, uint32_t counted,
                            const struct ps_image_position *state)
{
	char names[PS_ERROR_TEXT - 512], newest[120] = "no state was seen";
	const struct ps_quorum *quorum = &p->quorums[0];
	const Perseas__Roster *roster = p->roster;
	const int code = choose_too_few_code(p);

	/* If all mirrors refuse, the message of the first one suffices. */
	if (code == PERSEAS_EDENIED || code == PERSEAS_ELIMIT)
		return ps_fail_error(p, &p->mirrors[0].probe.error);
	/* During a change of the roster, report the roster that lacks mirrors. */
	if (p->next_roster &&
	    ps_quorum_count_settled_members(p, counted) >= ps_quorum_r_of_settled_roster(p)) {
		quorum = &p->quorums[1];
		roster = p->next_roster;
	}
	list_missing_members(p, roster, names, sizeof(names));
	if (state)
		snprintf(newest, sizeof(newest),
		         "the newest state seen is %llu:%llu (epoch:transaction)",
		         (unsigned long long)state->epoch, (unsigned long long)state->seq);
	return ps_fail(p, code,
	               "%u of %u mirrors answered for store '%s' and %u must, to know its newest "
	               "state. Missing: %s. %s",
	               (unsigned)__builtin_popcount(counted & quorum->set), quorum->members,
	               p->store, quorum->members - quorum->acks + 1, names, newest);
}

/* Fails because too few mirrors hold the newest state or could be mended to it. lost: a member has
 * lost its memory. */
static int fail_too_few_hold_state(struct perseas *p, const struct ps_image_position *state,
                                   bool lost)
{
	const Perseas__Roster *roster = p->is_change_decided ? p->next_roster : p->roster;
	char names[PS_ERROR_TEXT - 512], anew[120] = "";
	unsigned holding = 0;

	assert(roster);
	for (unsigned i = 0; i < p->mirror_count; i++)
		holding += p->mirrors[i].probe.is_listed &&
		           ps_candidate_is_at(&p->mirrors[i], state);
	list_missing_members(p, roster, names, sizeof(names));
	if (lost)
		snprintf(anew, sizeof(anew),
		         "; one that lost its memory is made anew only while "
		         "%u others have theirs (I9)",
		         ps_quorum_t_count(p));
	return ps_fail(p, PERSEAS_EQUORUM,
	               "%u of %u mirrors hold the newest state of store '%s', and %u must before "
	               "it can be opened%s. It is %llu:%llu (epoch:transaction), no state was "
	               "changed, and perseas recover --onto or --to saves it. Missing: %s",
	               holding, (unsigned)roster->n_members, p->store, roster->acks, anew,
	               (unsigned long long)state->epoch, (unsigned long long)state->seq, names);
}

bool ps_mirror_can_get_new_image(const struct perseas *p, const struct ps_mirror *m)
{
	return m->has_vote && !m->probe.is_listed && m->control &&
	       (ps_has_store(p, m) ? !ps_mirror_is_forked(p, m)
	                           : m->probe.code == PERSEAS_ENOSTORE);
}

/* Returns the members without a usable image on which I9 allows a new one, given these claimed
 * mirrors. Sets *lost to true if there are members without a usable image at all. */
static uint32_t find_members_for_new_images(const struct perseas *p, uint32_t claimed, bool *lost)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (!ps_mirror_can_get_new_image(p, m))
			continue;
		*lost = true;
		if (ps_quorum_can_remake_mirror(p, claimed, m))
			set |= ps_mirror_bit(p, m);
	}
	return set;
}

/* Fails unless the roster before a change could count alone again: W of its members must be
 * claimed, or may be made anew by its own rules. */
static int check_can_cancel_roster_change(struct perseas *p, uint32_t claimed)
{
	char names[PS_ERROR_TEXT - 512];
	uint32_t set = claimed;

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (ps_mirror_can_get_new_image(p, &p->mirrors[i]) &&
		    ps_quorum_allows_remake(&p->quorums[0], claimed, i))
			set |= (uint32_t)1 << i;
	if (ps_quorum_is_w_of_settled_roster(p, set))
		return 0;
	list_missing_members(p, p->roster, names, sizeof(names));
	return ps_fail(p, PERSEAS_EQUORUM,
	               "the change of the roster cannot be taken back: %u of %u mirrors of the "
	               "roster before it are there, and %u must be. Start those that are missing, "
	               "even without their memory, or open the store without PERSEAS_CANCEL, which "
	               "completes the change. Missing: %s",
	               ps_quorum_count_settled_members(p, set), p->member_count, p->acks, names);
}

/* Returns true if the change of the roster is cancelled, or will be once the claims have shown that
 * it can be. */
static bool is_cancelling_roster_change(const struct perseas *p)
{
	return p->opening.cancelled_change ||
	       (p->next_roster && !p->is_change_decided && p->options.flags & PERSEAS_CANCEL);
}

int ps_check_state_adoptable(struct perseas *p, uint32_t claimed,
                             const struct ps_image_position *state)
{
	bool lost = false;
	const uint32_t whole = claimed | find_members_for_new_images(p, claimed, &lost);

	if (p->next_roster && !ps_quorum_every_open_sees(p, claimed))
		return ps_fail_too_few_mirrors(p, claimed, NULL);
	if (!ps_quorum_is_r(p, claimed))
		return ps_quorum_is_w_of_newest_roster(p, whole)
		               ? 0
		               : fail_too_few_hold_state(p, state, lost);
	if (p->next_roster && !p->is_change_decided && !(p->options.flags & PERSEAS_CANCEL))
		return 0;
	if (!ps_quorum_is_t(p, claimed))
		return fail_too_few_hold_state(p, state, lost);
	return is_cancelling_roster_change(p) ? check_can_cancel_roster_change(p, claimed) : 0;
}

const struct ps_image_position *ps_newest_state(const struct perseas *p)
{
	struct ps_told told[PS_MIRRORS_MAX];
	int newest;

	ps_fill_what_mirrors_told(p, told);
	newest = ps_judge_newest(told, ps_probe_sets(p).candidate_set);
	return newest < 0 ? NULL : &p->mirrors[newest].probe.position;
}
