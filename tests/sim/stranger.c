/*
 * stranger.c - claims by somebody who owns nothing, with epochs at their limits. The schedule lets
 * it come; it must never get an epoch that owners cannot follow.
 */
#include "stranger.h"

#include "../../server/store/store_private.h"
#include "mirror.h"
#include "mistakes.h"
#include "oracle.h"

static void cut_nothing(struct session *session)
{
	(void)session;
}

static bool writes_nothing(struct session *session)
{
	(void)session;
	return false;
}

static const struct session_ops stranger_ops = {
	.cut = cut_nothing,
	.may_write = writes_nothing,
};

/* Those that are granted, and those that are not. */
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

void sim_stranger_claim(struct sim_world *w, struct sim_mirror *m)
{
	struct session session = { .ops = &stranger_ops, .peer = "a stranger" };
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
