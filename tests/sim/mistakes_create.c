/*
 * mistakes_create.c - faults of creators that meet: made in what a mirror does before it handles
 * Create, and in what creators send and are told. mistakes.c calls these from its own hooks; they
 * do nothing for any other mistake.
 */
#include "mistakes.h"

#include "../../server/store/store_private.h"
#include "fabric_sim.h"
#include "mirror.h"

static bool is(const struct sim_owner *o, enum sim_mistake mistake)
{
	return sim_mistake_is(o->world, mistake);
}

bool sim_mistake_creates(const struct sim_world *w)
{
	switch ((enum sim_mistake)w->mistake) {
	case SIM_MISTAKE_REPLACED:
	case SIM_MISTAKE_NOT_FIRST:
	case SIM_MISTAKE_UNDECIDED:
	case SIM_MISTAKE_UNANSWERED:
		return true;
	default:
		return false;
	}
}

/* The mistake, which mirrors once made: a new creation replaces an image in state creating. */
void sim_mistake_replace(struct ps_control *control, const struct sim_message *message)
{
	struct sim_mirror *m = control->mirror;
	struct store *store = m->stores ? store_find(m->stores, SIM_STORE) : NULL;
	Perseas__AbandonRequest abandon = PERSEAS__ABANDON_REQUEST__INIT;
	struct why why;

	if (!is(control->owner, SIM_MISTAKE_REPLACED) || !store || !store->header ||
	    message->a != PERSEAS__REQUEST__BODY_CREATE)
		return;
	abandon.store = store->name;
	abandon.store_id = store->header->store_id;
	store_abandon(m->stores, &abandon, &why);
}

static bool is_own(const struct sim_owner *o, ProtobufCBinaryData id)
{
	return ps_id_equal(id, o->making);
}

bool sim_mistake_create_request(struct ps_control *control, const Perseas__Request *request)
{
	struct sim_owner *o = control->owner;

	if (request->body_case == PERSEAS__REQUEST__BODY_CREATE) {
		memcpy(o->making, request->create->store_id.data, PS_ID_SIZE);
		o->decided = false;
	}
	if (request->body_case != PERSEAS__REQUEST__BODY_SETTLE || o->decided ||
	    !is_own(o, request->settle->store_id) || !is(o, SIM_MISTAKE_UNDECIDED))
		return false;
	o->decided = true;
	return true;
}

bool sim_mistake_settled(const struct ps_control *control, const Perseas__Reply *reply)
{
	return control->asked == PERSEAS__REQUEST__BODY_SETTLE &&
	       reply->status != PERSEAS__STATUS__STATUS_OK &&
	       is(control->owner, SIM_MISTAKE_REPLACED);
}
