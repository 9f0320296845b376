/*
 * impostor.c - schedules in which a client that may create stores on spare mirrors, and read the
 * real ones, makes images of the same name, while one real mirror of three is down and the owner
 * dies (n = 3, W = 2). They are of another store, or of this one with a roster of their own.
 * Owners are given all mirrors. None may take the images for the store's.
 *
 * The oracle knows nothing of what is made on the spare mirrors (sim_mirror.forked), so that it
 * finds an owner that opens that.
 */
#include "aim.h"

#include "../../server/store/status.h"
#include "../../server/store/store_private.h"
#include "mirror.h"
#include "mistakes.h"
#include "process.h"
#include "schedule.h"

#include <string.h>

enum { MEMBERS = 3, SPARES = 3 };

#define LOOKS SIM_MS

struct impostor {
	struct sim_mirror *down;
	uint8_t store_id[PS_ID_SIZE], image_ids[SPARES][PS_ID_SIZE];
	uint64_t epoch;  /* of the owner that it saw */
	bool same_store; /* the last member of its roster is the mirror that is down */
	unsigned made;
};

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = MEMBERS;
	*spares = SPARES;
	w->acks = 2;
	sim_aim_quiet(s);
	s->cancels = 0;
}

static void draw_id(struct sim_world *w, uint8_t id[PS_ID_SIZE])
{
	for (unsigned i = 0; i < PS_ID_SIZE; i++)
		id[i] = (uint8_t)sim_between(w, 1, 255);
}

/* Creates an image with this roster at a spare mirror. Only a mirror with the mistake takes another
 * roster than the first. */
static void make_at(struct sim_world *w, const struct impostor *impostor, unsigned spare,
                    const Perseas__Roster *roster)
{
	struct sim_mirror *m = w->mirrors[MEMBERS + spare];
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;
	struct why why;
	int ret;

	create.store = settle.store = (char *)SIM_STORE;
	create.store_id = settle.store_id = (ProtobufCBinaryData){ PS_ID_SIZE,
		                                                   (uint8_t *)impostor->store_id };
	create.image_id = roster->members[spare]->image_id;
	create.log_size = w->schedule->log_size;
	create.roster = (Perseas__Roster *)roster;
	ret = store_create(m->stores, NULL, &create, &why);
	if (!ret)
		ret = store_settle(m->stores, &settle, &why);
	if (ret)
		sim_fail(w, "mirror %u: no image is made: %s", m->index, why.text);
	m->strange = true;
}

static void make_images(struct sim_world *w, struct impostor *impostor)
{
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member members[SPARES], *list[SPARES];

	for (unsigned k = 0; k < SPARES; k++) {
		perseas__member__init(&members[k]);
		members[k].address = w->mirrors[MEMBERS + k]->address;
		members[k].image_id = (ProtobufCBinaryData){ PS_ID_SIZE, impostor->image_ids[k] };
		list[k] = &members[k];
	}
	if (impostor->same_store)
		members[SPARES - 1].address = impostor->down->address;
	roster.version = 1;
	if (sim_mistake_is(w, SIM_MISTAKE_MADE_UP)) {
		roster.version = 1000;
		roster.epoch = impostor->epoch;
	}
	roster.acks = w->acks;
	roster.n_members = SPARES;
	roster.members = list;
	impostor->made = SPARES - impostor->same_store;
	for (unsigned k = 0; k < impostor->made; k++)
		make_at(w, impostor, k, &roster);
}

/* Reads the ids of the mirror that goes down next. */
static void read_ids(struct sim_world *w, struct impostor *impostor)
{
	const struct store *store = store_find(impostor->down->stores, SIM_STORE);

	impostor->epoch = store->header->promised_epoch;
	impostor->same_store = w->mistake || w->seed / SIM_AIM_TURNS % 2;
	for (unsigned k = 0; k < SPARES; k++)
		draw_id(w, impostor->image_ids[k]);
	draw_id(w, impostor->store_id);
	if (!impostor->same_store)
		return;
	memcpy(impostor->store_id, store->header->store_id.data, PS_ID_SIZE);
	memcpy(impostor->image_ids[SPARES - 1], store->header->image_id.data, PS_ID_SIZE);
}

/* Returns false while an owner has the image claimed. */
static bool drop_image(struct sim_world *w, struct impostor *impostor, unsigned k)
{
	struct sim_mirror *m = w->mirrors[MEMBERS + k];
	Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;
	struct why why;
	int ret;

	drop.store = (char *)SIM_STORE;
	drop.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, impostor->store_id };
	drop.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, impostor->image_ids[k] };
	ret = m->stores ? store_drop(m->stores, NULL, &drop, &why) : 0;
	if (ret == -STATUS(BUSY))
		return false;
	if (ret)
		sim_fail(w, "mirror %u: the image stays: %s", m->index, why.text);
	m->strange = false;
	return true;
}

/* Deletes the forged images, as an operator would, and starts the mirror again. */
static void end(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct impostor *impostor = arg;

	(void)ticket;
	for (; impostor->made > 0; impostor->made--)
		if (!drop_image(w, impostor, impostor->made - 1)) {
			sim_at(w, w->now + LOOKS, end, impostor, 0);
			return;
		}
	if (!impostor->down->stores)
		sim_mirror_start(impostor->down);
}

static void strike(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct impostor *impostor = arg;
	struct sim_owner *o = sim_aim_owner(w, MEMBERS);

	(void)ticket;
	if (w->schedule->ending)
		return;
	if (!o) {
		sim_at(w, w->now + LOOKS, strike, impostor, 0);
		return;
	}
	impostor->down = w->mirrors[sim_below(w, MEMBERS)];
	read_ids(w, impostor);
	sim_mirror_crash(impostor->down, false, false);
	make_images(w, impostor);
	sim_trace(w, "mirror %u is down, and %u images are made up of %s store",
	          impostor->down->index, impostor->made, impostor->same_store ? "this" : "another");
	sim_owner_kill(o, false);
	sim_at(w, w->now + sim_between(w, 200, 2000) * SIM_MS, end, impostor, 0);
}

static void begin(struct sim_world *w)
{
	for (unsigned k = 0; k < SPARES; k++)
		w->mirrors[MEMBERS + k]->forked = true;
	sim_at(w, w->now + sim_between(w, 100, 2000) * SIM_MS, strike,
	       sim_alloc(w, sizeof(struct impostor)), 0);
}

const struct sim_aim sim_impostor_aim = {
	.turn = 18,
	.mistakes = { SIM_MISTAKE_MADE_UP },
	.shape = shape,
	.begin = begin,
};
