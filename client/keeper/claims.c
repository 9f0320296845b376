/*
 * claims.c - see claims.h. Only this file claims several mirrors at a time, and so can fence an
 * owner. It does not decide whether to claim, nor what the answers are worth: open/claim.c and
 * renew.c do.
 */
#include "claims.h"

#include "epoch.h"
#include "../core/quorum.h"
#include "rpc.h"
#include "../host/socket.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void ps_probe_result_clear(struct ps_mirror *m)
{
	if (m->probe.header)
		perseas__header__free_unpacked(m->probe.header, NULL);
	memset(&m->probe, 0, sizeof(m->probe));
}

static void note_shown_image(struct ps_mirror *m, const Perseas__Header *header,
                             const Perseas__Slot *slot)
{
	struct ps_probe_result *f = &m->probe;

	if (f->header)
		perseas__header__free_unpacked(f->header, NULL);
	f->header = ps_header_copy(header);
	if (!f->header)
		f->code = ps_error_set(&f->error, PERSEAS_ENOMEM, "out of memory");
	memset(&f->position, 0, sizeof(f->position));
	if (slot)
		f->position = (struct ps_image_position){ slot->epoch, slot->seq, slot->next,
			                                  slot->last, (int)slot->index };
}

void ps_probe_result_set(struct ps_mirror *m, const Perseas__Reply *reply,
                         const struct ps_error *error)
{
	const Perseas__StoreStatus *status = reply ? reply->store->status : NULL;

	m->probe.error = *error;
	m->probe.code = error->code;
	if (!status)
		return;
	note_shown_image(m, status->header, status->slot);
	m->probe.has_owner = status->live;
	snprintf(m->probe.owner_address, sizeof(m->probe.owner_address), "%s",
	         status->owner_address);
}

struct ps_probe_sets ps_probe_sets(const struct perseas *p)
{
	struct ps_probe_sets n = { 0 };

	assert(p->mirror_count <= PS_MIRRORS_MAX);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		n.showed_image_set |= (uint32_t)!m->probe.code << i;
		n.linked_set |= (uint32_t)(m->control && m->link) << i;
		n.claimed_set |= (uint32_t)m->probe.is_claimed << i;
		n.listed_set |= (uint32_t)m->probe.is_listed << i;
		n.counted_set |= (uint32_t)m->probe.counts_for_r << i;
		n.candidate_set |= (uint32_t)m->probe.is_candidate << i;
		n.adopted_set |= (uint32_t)m->probe.is_adopted << i;
		n.broken_session_set |= (uint32_t)m->probe.has_broken_session << i;
	}
	return n;
}

uint32_t ps_claimed_and_listed(const struct perseas *p)
{
	const struct ps_probe_sets n = ps_probe_sets(p);

	return n.claimed_set & n.listed_set;
}

void ps_fill_what_mirrors_told(const struct perseas *p, struct ps_told told[PS_MIRRORS_MAX])
{
	memset(told, 0, PS_MIRRORS_MAX * sizeof(*told));
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		told[i].header = m->probe.header;
		told[i].has_no_image = m->probe.code == PERSEAS_ENOSTORE;
		told[i].is_excluded = m->probe.code != 0;
		/* If the image has no slot, the claim will report that it is damaged. */
		told[i].has_slot = true;
		told[i].epoch = m->probe.position.epoch;
		told[i].seq = m->probe.position.seq;
		told[i].from_roster = m->is_from_roster;
		told[i].daemon = ps_known_daemon_id(m->daemon_id);
		/* On another host the same socket path may lead to another mirror. */
		if (!m->is_from_roster || m->address.scheme != PS_SCHEME_UNIX)
			told[i].address = m->address.text;
	}
}

uint32_t ps_judge_images(struct perseas *p, uint32_t set)
{
	struct ps_judgement j = { .store_id = p->store_id,
		                  .naming_roster = p->roster,
		                  .member_set = ps_probe_sets(p).listed_set };
	struct ps_told told[PS_MIRRORS_MAX];

	ps_fill_what_mirrors_told(p, told);
	for (unsigned i = 0; i < p->mirror_count; i++)
		told[i].is_excluded = !(set >> i & 1);
	ps_judge_state(&j, told, p->mirror_count);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		p->mirrors[i].probe.counts_for_r = j.counted_set >> i & 1;
		p->mirrors[i].probe.is_candidate = j.candidate_set >> i & 1;
	}
	return j.counted_set;
}

bool ps_candidate_is_at(const struct ps_mirror *m, const struct ps_image_position *at)
{
	return m->probe.is_candidate && m->probe.position.epoch == at->epoch &&
	       m->probe.position.seq == at->seq;
}

bool ps_state_is_accepted(const struct perseas *p, const struct ps_image_position *state)
{
	return state->epoch && p->options.accept_seq == state->seq &&
	       (p->options.accept_epoch == state->epoch ||
	        p->opening.accepted_state_epoch == state->epoch);
}

/* Sends the claims and waits for the answers. A sent claim can fence an owner even without an
 * answer: the mirror may still be rolling its image back or copying it away. So slow mirrors are
 * given up only if the others are R, or when the open times out. */
static void await_claims(struct perseas *p, struct ps_round *round, uint64_t timeout_ns)
{
	const uint64_t soon = ps_now(p) + timeout_ns;
	uint64_t until = soon;

	ps_round_send(p, round);
	if (!ps_quorum_is_r(p, ps_round_await(p, round, soon, false)) && p->opening.deadline > soon)
		until = p->opening.deadline;
	ps_round_await(p, round, until, true);
	ps_round_receive(p, round, until);
}

/* Notes the image of a granted claim, and attaches the data path. */
static void note_grant_and_attach(struct perseas *p, struct ps_mirror *m,
                                  const Perseas__ClaimReply *claim, int *fds)
{
	struct ps_probe_result *f = &m->probe;

	note_shown_image(m, claim->header, claim->slot);
	if (f->code)
		ps_close_all(fds, claim->grant->descriptors);
	else
		f->code = ps_mirror_attach(p, m, claim->grant, fds, &f->error);
	memset(fds, 0xff, PS_REGIONS_MAX * sizeof(*fds));
	f->is_claimed = !f->code;
}

void ps_claims_send_and_await(struct perseas *p, uint32_t set, uint64_t timeout_ns,
                              struct ps_round *round)
{
	Perseas__ClaimRequest claims[PS_MIRRORS_MAX];
	Perseas__Request requests[PS_MIRRORS_MAX];

	p->opening.highest_epoch = p->epoch++;
	memset(round->errors, 0, sizeof(round->errors));
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		round->is_asked[i] = set >> i & 1;
		if (!round->is_asked[i])
			continue;
		/* A mirror that was away for long approaches the epoch first. */
		if (p->epoch - m->probe.header->promised_epoch > PS_EPOCH_STEP)
			ps_epoch_claim_in_steps(p, m, false);
		ps_claim_fill_request(p, m, &claims[i], &requests[i]);
		round->requests[i] = &requests[i];
	}
	await_claims(p, round, timeout_ns);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (round->replies[i]) {
			note_grant_and_attach(p, m, round->replies[i]->claim, round->fds[i]);
		} else if (round->is_asked[i]) {
			m->probe.error = round->errors[i];
			m->probe.code = round->errors[i].code;
		}
	}
}

uint32_t ps_claims_ask_and_find_lost(struct perseas *p, uint32_t set)
{
	uint32_t broken = set & ~ps_await_claim_confirmations(p, set);

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->probe.is_claimed && m->probe.is_adopted && !m->link)
			broken |= ps_mirror_bit(p, m);
	}
	return broken;
}
