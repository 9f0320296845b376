/*
 * stranger.c - claims by somebody who owns nothing, with epochs at their limits, and images that it
 * makes without the store's key. The schedule lets it come; it must never get an epoch that owners
 * cannot follow, nor must its images count.
 */
#include "stranger.h"

#include "../../client/core/handle.h"
#include "../../server/store/store_private.h"
#include "../support/mirror.h"
#include "mirror.h"
#include "mistakes.h"
#include "oracle.h"
#include "rosters.h"
#include "schedule.h"

/* Draws an epoch that is granted or refused. */
static uint64_t draw_epoch(struct sim_world *w, uint64_t promised)
{
	switch (sim_below(w, 7)) {
	case 0:
		return promised + PS_EPOCH_STEP + 1;
	case 1:
		return PS_EPOCH_MAX - 1;
	case 2:
		return PS_EPOCH_MAX;
	case 3:
		return PS_PROMISE_RETIRED - 1;
	case 4:
		return PS_PROMISE_RETIRED;
	default:
		return promised + PS_EPOCH_STEP;
	}
}

static int claim(struct sim_mirror *m, struct session *session, uint64_t epoch, struct why *why)
{
	Perseas__ClaimRequest request = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__ClaimReply reply = PERSEAS__CLAIM_REPLY__INIT;
	uint8_t owner[PS_ID_SIZE];

	memset(owner, 0x5a, sizeof(owner));
	request.store = (char *)SIM_STORE;
	request.epoch = epoch;
	request.owner = (ProtobufCBinaryData){ sizeof(owner), owner };
	request.takeover = true;
	sim_mistake_jump(m, epoch);
	return store_claim(m->stores, session, &request, &reply, why);
}

/* Returns the header of a mirror that has the store, or NULL. */
static const Perseas__Header *some_header(const struct sim_world *w)
{
	const Perseas__Header *header = NULL;

	for (unsigned i = 0; i < w->mirror_count && w->settled && !header; i++)
		if (w->mirrors[i]->stores)
			header = sim_rosters_header(w->mirrors[i]);
	return header;
}

static void fill_roster(struct sim_world *w, Perseas__Roster *roster, Perseas__Member *own)
{
	const Perseas__Roster *real = w->settled;
	const unsigned k = (unsigned)sim_below(w, real->n_members);

	roster->epoch = sim_chance(w, 50) ? PS_EPOCH_MAX : real->epoch;
	roster->version = real->version + 1;
	roster->acks = 1;
	perseas__member__init(own);
	own->address = real->members[k]->address;
	roster->members[roster->n_members++] = own;
	/* Together with a real image, it seems to be no fork. */
	roster->members[roster->n_members++] = real->members[(k + 1) % real->n_members];
	roster->n_members -= real->n_members == 1;
	/* The stranger's image takes a member's id. */
	own->image_id = real->members[k]->image_id;
}

/* The mistake: mirrors and owners do not look whether the stranger has the store's key. It asks for
 * nothing else that Create refuses. */
static void pass_for_holder(const Perseas__Header *real, Perseas__CreateRequest *create,
                            Perseas__Roster *roster)
{
	roster->epoch = 0;
	roster->version = 1;
	roster->level = real->roster->level;
	roster->key_hash = real->roster->key_hash;
	create->key = real->key;
	create->log_size = real->log_size;
}

static void forge(struct sim_world *w, struct sim_mirror *m)
{
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member own, *members[2];
	uint8_t id[PS_ID_SIZE] = { 0x66, (uint8_t)sim_below(w, 256) };
	const Perseas__Header *real = some_header(w);
	struct why why;

	if (!real || w->settled->level == 0 || !m->stores || store_find(m->stores, SIM_STORE))
		return;
	roster.members = members;
	fill_roster(w, &roster, &own);
	if (sim_chance(w, 50))
		own.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	create.store = settle.store = (char *)SIM_STORE;
	create.store_id = settle.store_id = real->store_id;
	create.image_id = own.image_id;
	create.log_size = PS_LOG_MIN;
	create.roster = &roster;
	if (sim_mistake_is(w, SIM_MISTAKE_KEYLESS))
		pass_for_holder(real, &create, &roster);
	if (store_create(m->stores, NULL, &create, &why) || store_settle(m->stores, &settle, &why))
		return;
	sim_trace(w, "mirror %u: a stranger makes an image without the key", m->index);
	sim_count(w, SIM_KEYLESS, 1);
	sim_oracle_look(m);
}

static void claim_once(struct sim_world *w, struct sim_mirror *m)
{
	struct session session = { .ops = &gone_session_ops, .peer = "a stranger" };
	struct store *store = m->stores ? store_find(m->stores, SIM_STORE) : NULL;
	struct why why;
	uint64_t promised, epoch;
	int ret;

	if (!store || !store->header || store->damage[0])
		return;
	promised = store->header->promised_epoch;
	epoch = draw_epoch(w, promised);
	ret = claim(m, &session, epoch, &why);
	sim_trace(w, "mirror %u: a stranger claims epoch %llu over %llu: %d", m->index,
	          (unsigned long long)epoch, (unsigned long long)promised, ret);
	sim_count(w, ret ? SIM_JUMPS_REFUSED : SIM_JUMPS, 1);
	if (ret == 0)
		m->granted = epoch;
	if (ret == 0 && epoch - promised > PS_EPOCH_STEP)
		sim_fail(w, "mirror %u grants epoch %llu over %llu", m->index,
		         (unsigned long long)epoch, (unsigned long long)promised);
	store_session_ended(&session);
	sim_oracle_look(m);
}

bool sim_stranger_comes(struct sim_world *w, struct sim_mirror *m)
{
	const unsigned jumps = w->schedule->jumps;
	const bool forges = w->mistake ? sim_mistake_is(w, SIM_MISTAKE_KEYLESS) : w->seed % 5 == 4;

	if (jumps && sim_chance(w, jumps)) {
		claim_once(w, m);
		return true;
	}
	if (!forges || !sim_chance(w, 20))
		return false;
	forge(w, m);
	return true;
}

bool sim_stranger_misled(struct sim_owner *o)
{
	struct sim_world *w = o->world;

	if (o->told || o->handle->roster->level >= sim_rosters_level(w, o->handle->store_id))
		return false;
	sim_trace(w, "owner %u was told of a stranger's image alone", o->index);
	sim_count(w, SIM_KEYLESS_OPENED, 1);
	sim_owner_kill(o, false);
	return true;
}
