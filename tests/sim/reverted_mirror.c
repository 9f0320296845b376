/*
 * reverted_mirror.c - schedules in which the memory of one mirror of three goes back in time while
 * an owner lives, and nothing tells the daemon so: old bytes were written over its files. The owner
 * must call that memory lost, because it lacks transactions that the mirror acknowledged.
 *
 * The older image counts again in the eyes of the oracle, so that it finds an owner that goes on
 * with it.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "../../server/store/store_private.h"
#include "mirror.h"
#include "mistakes.h"
#include "schedule.h"

enum { MEMBERS = 3 };

#define LOOKS (100 * SIM_US)

/* The mirror, and where its image stood when its memory was copied. */
struct backup {
	struct sim_mirror *mirror;
	struct sim_owner *owner;
	struct ps_slot slot;
	bool away; /* the owner has noticed the end of the daemon */
};

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	*mirrors = MEMBERS;
	*spares = 0;
	w->acks = 2;
	sim_aim_quiet(w->schedule);
}

static bool is_over(const struct sim_world *w, const struct backup *backup)
{
	return w->schedule->ending || !sim_aim_is_open(backup->owner) ||
	       backup->owner->handle->epoch != backup->slot.epoch;
}

/* Without the mistake the image is LOST as soon as its claim is granted, and then copied. */
static void look(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct backup *backup = arg;
	enum perseas_mirror_state state;

	(void)ticket;
	if (is_over(w, backup))
		return;
	state = sim_aim_mirror(backup->owner, backup->mirror)->state;
	backup->away |= state == PERSEAS_MIRROR_DOWN;
	if (state == PERSEAS_MIRROR_LOST || state == PERSEAS_MIRROR_RESYNCING) {
		sim_count(w, SIM_WENT_BACK, 1);
		return;
	}
	if (backup->away && state != PERSEAS_MIRROR_DOWN && !w->mistake)
		sim_fail(w, "mirror %u went back in time, and owner %u goes on with it",
		         backup->mirror->index, backup->owner->index);
	sim_at(w, w->now + LOOKS, look, backup, 0);
}

/* Nothing shows that the memory is a copy. The one before stays until the schedule ends, because
 * clients may still map it. */
static void put_back(struct sim_mirror *m)
{
	struct memory *older = m->disk;

	sim_trace(m->world, "mirror %u goes back in time", m->index);
	m->disk = NULL;
	sim_mirror_crash(m, false, true);
	m->gone[m->gone_count++] = m->memory;
	m->memory = older;
	sim_mirror_start(m);
}

static void begin(struct sim_world *w);

/* Waits until the mirror has acknowledged more than the copy of its memory has. */
static void go_back(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct backup *backup = arg;
	struct sim_mirror *m = backup->mirror;

	(void)ticket;
	if (w->schedule->ending)
		return;
	if (is_over(w, backup) || !m->stores) {
		begin(w);
		return;
	}
	if (sim_aim_mirror(backup->owner, m)->acked_seq <= backup->slot.seq) {
		sim_at(w, w->now + LOOKS, go_back, backup, 0);
		return;
	}
	put_back(m);
	look(w, backup, 0);
}

static void back_up(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct backup *backup = arg;
	struct sim_mirror *m = w->mirrors[sim_below(w, MEMBERS)];
	struct store *store = m->stores ? store_find(m->stores, SIM_STORE) : NULL;

	(void)ticket;
	if (w->schedule->ending)
		return;
	*backup = (struct backup){ .mirror = m, .owner = sim_aim_owner(w, MEMBERS) };
	if (!store || !backup->owner || image_slot(&store->image, &backup->slot) < 0 ||
	    is_over(w, backup)) {
		sim_at(w, w->now + SIM_MS, back_up, backup, 0);
		return;
	}
	memory_heap_free(m->disk);
	m->disk = memory_heap_copy(m->memory);
	if (!m->disk)
		sim_fail(w, "out of memory");
	sim_at(w, w->now + sim_between(w, 1, 300) * SIM_MS, go_back, backup, 0);
}

static void begin(struct sim_world *w)
{
	struct backup *backup = sim_alloc(w, sizeof(*backup));

	sim_at(w, w->now + sim_between(w, 100, 3000) * SIM_MS, back_up, backup, 0);
}

const struct sim_aim sim_reverted_mirror_aim = {
	.turn = 1,
	.mistakes = { SIM_MISTAKE_UNNOTICED },
	.shape = shape,
	.begin = begin,
};
