/*
 * change_admission.c - which changes of the roster may begin (change.c asks, once when a change is
 * ordered and once more before both rosters count), and which may be taken back. It must never
 * change anything: what is refused leaves no trace.
 */
#include "change_admission.h"

#include "../core/mirror.h"
#include "../core/quorum.h"

#include <stdio.h>
#include <string.h>

/* One of the two rosters, and how people know it. */
struct side {
	const char *name;
	const Perseas__Roster *roster;
	struct ps_quorum quorum;
};

static unsigned count(const struct side *side, uint32_t set)
{
	return (unsigned)__builtin_popcount(side->quorum.set & set);
}

static bool can_commit(const struct side *side, uint32_t live)
{
	return count(side, live) >= side->quorum.acks;
}

/* R of it are there. */
static bool can_open(const struct side *side, uint32_t live)
{
	return count(side, live) + side->quorum.acks > side->quorum.members;
}

/* The addresses of its members that are not in the set. */
static void name_missing(const struct perseas *p, const struct side *side, uint32_t set, char *text,
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

/* Says that a roster has too few mirrors for what it must do, and what helps. */
static int too_few(const struct perseas *p, const struct side *side, uint32_t live, unsigned need,
                   const char *what, char *text, size_t size)
{
	char missing[100];

	name_missing(p, side, live, missing, sizeof(missing));
	snprintf(text, size,
	         "the roster %s has %u of %u mirrors live, and %s needs %u; not live: %s. "
	         "Start or replace what is dead first, or choose another W",
	         side->name, count(side, live), side->quorum.members, what, need, missing);
	return PERSEAS_EQUORUM;
}

/* Can commits go on by each roster while both count, and afterwards? */
static int judge(struct perseas *p, const struct ps_admission *asked, char *text, size_t size)
{
	const struct side old = { "as it is now", p->roster, p->quorums[0] };
	const struct side next = { "as it would be", asked->next, ps_quorum_of(p, asked->next) };
	const uint32_t live = asked->live;

	if (!can_commit(&next, live))
		return too_few(p, &next, live, next.quorum.acks, "a commit", text, size);
	/* The change must not take away that the store can be opened. */
	if (!can_open(&next, live) && can_open(&old, live))
		return too_few(p, &next, live, next.quorum.members - next.quorum.acks + 1,
		               "the next open", text, size);
	/* Commits that wait for a mirror that is to leave go on when it has left. */
	if (asked->cures)
		return 0;
	if (!can_commit(&old, live))
		return too_few(p, &old, live, old.quorum.acks, "a commit", text, size);
	if (!p->commit.in_doubt || ps_mirrors_hold(p, p->commit.in_doubt))
		return 0;
	snprintf(text, size,
	         "transaction %llu is in doubt: the roster is changed when perseas_flush has "
	         "returned 0, or a mirror that is dead is replaced",
	         (unsigned long long)p->commit.in_doubt);
	return PERSEAS_EBLOCKED;
}

int ps_change_admit(struct perseas *p, const struct ps_admission *asked, char *text, size_t size)
{
	int rc;

	ps_assert_admin(p);
	if (!ps_quorum_seen(p, asked->answered)) {
		snprintf(
			text, size,
			"too few mirrors of the roster as it is now answer for a change to be seen "
			"by every later open: start them%s; where they lost their memory, perseas "
			"status says what to do",
			p->members == 2 ? ", or say that the one that leaves is gone for good"
					: "");
		return PERSEAS_EQUORUM;
	}
	pthread_mutex_lock(&p->lock);
	ps_mirrors_poll(p);
	rc = judge(p, asked, text, size);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* Those that answered that their memory is lost, and are made anew when this roster counts alone:
 * the other one may keep that from being done now (I9). */
static uint32_t made_anew(struct perseas *p, const struct side *side, uint32_t connected)
{
	uint32_t set = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].state == PERSEAS_MIRROR_LOST && p->mirrors[i].lost_memory &&
		    ps_quorum_remakes(&side->quorum, connected, i))
			set |= (uint32_t)1 << i;
	pthread_mutex_unlock(&p->lock);
	return set;
}

int ps_change_admit_cancel(struct perseas *p, uint32_t connected, char *text, size_t size)
{
	const struct side old = { "as it was", p->roster, p->quorums[0] };
	const uint32_t there = connected | made_anew(p, &old, connected);
	char missing[60];

	ps_assert_admin(p);
	if (ps_quorum_settled(p, there))
		return 0;
	name_missing(p, &old, there, missing, sizeof(missing));
	snprintf(text, size,
	         "the change cannot be taken back: the roster %s has %u of %u mirrors connected, "
	         "and %u must record that; not connected: %s. Start them, even without their "
	         "memory, or let the change be completed",
	         old.name, count(&old, there), old.quorum.members, old.quorum.acks, missing);
	return PERSEAS_EQUORUM;
}
