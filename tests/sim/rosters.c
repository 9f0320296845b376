/*
 * rosters.c - finds the rosters that count in the images of all mirrors. The oracle and the
 * operator call it. It is written apart from client/core/quorum.c on purpose, and must stay so: it
 * checks that one.
 */
#include "rosters.h"

#include "../../server/store/store_private.h"
#include "oracle.h"

#include <string.h>

uint32_t sim_rosters_level(const struct sim_world *w, const uint8_t *store_id)
{
	if (w->settled)
		return w->settled->level;
	return memcmp(store_id, w->removed_id, PS_ID_SIZE) ? 0 : w->removed_level;
}

bool sim_rosters_counts(const struct sim_world *w, const Perseas__Header *header)
{
	const uint32_t level = sim_rosters_level(w, header->store_id.data);

	return header->roster->level >= level ||
	       (header->next_roster && header->next_roster->level >= level);
}

const Perseas__Header *sim_rosters_header(const struct sim_mirror *m)
{
	const struct store *store = m->stores ? store_find(m->stores, SIM_STORE) : NULL;
	const Perseas__Header *header = m->header;

	if (m->stores)
		header = store ? store->header : NULL;
	return m->forked || !header || !sim_rosters_counts(m->world, header) ? NULL : header;
}

bool sim_rosters_any_loaded(const struct sim_world *w)
{
	bool loaded = false;

	for (unsigned i = 0; i < w->mirror_count; i++) {
		const Perseas__Header *header = sim_rosters_header(w->mirrors[i]);

		loaded |= w->mirrors[i]->stores && header && header->parent_id.len;
	}
	return loaded;
}

static bool is_newer(const Perseas__Roster *roster, const Perseas__Roster *than)
{
	if (!roster || !than)
		return roster != NULL;
	if (roster->epoch != than->epoch)
		return roster->epoch > than->epoch;
	return roster->version > than->version;
}

struct sim_rosters sim_rosters_find(const struct sim_world *w)
{
	struct sim_rosters found = { NULL, NULL };

	for (unsigned i = 0; i < w->mirror_count; i++) {
		const Perseas__Header *header = sim_rosters_header(w->mirrors[i]);

		if (!header || header->state == STATE(CREATING))
			continue;
		if (is_newer(header->roster, found.settled))
			found.settled = header->roster;
		if (is_newer(header->next_roster, found.next))
			found.next = header->next_roster;
	}
	if (!is_newer(found.next, found.settled))
		found.next = NULL;
	return found;
}

struct sim_rosters sim_rosters_ever(const struct sim_world *w)
{
	return (struct sim_rosters){ w->settled, is_newer(w->next, w->settled) ? w->next : NULL };
}

static void remember(Perseas__Roster **known, const Perseas__Roster *roster)
{
	if (!is_newer(roster, *known))
		return;
	if (*known)
		perseas__roster__free_unpacked(*known, NULL);
	*known = ps_roster_copy(roster);
}

void sim_rosters_remember(const struct sim_mirror *m)
{
	const Perseas__Header *header = sim_rosters_header(m);

	if (!header || header->state == STATE(CREATING))
		return;
	remember(&m->world->settled, header->roster);
	remember(&m->world->next, header->next_roster);
}

void sim_rosters_forget(struct sim_world *w)
{
	if (w->settled)
		perseas__roster__free_unpacked(w->settled, NULL);
	if (w->next)
		perseas__roster__free_unpacked(w->next, NULL);
	w->settled = w->next = NULL;
}

void sim_rosters_removed(struct sim_world *w, const uint8_t *store_id)
{
	/* Without rosters, this was an image that a stranger made of the removed store. */
	if (w->settled) {
		memcpy(w->removed_id, store_id, PS_ID_SIZE);
		w->removed_level = w->settled->level;
	}
	sim_rosters_forget(w);
}

static bool is_of(const Perseas__Member *member, const Perseas__Header *header)
{
	return same_id(member->image_id, header->image_id) ||
	       same_id(member->image_id, header->parent_id);
}

bool sim_roster_lists(const Perseas__Roster *roster, const struct sim_mirror *m)
{
	const Perseas__Header *header = sim_rosters_header(m);

	for (size_t k = 0; header && roster && k < roster->n_members; k++)
		if (is_of(roster->members[k], header))
			return true;
	return false;
}

bool sim_roster_names(const Perseas__Roster *roster, const struct sim_mirror *m)
{
	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (!strcmp(roster->members[k]->address, m->address))
			return true;
	return false;
}

/* Returns true if the mirror has the member's image. */
static bool has(const struct sim_mirror *m, const Perseas__Member *member)
{
	const Perseas__Header *header = sim_rosters_header(m);

	return header && is_of(member, header);
}

unsigned sim_roster_count(const struct sim_world *w, const Perseas__Roster *roster,
                          bool (*fn)(const struct sim_mirror *m, const void *arg), const void *arg)
{
	unsigned count = 0;

	for (size_t k = 0; k < roster->n_members; k++) {
		bool found = false;

		for (unsigned i = 0; i < w->mirror_count && !found; i++)
			found = has(w->mirrors[i], roster->members[k]) && fn(w->mirrors[i], arg);
		count += found;
	}
	return count;
}

static unsigned claimers_of(const Perseas__Roster *roster)
{
	return (unsigned)roster->n_members - roster->acks + 1;
}

/* Returns how many other members must be there before an image is made anew (I9). */
static unsigned needed_by(const Perseas__Roster *roster)
{
	return roster->acks > claimers_of(roster) ? roster->acks : claimers_of(roster);
}

/* Returns how many images an open claims at least: one may be made anew. */
static unsigned touched_by(const Perseas__Roster *roster)
{
	unsigned most = roster->n_members > 1 ? (unsigned)roster->n_members - 1 : 1;

	return needed_by(roster) < most ? needed_by(roster) : most;
}

static bool has_address(const Perseas__Roster *roster, const char *address)
{
	for (size_t k = 0; k < roster->n_members; k++)
		if (!strcmp(roster->members[k]->address, address))
			return true;
	return false;
}

/* Returns true if both are the same change; each owner that completes it stamps the rosters
 * anew. */
static bool is_same(const Perseas__Roster *a, const Perseas__Roster *b)
{
	if (!a || !b || a->n_members != b->n_members || a->acks != b->acks || a->level != b->level)
		return false;
	for (size_t k = 0; k < a->n_members; k++)
		if (!has_address(b, a->members[k]->address))
			return false;
	return true;
}

static bool tells(const Perseas__Header *header, const Perseas__Roster *next)
{
	return is_same(header->next_roster, next) || is_same(header->roster, next);
}

static bool knows(const struct sim_mirror *m, const void *arg)
{
	const struct sim_rosters *rosters = arg;

	return tells(sim_rosters_header(m), rosters->next);
}

/* Returns true if the header says that the change is decided or settled. */
static bool says_decided(const Perseas__Header *header, const Perseas__Roster *next)
{
	return (header->marked && is_same(header->next_roster, next)) ||
	       is_same(header->roster, next);
}

static bool decides(const struct sim_mirror *m, const void *arg)
{
	const struct sim_rosters *rosters = arg;

	return says_decided(sim_rosters_header(m), rosters->next);
}

/* Counts the members of the next roster that have its mark, or had it when their image was lost.
 * With W of them the change counts, whatever is lost later. */
static unsigned count_deciding(const struct sim_world *w, const struct sim_rosters *rosters)
{
	unsigned count = sim_roster_count(w, rosters->next, decides, rosters);

	for (size_t k = 0; k < rosters->next->n_members; k++)
		for (unsigned i = 0; i < w->mirror_count; i++) {
			const Perseas__Header *lost = w->mirrors[i]->lost;

			count += lost && is_of(rosters->next->members[k], lost) &&
			         says_decided(lost, rosters->next);
		}
	return count;
}

static bool is_there(const struct sim_mirror *m, const void *arg)
{
	(void)m;
	(void)arg;
	return true;
}

/* Returns true if every open by the old roster would see the change. Lost images answer no open. */
static bool is_seen(const struct sim_world *w, const struct sim_rosters *rosters)
{
	const Perseas__Roster *old = rosters->settled;
	unsigned lost = (unsigned)old->n_members - sim_roster_count(w, old, is_there, NULL);

	lost += sim_roster_count(w, old, knows, rosters);
	return lost + touched_by(old) > old->n_members;
}

typedef unsigned copies_fn(const struct sim_world *w, const Perseas__Roster *roster,
                           const void *arg);

static bool is_enough(const struct sim_world *w, struct sim_rosters by, copies_fn *copies,
                      const void *arg)
{
	if (!by.settled || copies(w, by.settled, arg) >= by.settled->acks)
		return true;
	if (!is_newer(by.next, by.settled) || copies(w, by.next, arg) < by.next->acks)
		return false;
	return is_seen(w, &by) && count_deciding(w, &by) >= by.next->acks;
}

/* The newest that is there decides; or the newest that ever was, where its headers were lost. */
bool sim_rosters_enough(const struct sim_world *w, copies_fn *copies, const void *arg)
{
	return is_enough(w, sim_rosters_find(w), copies, arg) ||
	       is_enough(w, sim_rosters_ever(w), copies, arg);
}

/* --- the end --- */

/* Returns true if the image is not joining. If one image is consistent, all members hold the state,
 * and the others are told. */
static bool is_whole(const struct sim_mirror *m, const void *arg)
{
	(void)arg;
	return sim_rosters_header(m)->state != STATE(JOINING);
}

static bool counts(const struct sim_mirror *m, const void *arg)
{
	return is_whole(m, arg) || sim_rosters_header(m)->harmless;
}

/* Returns true if I9 lets an image be made anew for a member, or for a mirror that is not one
 * yet. */
static bool may_be_made(const struct sim_world *w, const Perseas__Roster *roster, bool member)
{
	unsigned others = (unsigned)roster->n_members - member, need = needed_by(roster);

	return others &&
	       sim_roster_count(w, roster, is_there, NULL) >= (need < others ? need : others);
}

bool sim_rosters_openable(const struct sim_world *w)
{
	const struct sim_rosters found = sim_rosters_find(w);
	const Perseas__Roster *both[2] = { found.settled, found.next };
	const Perseas__Roster *newest = found.next ? found.next : found.settled;
	unsigned there, whole = 0;

	if (!newest)
		return false;
	for (int q = 0; q < 2 && both[q]; q++) {
		whole += sim_roster_count(w, both[q], is_whole, NULL);
		if (sim_roster_count(w, both[q], counts, NULL) < claimers_of(both[q]))
			return false;
	}
	/* An owner that completes a change must be sure that every open by the old roster sees
	 * it. */
	if (found.next &&
	    sim_roster_count(w, found.settled, is_there, NULL) + touched_by(found.settled) <=
	            found.settled->n_members)
		return false;
	/* W images must be there or be made anew, each with as many others as I9 asks for. */
	there = sim_roster_count(w, newest, is_there, NULL);
	for (size_t k = 0; k < newest->n_members; k++) {
		const Perseas__Member *member = newest->members[k];
		bool made = true, listed = false;

		for (unsigned i = 0; i < w->mirror_count; i++) {
			const Perseas__Header *header = sim_rosters_header(w->mirrors[i]);

			listed |= header && is_of(member, header);
		}
		for (int q = 0; q < 2 && both[q]; q++)
			made &= may_be_made(w, both[q], has_address(both[q], member->address));
		there += !listed && made;
	}
	return whole > 0 && there >= newest->acks;
}
