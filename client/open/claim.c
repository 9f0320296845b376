/*
 * claim.c - claims mirrors (I5), and checks that the claims still hold (I6). No other file of this
 * room can fence an owner. It must never raise an epoch for an open that the probe has refused.
 */
#include "claim.h"

#include "../keeper/attempt.h"
#include "../keeper/claims.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "examine.h"
#include "../keeper/renew.h"
#include "probe.h"
#include "../keeper/rpc.h"
#include "../keeper/session.h"

#include <string.h>

static void draw_owner_id(struct perseas *p)
{
	p->env->ops->random(p->env, p->owner, sizeof(p->owner));
	if (p->env->has_owner_mark)
		memcpy(p->owner, p->env->owner_mark, sizeof(p->env->owner_mark));
	if (p->is_salvage)
		memcpy(p->owner, ps_salvage_mark, sizeof(ps_salvage_mark));
}

/* Reports a granted claim. Sets *session_broke to true if the session broke before the data path
 * was up: another owner may have claimed the mirror, or the mirror may have been restarted. */
static void report_granted_claim(struct perseas *p, const struct ps_mirror *m,
                                 const Perseas__ClaimReply *claim, bool *session_broke)
{
	if (!m->probe.is_claimed) {
		ps_report_add_line(p, "%s", m->probe.error.text);
		*session_broke |= m->probe.code == PERSEAS_EUNREACHABLE ||
		                  m->probe.code == PERSEAS_EFENCED;
		return;
	}
	ps_report_add_line(p, "%s: claimed; it stands at epoch %llu, transaction %llu%s%s%s",
	                   m->address.text, (unsigned long long)m->probe.position.epoch,
	                   (unsigned long long)m->probe.position.seq,
	                   claim->header->state == PERSEAS__STATE__STATE_CONSISTENT ? ""
	                                                                            : ", not whole",
	                   claim->undone ? "; an unfinished transaction was rolled back" : "",
	                   claim->copied ? "; copied away from an owner that may still live" : "");
}

/* Reports a claim that failed. Returns 0 if the attempt goes on without the mirror, PS_AGAIN, or an
 * error code. */
static int report_refused_claim(struct perseas *p, const struct ps_mirror *m)
{
	const int code = m->probe.code;

	ps_report_add_line(p, "%s", m->probe.error.text);
	p->opening.has_unanswered_claim |= code == PERSEAS_EUNREACHABLE;
	p->opening.saw_rivals |= code == PERSEAS_EFENCED;
	if (code == PERSEAS_EBUSY)
		return ps_fail_error(p, &m->probe.error);
	return code == PERSEAS_EFENCED ? PS_AGAIN : 0;
}

/* Takes the store's key from a claimed image. While a store is being raised to level 1, only images
 * on which the change is recorded have the key. */
static int take_store_key(struct perseas *p)
{
	if (ps_store_level(p->roster, p->next_roster) == 0 || p->is_salvage ||
	    !ps_quorum_is_r(p, ps_claimed_and_listed(p)))
		return 0;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (!m->probe.is_claimed ||
		    ps_key_fault(m->probe.header->key, m->probe.header->store_id, p->roster,
		                 p->next_roster))
			continue;
		memcpy(p->key, m->probe.header->key.data, PS_KEY_SIZE);
		return 0;
	}
	return ps_fail(p, PERSEAS_EQUORUM,
	               "store '%s' is of level 1, or is being raised to it, and no mirror that "
	               "could be claimed has its key: start the other mirrors",
	               p->store);
}

/* Returns the mirrors that have the store. Reports for each other mirror why it is not claimed. */
static uint32_t find_claimable_mirrors(struct perseas *p)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (ps_has_store(p, m))
			set |= (uint32_t)1 << i;
		else if (m->probe.code)
			ps_report_add_line(p, "%s", m->probe.error.text);
		else
			ps_report_add_line(p, "%s: has another store of this name; left alone",
			                   m->address.text);
	}
	return set;
}

int ps_claim_store(struct perseas *p)
{
	struct ps_round round;
	bool session_broke = false;
	int rc = 0;

	draw_owner_id(p);
	ps_report_add_line(p, "claiming store '%s' with epoch %llu", p->store,
	                   (unsigned long long)p->epoch + 1);
	ps_claims_send_and_await(p, find_claimable_mirrors(p), ps_ms(p->options.connect_timeout_ms),
	                         &round);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];
		int refused = 0;

		if (round.replies[i])
			report_granted_claim(p, m, round.replies[i]->claim, &session_broke);
		else if (round.is_asked[i])
			refused = report_refused_claim(p, m);
		if (refused < 0 || !rc)
			rc = refused;
	}
	ps_round_free(&round);
	/* A claim may show a newer roster than the probe. */
	if (!rc)
		rc = ps_probe_find_rosters(p);
	if (!rc)
		rc = take_store_key(p);
	/* Two owners that claim at the same time can both end up with fewer than R claims. */
	return !rc && session_broke && !ps_quorum_is_r(p, ps_claimed_and_listed(p)) ? PS_AGAIN : rc;
}

int ps_check_claims_still_held(struct perseas *p)
{
	const uint32_t broken = ps_claims_ask_and_find_lost(p, ps_probe_sets(p).claimed_set);

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (broken >> i & 1)
			ps_report_add_line(p, "%s: its session broke before the store was open",
			                   p->mirrors[i].address.text);
	return broken ? PS_AGAIN : 0;
}

/* Returns true if the header is of the image that this attempt examined, or that this owner made
 * anew since then. */
static bool has_examined_image_id(const struct ps_mirror *m, const Perseas__Header *header)
{
	return (m->probe.header && ps_id_equal(header->image_id, m->probe.header->image_id.data)) ||
	       ps_id_equal(header->image_id, m->image_id);
}

/* Connects again. Returns true if the mirror still shows the examined image; its address may lead
 * to another daemon now. */
static bool reconnect_to_examined_image(struct perseas *p, struct ps_mirror *m,
                                        struct ps_error *error)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &ask);
	Perseas__Reply *reply;
	bool same;

	ps_mirror_disconnect(p, m);
	m->control = p->env->ops->connect(p->env, &m->address, error);
	ask.store = p->store;
	if (ps_ask_mirror_and_wait(p, m, &request, ps_answer_deadline(p), &reply, NULL, error))
		return false;
	same = has_examined_image_id(m, reply->store->status->header);
	perseas__reply__free_unpacked(reply, NULL);
	return same;
}

bool ps_claim_repeat(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error error = { 0 };
	Perseas__ClaimRequest claim;
	Perseas__Request request;
	Perseas__Reply *reply;
	bool same;

	if (!reconnect_to_examined_image(p, m, &error)) {
		ps_report_add_line(p, "%s", *error.text ? error.text : "it has another image now");
		return false;
	}
	ps_claim_fill_request(p, m, &claim, &request);
	claim.quiesced = true;
	/* No data path is needed: the keeper connects one later. */
	claim.shared = claim.rdma = false;
	if (ps_ask_mirror_and_wait(p, m, &request, ps_answer_deadline(p), &reply, NULL, &error)) {
		ps_report_add_line(p, "%s", error.text);
		return false;
	}
	same = has_examined_image_id(m, reply->claim->header);
	perseas__reply__free_unpacked(reply, NULL);
	return same;
}
