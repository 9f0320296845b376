/*
 * copied_spill.c - schedules in which the spill of a mirror of three is copied, and a spare mirror
 * loads the copy. Once all members have recorded the id that the mirror's own image has since, the
 * copy must count for nothing: one member misses a few transactions, and then that member and the
 * spare mirror are the only two that an open reaches.
 *
 * The oracle knows nothing of the copy (sim_mirror.forked), so that it finds an owner that opens
 * with it. Before the id is recorded, nothing tells the copy from the image ("Copies of spills" in
 * PROTOCOL.md), and the schedules wait.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "../../server/store/store_private.h"
#include "mirror.h"
#include "mistakes.h"
#include "oracle.h"
#include "process.h"
#include "schedule.h"

enum { MEMBERS = 3 };

#define LOOKS SIM_MS
#define AWAY (20 * SIM_MS)

struct copying {
	struct sim_mirror *member; /* whose spill is copied */
	struct sim_mirror *behind; /* misses transactions, and is reached last */
	unsigned depth;            /* of the state that must be acknowledged first */
};

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	*mirrors = MEMBERS;
	*spares = 1;
	w->acks = 2;
	sim_aim_quiet(w->schedule);
	w->schedule->cancels = 0;
}

static struct store *store_of(const struct sim_mirror *m)
{
	return m->stores ? store_find(m->stores, SIM_STORE) : NULL;
}

/* The two members that were acknowledged last come back. */
static void end(struct sim_world *w, void *arg, uint64_t ticket)
{
	(void)arg;
	(void)ticket;
	for (unsigned i = 0; i < MEMBERS; i++)
		if (!w->mirrors[i]->stores)
			sim_mirror_start(w->mirrors[i]);
}

/* Leaves an open the member that is behind, and the copy. */
static void strike(struct sim_world *w, struct copying *copying, struct sim_owner *o)
{
	sim_trace(w, "mirrors %u and %u are left", copying->behind->index, MEMBERS);
	sim_owner_kill(o, false);
	for (unsigned i = 0; i < MEMBERS; i++)
		if (w->mirrors[i] != copying->behind)
			sim_mirror_crash(w->mirrors[i], false, false);
	sim_mirror_start_again(w, copying->behind, 0);
	sim_count(w, SIM_COPIED, 1);
	sim_at(w, w->now + sim_between(w, 200, 2000) * SIM_MS, end, copying, 0);
}

static void await_commits(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct copying *copying = arg;
	struct sim_owner *o = sim_aim_owner(w, 0);

	(void)ticket;
	if (w->schedule->ending)
		return;
	if (o && sim_oracle_newest(w)->depth >= copying->depth)
		strike(w, copying, o);
	else
		sim_at(w, w->now + LOOKS, await_commits, copying, 0);
}

/* Returns true if the rosters on all members list the id that the image has now. */
static bool is_recorded(const struct sim_world *w, const struct copying *copying)
{
	const struct store *own = store_of(copying->member);

	for (unsigned i = 0; i < MEMBERS; i++) {
		const struct store *store = store_of(w->mirrors[i]);

		if (!own || !store ||
		    !ps_roster_member(store->header->roster, own->header->image_id.data))
			return false;
	}
	return true;
}

static void await_record(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct copying *copying = arg;

	(void)ticket;
	if (w->schedule->ending)
		return;
	if (!sim_aim_owner(w, MEMBERS) || !is_recorded(w, copying)) {
		sim_at(w, w->now + LOOKS, await_record, copying, 0);
		return;
	}
	copying->behind = w->mirrors[(copying->member->index + 1 + sim_below(w, 2)) % MEMBERS];
	copying->depth = sim_oracle_newest(w)->depth + (unsigned)sim_between(w, 1, 5);
	sim_mirror_crash(copying->behind, false, false);
	await_commits(w, copying, 0);
}

/* The mistake: the image keeps the id, so the copy is the child of a member. */
static void keep_id(const struct sim_mirror *m)
{
	Perseas__Header *header = store_of(m)->header;

	if (!sim_mistake_is(m->world, SIM_MISTAKE_KEPT_ID))
		return;
	memcpy(header->image_id.data, header->parent_id.data, PS_ID_SIZE);
	header->parent_id.len = 0;
}

static void come_back(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct copying *copying = arg;

	(void)ticket;
	sim_mirror_start_again(w, copying->member, 0);
	if (!store_of(copying->member))
		return;
	keep_id(copying->member);
	await_record(w, copying, 0);
}

/* Has the spare mirror load a copy of the member's spill. */
static void load_copy(struct sim_world *w, const struct sim_mirror *member)
{
	struct sim_mirror *spare = w->mirrors[MEMBERS];
	size_t len;
	const uint8_t *bytes = spill_heap_bytes(member->spill, SIM_STORE, &len);

	if (!bytes)
		sim_fail(w, "mirror %u has no spill", member->index);
	sim_mirror_stop(spare, SIM_MEMORY_KEPT);
	spill_heap_put(spare->spill, SIM_STORE, bytes, len);
	sim_mirror_start(spare);
	if (!store_of(spare))
		sim_fail(w, "mirror %u does not load the copy", spare->index);
	spare->strange = true;
}

static void stop(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct copying *copying = arg;

	(void)ticket;
	if (w->schedule->ending)
		return;
	if (!sim_aim_owner(w, MEMBERS)) {
		sim_at(w, w->now + LOOKS, stop, copying, 0);
		return;
	}
	copying->member = w->mirrors[sim_below(w, MEMBERS)];
	sim_mirror_stop(copying->member, sim_chance(w, 50) ? SIM_MEMORY_KEPT : SIM_HOST_ENDS);
	load_copy(w, copying->member);
	sim_at(w, w->now + AWAY, come_back, copying, 0);
}

static void begin(struct sim_world *w)
{
	w->mirrors[MEMBERS]->forked = true;
	sim_at(w, w->now + sim_between(w, 100, 2000) * SIM_MS, stop,
	       sim_alloc(w, sizeof(struct copying)), 0);
}

const struct sim_aim sim_copied_spill_aim = {
	.turn = 4,
	.mistakes = { SIM_MISTAKE_KEPT_ID },
	.shape = shape,
	.begin = begin,
};
