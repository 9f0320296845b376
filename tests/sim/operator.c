/*
 * operator.c - draws changes of the roster and asks the library for them, as an operator would.
 * application.c starts it as a thread. It knows the rosters only from rosters.c, and must be
 * right without asking the library what it thinks.
 */
#include "operator.h"

#include "../../client/core/handle.h"
#include "../../server/store/store_private.h"
#include "aim.h"
#include "mirror.h"
#include "mistakes.h"
#include "rosters.h"
#include "schedule.h"

/* --- which mirrors are given --- */

static bool is_listed(const struct sim_rosters *rosters, const struct sim_mirror *m)
{
	return sim_roster_names(rosters->settled, m) || sim_roster_names(rosters->next, m);
}

void sim_operator_list(struct sim_world *w, bool first, bool last, char list[SIM_LIST])
{
	const bool fixed = first || last || w->members == w->mirror_count;
	const struct sim_rosters rosters = sim_rosters_find(w);
	uint64_t which = fixed ? 0 : sim_below(w, 100);
	unsigned without = which >= 90 ? (unsigned)sim_below(w, w->mirror_count) : UINT32_MAX;
	size_t used = 0;

	list[0] = 0;
	for (unsigned i = 0; i < w->mirror_count; i++) {
		const struct sim_mirror *m = w->mirrors[i];
		bool given = i < w->members || last;

		if (which >= 30 && which < 60)
			given = true;
		else if (which >= 60 && rosters.settled)
			given = i != without && is_listed(&rosters, m);
		if ((given && !m->forked) || m->strange)
			used += (size_t)snprintf(list + used, SIM_LIST - used, "%s%s",
			                         used ? "," : "", m->address);
	}
	for (unsigned i = 0; i < w->mirror_count && !used; i++)
		if (!w->mirrors[i]->forked)
			used += (size_t)snprintf(list, SIM_LIST, "%s", w->mirrors[i]->address);
}

/* Draws nothing, so that schedules keep their course. Schedules with a mistake have level 0, except
 * for mistakes that need level 1. */
bool sim_operator_keeps_low(const struct sim_world *w)
{
	if (sim_aim_is(w, &sim_fillers_aim) || w->mistake == SIM_MISTAKE_ANY_PUBLISH ||
	    w->mistake == SIM_MISTAKE_KEYLESS)
		return false;
	return w->mistake || w->seed % 3 == 1;
}

/* Returns true if the image's roster and the newest roster list a common image. */
static bool has_common(const struct sim_world *w, const Perseas__Roster *theirs)
{
	const struct sim_rosters found = sim_rosters_find(w);
	const Perseas__Roster *newest = found.next ? found.next : found.settled;

	for (size_t i = 0; i < theirs->n_members; i++)
		for (size_t k = 0; newest && k < newest->n_members; k++)
			if (same_id(theirs->members[i]->image_id, newest->members[k]->image_id))
				return true;
	return false;
}

static void drop(struct sim_mirror *m, const struct store *store, const char *what)
{
	Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;
	struct why why;

	drop.store = (char *)SIM_STORE;
	drop.store_id = store->header->store_id;
	drop.image_id = store->header->image_id;
	sim_trace(m->world, "mirror %u: an operator drops %s", m->index, what);
	if (store_drop(m->stores, NULL, &drop, &why))
		sim_fail(m->world, "mirror %u: the image stays: %s", m->index, why.text);
}

/* Returns what the image is, or NULL if it must stay. A late Create leaves an image in state
 * creating that nobody completes and no owner replaces: its mirror cannot know that its creator is
 * gone. */
static const char *find_left(const struct sim_world *w, const Perseas__Header *header)
{
	if (has_common(w, header->roster))
		return NULL;
	if (header->state == STATE(CREATING) && sim_rosters_find(w).settled)
		return "a making that was left";
	if (w->settled && w->settled->key_hash.len && !sim_rosters_counts(w, header))
		return "an image without the key";
	if (!w->settled && !sim_rosters_counts(w, header))
		return "an image without the key of a store that was removed";
	return NULL;
}

void sim_operator_drop_left(struct sim_world *w)
{
	for (unsigned i = 0; i < w->mirror_count; i++) {
		struct sim_mirror *m = w->mirrors[i];
		const struct store *store = m->stores ? store_find(m->stores, SIM_STORE) : NULL;
		const bool has = !m->forked && store && store->header;
		const char *what = has ? find_left(w, store->header) : NULL;

		if (what)
			drop(m, store, what);
	}
}

/* --- changes --- */

static const struct sim_mirror *some_spare(struct sim_application *a)
{
	struct sim_world *w = a->world;
	const struct sim_mirror *m = w->mirrors[sim_below(w, w->mirror_count)];

	return sim_roster_names(a->p->roster, m) ? NULL : m;
}

/* Returns true if the mirror lost its image. Others may believe that of any mirror. */
static bool is_gone(const struct sim_world *w, const char *address)
{
	for (unsigned i = 0; address && i < w->mirror_count; i++)
		if (!strcmp(w->mirrors[i]->address, address))
			return !sim_rosters_header(w->mirrors[i]);
	return false;
}

/* Returns a member of the roster that nobody can reach now, or NULL. */
static const char *dead_member(const struct sim_application *a)
{
	const struct sim_world *w = a->world;

	for (unsigned i = 0; i < w->mirror_count; i++)
		if (sim_roster_names(a->p->roster, w->mirrors[i]) &&
		    (!w->mirrors[i]->stores || w->schedule->unreachable[i]))
			return w->mirrors[i]->address;
	return NULL;
}

/* Draws a change. Returns false if no such change is possible. */
static bool draw(struct sim_application *a, struct perseas_roster_change *change)
{
	struct sim_world *w = a->world;
	const Perseas__Roster *roster = a->p->roster;
	const struct sim_mirror *spare = some_spare(a);
	const unsigned members = (unsigned)roster->n_members;
	const char *dead = dead_member(a);

	*change = (struct perseas_roster_change){ .kind = (int)sim_between(w, 1, 3) };
	if (change->kind != PERSEAS_ROSTER_ADD)
		change->address = roster->members[sim_below(w, members)]->address;
	/* Operators mostly remove what is dead. */
	if (change->address && dead && sim_chance(w, 70))
		change->address = dead;
	if (change->kind != PERSEAS_ROSTER_REMOVE && !spare)
		return false;
	if (change->kind != PERSEAS_ROSTER_REMOVE)
		change->with = spare->address;
	if (change->kind == PERSEAS_ROSTER_REMOVE && members == 1)
		return false;
	if (change->kind == PERSEAS_ROSTER_ADD && members == SIM_MEMBERS_MAX)
		return false;
	change->gone = is_gone(w, change->address) || sim_mistake_is(w, SIM_MISTAKE_GONE);
	if (sim_chance(w, 30))
		change->acks = (uint32_t)sim_between(w, 1, members - 1);
	return true;
}

/* Checks the result of a change against the newest roster that any mirror ever had, unless another
 * owner's is newer. Mirrors that recorded it may have lost their memory before its owner heard of
 * that. */
static void check_changed(struct sim_application *a, const char *without, const char *with)
{
	struct sim_world *w = a->world;
	const struct sim_rosters found = sim_rosters_ever(w);

	if (!found.settled || found.settled->epoch != a->p->epoch || found.next)
		return;
	for (unsigned i = 0; i < w->mirror_count; i++) {
		const struct sim_mirror *m = w->mirrors[i];
		bool named = sim_roster_names(found.settled, m);

		if ((without[0] && named && !strcmp(m->address, without)) ||
		    (with[0] && !named && !strcmp(m->address, with)))
			sim_fail(w, "owner %u: the roster is changed, and no mirror has it so",
			         a->owner->index);
	}
}

/* Changes of a store of level 0 take turns with tries to raise it. */
static bool is_raise(const struct sim_application *a)
{
	const struct sim_world *w = a->world;

	return a->p->roster->level == 0 && !w->mistake &&
	       (w->seed / 3 + w->schedule->changes) % 2 == 0;
}

/* Returns false if there is nothing to change. */
static bool choose(struct sim_application *a, struct perseas_roster_change *change)
{
	if (!is_raise(a))
		return draw(a, change);
	*change = (struct perseas_roster_change){ .kind = PERSEAS_ROSTER_RAISE };
	return true;
}

static void change_roster(struct sim_application *a)
{
	struct sim_world *w = a->world;
	struct perseas_roster_change change;
	char without[64], with[64];
	bool dead, raises;
	int rc;

	if (!choose(a, &change))
		return;
	raises = change.kind == PERSEAS_ROSTER_RAISE;
	/* The address is the roster's, which goes with it. */
	snprintf(without, sizeof(without), "%s", change.address ? change.address : "");
	snprintf(with, sizeof(with), "%s", change.with ? change.with : "");
	change.address = change.address ? without : NULL;
	sim_trace(w, "owner %u changes the roster: without '%s', with '%s', W %u%s",
	          a->owner->index, without, with, change.acks, raises ? ", level 1" : "");
	dead = dead_member(a) != NULL;
	sim_count(w, SIM_CHANGES_TRIED_DEAD, dead);
	rc = perseas_roster(a->p, &change);
	if (a->owner->dead)
		return;
	sim_trace(w, "owner %u: the change: %s %s", a->owner->index, perseas_error_name(rc),
	          rc ? perseas_message(a->p) : "");
	switch (rc) {
	case 0:
		sim_count(w, raises ? SIM_RAISES : SIM_CHANGES, 1);
		sim_count(w, SIM_CHANGES_DEAD, dead && !raises);
		check_changed(a, without, with);
		break;
	case PERSEAS_EUNREACHABLE:
	case PERSEAS_EQUORUM:
	case PERSEAS_EMIRRORMEM:
	case PERSEAS_EBLOCKED:
		sim_count(w, SIM_CHANGES_GIVEN_UP, 1);
		break;
	case PERSEAS_EBUSY:
	case PERSEAS_EFENCED:
		break;
	default:
		sim_unexpected(a, "roster", rc);
	}
}

void sim_operator_let_go(void *arg)
{
	struct sim_application *a = arg;

	a->p->upkeep.change.stage = PS_CHANGE_NONE;
	a->p->upkeep.change.result_code = PERSEAS_EUNREACHABLE;
}

void sim_operate(void *application)
{
	struct sim_application *a = application;
	struct sim_schedule *s = a->world->schedule;

	while (!a->leaving && !a->owner->dead && s->left > 0 && s->changes > 0) {
		sim_owner_sleep(a->owner, sim_below(a->world, s->change_gap));
		if (a->leaving || a->owner->dead || !s->left)
			break;
		s->changes--;
		change_roster(a);
	}
}
