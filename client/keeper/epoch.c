/*
 * epoch.c - chooses the epoch of a claimer and brings mirrors close to it. The steps of an open and
 * the keeper call this. A mirror grants no epoch far above its promise (I5), so that no client can
 * use up the numbers. This must never choose an epoch that mirrors cannot follow: otherwise one
 * mirror with a corrupt promise would make all others unusable.
 */
#include "epoch.h"

#include "../core/mirror.h"
#include "../core/quorum.h"
#include "rpc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns true if R mirrors can grant a claim just above this promise. Mirrors that promised less
 * approach it in steps. */
static bool can_r_mirrors_grant_above(const struct perseas *p, uint64_t promised)
{
	uint32_t near = 0;

	if (promised >= PS_EPOCH_MAX)
		return false;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];
		const uint64_t its = ps_has_store(p, m) ? m->probe.header->promised_epoch : 0;

		if (m->probe.is_listed && ps_has_store(p, m) &&
		    (its >= promised || promised - its < PS_EPOCH_REACH))
			near |= ps_mirror_bit(p, m);
	}
	return ps_quorum_is_r(p, near);
}

/* Returns the highest promise that R mirrors can follow, with *enough set. If there is none,
 * returns the highest valid promise: an operator may have accepted fewer mirrors than R. */
static uint64_t highest_followable_promise(const struct perseas *p, bool *enough)
{
	uint64_t reached = 0, usable = 0;

	*enough = false;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		uint64_t its;

		if (!ps_has_store(p, &p->mirrors[i]))
			continue;
		its = p->mirrors[i].probe.header->promised_epoch;
		if (its < PS_EPOCH_MAX && its > usable)
			usable = its;
		if (!can_r_mirrors_grant_above(p, its))
			continue;
		*enough = true;
		if (its > reached)
			reached = its;
	}
	return *enough ? reached : usable;
}

unsigned ps_epoch_raise_to_promises(struct perseas *p)
{
	bool enough;
	const uint64_t most = highest_followable_promise(p, &enough);
	unsigned left_out = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!ps_has_store(p, m) || m->probe.header->promised_epoch <= most)
			continue;
		m->probe.code = ps_error_set(
			&m->probe.error, PERSEAS_ELIMIT,
			"%s: it promised epoch %llu, which no claim can follow; %s",
			m->address.text, (unsigned long long)m->probe.header->promised_epoch,
			enough ? "drop this image, and the owner makes it anew"
			       : "perseas recover --help says how the store is saved");
		left_out++;
	}
	if (p->epoch < most)
		p->epoch = most;
	return left_out;
}

/* Asks for the mirror's present promise. Returns 0 with error->code set on failure. */
static uint64_t ask_promise(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &ask);
	Perseas__Reply *reply;
	uint64_t promised;

	ask.store = p->store;
	if (ps_ask_mirror_and_wait(p, m, &request, ps_answer_deadline(p), &reply, NULL, error))
		return 0;
	promised = reply->store->status->header->promised_epoch;
	perseas__reply__free_unpacked(reply, NULL);
	return promised;
}

/* Claims the mirror under this epoch, on the way to a higher one. Asks for no access to memory,
 * because this grant is not used. */
static int claim_intermediate_epoch(struct perseas *p, struct ps_mirror *m, uint64_t epoch,
                                    bool takeover, struct ps_error *error)
{
	Perseas__ClaimRequest claim;
	Perseas__Request request;
	Perseas__Reply *reply;
	int rc;

	ps_claim_fill_request(p, m, &claim, &request);
	claim.epoch = epoch;
	claim.takeover |= takeover;
	claim.shared = claim.rdma = false;
	rc = ps_ask_mirror_and_wait(p, m, &request, ps_answer_deadline(p), &reply, NULL, error);
	if (!rc)
		perseas__reply__free_unpacked(reply, NULL);
	return rc;
}

void ps_epoch_claim_in_steps(struct perseas *p, struct ps_mirror *m, bool takeover)
{
	struct ps_error error = { 0 };
	uint64_t at = ask_promise(p, m, &error);

	if (error.code || at >= p->epoch || p->epoch - at > PS_EPOCH_REACH)
		return;
	while (p->epoch - at > PS_EPOCH_STEP) {
		at += PS_EPOCH_STEP;
		if (claim_intermediate_epoch(p, m, at, takeover, &error))
			return;
	}
}
