/*
 * change_admission.c - decides which changes of the roster may begin and which may be taken back.
 * change.c asks when a change is ordered, and again before both rosters count. Nothing here may
 * change any state: a refused change leaves no trace.
 */
#include "change_admission.h"

#include "../core/mirror.h"
#include "../core/quorum.h"

#include <stdio.h>
#include <string.h>

/* One of the two rosters, with its name in messages. */
struct side {
	const char *name;
	const Perseas__Roster *roster;
	struct ps_quorum quorum;
};

static unsigned count_members(const struct side *side, uint32_t set)
{
	return (unsigned)__builtin_popcount(side->quorum.set & set);
}

static bool can_commit(const struct side *side, uint32_t live)
{
	return count_members(side, live) >= side->quorum.acks;
}

/* Returns true if R members of the roster are live. */
static bool can_open(const struct side *side, uint32_t live)
{
	return count_members(side, live) + side->quorum.acks > side->quorum.members;
}

/* Writes the addresses of the members that are not in `set`, separated by commas. */
static void list_missing(const struct perseas *p, const struct side *side, uint32_t set, char *text,
                         size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (size_t k = 0; k < side->roster->n_members && used < size; k++) {
		const Perseas__Member *member = side->roster->members[k];
		bool there = false;

		for (unsigned i = 0; i < p->mirror_count; i++)
			there |= (set & side->quorum.set) >> i & 1 &&
			         ps_id_equal(member->image_id, p->mirrors[i].image_id);
		if (!there)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
			                         member->address);
	}
}

/* Writes a sentence that the roster has too few mirrors for `what`, and what to do. Returns
 * PERSEAS_EQUORUM. */
static int fail_too_few(const struct perseas *p, const struct side *side, uint32_t live,
                        unsigned need, const char *what, char *text, size_t size)
{
	char missing[100];

	list_missing(p, side, live, missing, sizeof(missing));
	snprintf(text, size,
	         "the roster %s has %u of %u mirrors live, and %s needs %u; not live: %s. "
	         "Start or replace what is dead first, or choose another W",
	         side->name, count_members(side, live), side->quorum.members, what, need, missing);
	return PERSEAS_EQUORUM;
}

/* Returns 0 if commits can go on under each roster during the change and afterwards. Otherwise
 * returns an error code with a sentence in `text`. Caller holds p->lock. */
static int check_commits(struct perseas *p, const struct ps_admission *asked, char *text,
                         size_t size)
{
	const struct side old = { "as it is now", p->roster, p->quorums[0] };
	const struct side next = { "as it would be", asked->next_roster,
		                   ps_quorum_of_roster(p, asked->next_roster) };
	const uint32_t live = asked->live_mirrors;

	ps_assert_locked(p);
	if (!can_commit(&next, live))
		return fail_too_few(p, &next, live, next.quorum.acks, "a commit", text, size);
	/* The change must not make it impossible to open the store. */
	if (!can_open(&next, live) && can_open(&old, live))
		return fail_too_few(p, &next, live, next.quorum.members - next.quorum.acks + 1,
		                    "the next open", text, size);
	/* Commits that wait for the mirror that leaves continue after the change. */
	if (asked->unblocks_commits)
		return 0;
	if (!can_commit(&old, live))
		return fail_too_few(p, &old, live, old.quorum.acks, "a commit", text, size);
	if (!p->commit.in_doubt_seq || ps_w_mirrors_hold(p, p->commit.in_doubt_seq))
		return 0;
	snprintf(text, size,
	         "transaction %llu is in doubt: the roster is changed when perseas_flush has "
	         "returned 0, or a mirror that is dead is replaced",
	         (unsigned long long)p->commit.in_doubt_seq);
	return PERSEAS_EBLOCKED;
}

int ps_change_check_may_begin(struct perseas *p, const struct ps_admission *asked, char *text,
                              size_t size)
{
	int rc;

	ps_assert_admin(p);
	if (!ps_quorum_every_open_sees(p, asked->tellable_mirrors)) {
		snprintf(
			text, size,
			"too few mirrors of the roster as it is now answer for a change to be seen "
			"by every later open: start them%s; where they lost their memory, perseas "
			"status says what to do",
			p->member_count == 2 ? ", or say that the one that leaves is gone for good"
					     : "");
		return PERSEAS_EQUORUM;
	}
	pthread_mutex_lock(&p->lock);
	ps_mirrors_poll(p);
	rc = check_commits(p, asked, text, size);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* Returns the mirrors that have lost their memory and will be made anew once the old roster counts
 * alone. The other roster may prevent that at present (I9). */
static uint32_t mirrors_to_remake(struct perseas *p, const struct side *side, uint32_t connected)
{
	uint32_t set = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].state == PERSEAS_MIRROR_LOST && p->mirrors[i].has_lost_memory &&
		    ps_quorum_allows_remake(&side->quorum, connected, i))
			set |= (uint32_t)1 << i;
	pthread_mutex_unlock(&p->lock);
	return set;
}

int ps_change_check_may_cancel(struct perseas *p, uint32_t connected, char *text, size_t size)
{
	const struct side old = { "as it was", p->roster, p->quorums[0] };
	const uint32_t there = connected | mirrors_to_remake(p, &old, connected);
	char missing[60];

	ps_assert_admin(p);
	if (ps_quorum_is_w_of_settled_roster(p, there))
		return 0;
	list_missing(p, &old, there, missing, sizeof(missing));
	snprintf(text, size,
	         "the change cannot be taken back: the roster %s has %u of %u mirrors connected, "
	         "and %u must record that; not connected: %s. Start them, even without their "
	         "memory, or let the change be completed",
	         old.name, count_members(&old, there), old.quorum.members, old.quorum.acks,
	         missing);
	return PERSEAS_EQUORUM;
}
