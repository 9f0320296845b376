/*
 * claim.c - claims on the mirrors (I5), and the choice of the state (I6).
 */
#include "claim.h"

#include "../keeper/epoch.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "../keeper/roster.h"
#include "../keeper/renew.h"
#include "../host/socket.h"
#include "../../proto/base/text.h"

#include <stdio.h>
#include <string.h>

bool ps_stands_at(const struct ps_mirror *m, const struct ps_standing *at)
{
	return m->found.candidate && m->found.at.epoch == at->epoch && m->found.at.seq == at->seq;
}

/* Above all promises, which ps_probe_judge has looked at. Mirrors that were away for long come
 * nearer first. */
static void take_epoch(struct perseas *p)
{
	p->epoch++;
	p->env->ops->random(p->env, p->owner, sizeof(p->owner));
	if (p->salvage)
		memcpy(p->owner, ps_salvage_mark, sizeof(ps_salvage_mark));
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (ps_has_store(p, m) &&
		    p->epoch - m->found.header->promised_epoch > PS_EPOCH_STEP)
			ps_epoch_approach(p, m, false, false);
	}
}

/* A granted claim: takes note of what it tells, and connects the data path. False: the session
 * broke before that, so another claimed it, or the mirror was restarted. */
static bool granted(struct perseas *p, struct ps_mirror *m, const Perseas__ClaimReply *claim,
                    const int *fds)
{
	const Perseas__Slot *slot = claim->slot;
	Perseas__Header *header = ps_header_copy(claim->header);

	if (!header) {
		ps_close_all(fds, claim->grant->descriptors);
		m->found.code = ps_error_set(&m->found.error, PERSEAS_ENOMEM, "out of memory");
		return true;
	}
	perseas__header__free_unpacked(m->found.header, NULL);
	m->found.header = header;
	memset(&m->found.at, 0, sizeof(m->found.at));
	if (slot)
		m->found.at = (struct ps_standing){ slot->epoch, slot->seq, slot->next, slot->last,
			                            (int)slot->index };
	if (ps_mirror_attach(p, m, claim->grant, fds, &m->found.error)) {
		m->found.code = m->found.error.code;
		ps_report(p, "%s", m->found.error.text);
		return m->found.code != PERSEAS_EUNREACHABLE && m->found.code != PERSEAS_EFENCED;
	}
	m->found.claimed = true;
	ps_report(p, "%s: claimed; it stands at epoch %llu, transaction %llu%s%s%s",
	          m->address.text, (unsigned long long)m->found.at.epoch,
	          (unsigned long long)m->found.at.seq,
	          header->state == PERSEAS__STATE__STATE_CONSISTENT ? "" : ", not whole",
	          claim->undone ? "; an unfinished transaction was rolled back" : "",
	          claim->copied ? "; copied away from an owner that may still live" : "");
	return true;
}

/*
 * A claim that was sent can fence an owner, answered or not: a mirror may be rolling its image
 * back, or copying it away from that owner, for as long as that takes. So those that do not answer
 * in time are given up only where the others are enough; else as long as the open lasts.
 */
static void run_claims(struct perseas *p, struct ps_round *round)
{
	const uint64_t soon = ps_now(p) + ps_ms(p->options.connect_timeout_ms);
	uint32_t answered;

	ps_round_send(p, round);
	answered = ps_round_await(p, round, soon);
	if (ps_quorum_claims(p, answered) || p->opening.until < soon)
		ps_round_receive(p, round, soon);
	else
		ps_round_receive(p, round, p->opening.until);
}

static void refused(struct perseas *p, struct ps_mirror *m, const struct ps_error *error, int *rc)
{
	m->found.error = *error;
	p->opening.unanswered |= error->code == PERSEAS_EUNREACHABLE;
	m->found.code = error->code;
	ps_report(p, "%s", error->text);
	p->opening.rivals |= error->code == PERSEAS_EFENCED;
	if (error->code == PERSEAS_EBUSY)
		*rc = ps_fail_error(p, error);
	else if (error->code == PERSEAS_EFENCED && !*rc)
		*rc = PS_AGAIN;
}

uint32_t ps_claimed(const struct perseas *p)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].found.claimed && p->mirrors[i].found.listed)
			set |= (uint32_t)1 << i;
	return set;
}

int ps_claim(struct perseas *p)
{
	Perseas__ClaimRequest claims[PS_MIRRORS_MAX];
	Perseas__Request requests[PS_MIRRORS_MAX];
	struct ps_round round;
	bool broke = false;
	int rc = 0;

	take_epoch(p);
	ps_report(p, "claiming store '%s' with epoch %llu", p->store, (unsigned long long)p->epoch);
	memset(&round.ask, 0, sizeof(round.ask));
	memset(round.errors, 0, sizeof(round.errors));
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		round.ask[i] = ps_has_store(p, m);
		if (m->found.code)
			ps_report(p, "%s", m->found.error.text);
		else if (!round.ask[i])
			ps_report(p, "%s: has another store of this name; left alone",
			          m->address.text);
		ps_claim_request(p, m, false, &claims[i], &requests[i]);
		round.requests[i] = &requests[i];
	}
	run_claims(p, &round);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		if (round.replies[i]) {
			broke |= !granted(p, &p->mirrors[i], round.replies[i]->claim, round.fds[i]);
			memset(round.fds[i], 0xff, sizeof(round.fds[i]));
		} else if (round.ask[i]) {
			refused(p, &p->mirrors[i], &round.errors[i], &rc);
		}
	}
	ps_round_free(&round);
	/* A claim may have shown a newer roster than the probe. */
	if (!rc)
		rc = ps_probe_roster(p);
	/* Two that claim at the same time can each be left with less than R. */
	return !rc && broke && !ps_quorum_claims(p, ps_claimed(p)) ? PS_AGAIN : rc;
}

uint32_t ps_examine(struct perseas *p, uint32_t set)
{
	struct ps_judgement j = { .store_id = p->store_id };
	struct ps_told told[PS_MIRRORS_MAX];

	ps_probe_told(p, told);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		told[i].out = !(set >> i & 1);
		j.listed |= (uint32_t)p->mirrors[i].found.listed << i;
	}
	ps_judge_state(&j, told, p->mirror_count);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		p->mirrors[i].found.counts = j.counts >> i & 1;
		p->mirrors[i].found.candidate = j.candidates >> i & 1;
	}
	return j.counts;
}

static uint32_t examine_claimed(struct perseas *p)
{
	uint32_t claimed = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_found *f = &p->mirrors[i].found;

		f->good = false;
		claimed |= (uint32_t)f->claimed << i;
		if (f->claimed && !f->listed)
			ps_report(p, "%s: its image is not in the roster, and counts for nothing",
			          p->mirrors[i].address.text);
	}
	return ps_examine(p, claimed);
}

/* Names a roster's members that did not count, and why. */
static size_t add_missing(char *text, size_t size, bool more, const char *address, const char *why)
{
	const size_t around = strlen(address) + sizeof(",  ()");
	char reason[PS_ERROR_TEXT];

	ps_text_format(reason, size > around ? size - around : 1, "%s", why);
	return ps_text_format(text, size, "%s%s (%s)", more ? ", " : "", address, reason);
}

static void missing(const struct perseas *p, const Perseas__Roster *roster, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (size_t k = 0; k < roster->n_members && used < size; k++) {
		const struct ps_mirror *m = NULL;
		const char *why = "not among the mirrors given";

		for (unsigned i = 0; i < p->mirror_count; i++)
			if (p->mirrors[i].known &&
			    ps_id_equal(roster->members[k]->image_id, p->mirrors[i].image_id))
				m = &p->mirrors[i];
		if (m && m->found.counts)
			continue;
		if (m)
			why = m->found.code ? m->found.error.text : "its image is not whole";
		used += add_missing(text + used, (size - used) / (roster->n_members - k), used > 0,
		                    roster->members[k]->address, why);
	}
}

bool ps_accepted(const struct perseas *p, const struct ps_standing *state)
{
	return state->epoch && p->options.accept_seq == state->seq &&
	       (p->options.accept_epoch == state->epoch || p->opening.accepted_as == state->epoch);
}

static bool all_failed(const struct perseas *p, int code)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].found.code != code)
			return false;
	return true;
}

/* Where nothing but damaged images was found, no mirror can be reached over RDMA as was asked for,
 * or by TLS, or none allows it, to wait for more mirrors is of no use. */
static int too_few_code(const struct perseas *p)
{
	static const int useless[] = {
		PERSEAS_EDAMAGED, PERSEAS_ERDMA, PERSEAS_ETLS, PERSEAS_EDENIED, PERSEAS_ELIMIT,
	};

	for (unsigned i = 0; i < sizeof(useless) / sizeof(useless[0]); i++)
		if (all_failed(p, useless[i]))
			return useless[i];
	return PERSEAS_EQUORUM;
}

int ps_too_few(struct perseas *p, uint32_t counted, const struct ps_standing *state)
{
	char names[PS_ERROR_TEXT - 512], newest[120] = "no state was seen";
	const struct ps_quorum *quorum = &p->quorums[0];
	const Perseas__Roster *roster = p->roster;
	const int code = too_few_code(p);

	/* What all mirrors refuse needs no list of them. */
	if (code == PERSEAS_EDENIED || code == PERSEAS_ELIMIT)
		return ps_fail_error(p, &p->mirrors[0].found.error);
	/* Of two rosters, the one that lacks mirrors. */
	if (p->next_roster && ps_quorum_count(p, counted) >= ps_quorum_claimers(p)) {
		quorum = &p->quorums[1];
		roster = p->next_roster;
	}
	missing(p, roster, names, sizeof(names));
	if (state)
		snprintf(newest, sizeof(newest),
		         "the newest state seen is %llu:%llu (epoch:transaction)",
		         (unsigned long long)state->epoch, (unsigned long long)state->seq);
	return ps_fail(p, code,
	               "%u of %u mirrors answered for store '%s' and %u must, to know its newest "
	               "state. Missing: %s. %s",
	               (unsigned)__builtin_popcount(counted & quorum->set), quorum->members,
	               p->store, quorum->members - quorum->acks + 1, names, newest);
}

/* The state is known, and too few hold it or can be mended to it; some have lost their memory. */
static int too_few_hold(struct perseas *p, const struct ps_standing *state, bool lost)
{
	char names[PS_ERROR_TEXT - 512], anew[120] = "";
	unsigned holding = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		holding += p->mirrors[i].found.listed && ps_stands_at(&p->mirrors[i], state);
	missing(p, p->roster, names, sizeof(names));
	if (lost)
		snprintf(anew, sizeof(anew),
		         "; one that lost its memory is made anew only while "
		         "%u others have theirs (I9)",
		         ps_quorum_touches(p));
	return ps_fail(p, PERSEAS_EQUORUM,
	               "%u of %u mirrors hold the newest state of store '%s', and %u must before "
	               "it can be opened%s. It is %llu:%llu (epoch:transaction), no state was "
	               "changed, and perseas recover --onto or --to saves it. Missing: %s",
	               holding, p->members, p->store, p->acks, anew,
	               (unsigned long long)state->epoch, (unsigned long long)state->seq, names);
}

bool ps_empty(const struct perseas *p, const struct ps_mirror *m)
{
	return m->votes && !m->found.listed && m->control &&
	       (ps_has_store(p, m) || m->found.code == PERSEAS_ENOSTORE);
}

/* Those that I9 lets it make anew, with these claimed. */
static uint32_t made_anew(const struct perseas *p, uint32_t claimed, bool *lost)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (!ps_empty(p, m))
			continue;
		*lost = true;
		if (ps_quorum_anew(p, claimed, m))
			set |= ps_bit(p, m);
	}
	return set;
}

int ps_adoptable(struct perseas *p, uint32_t claimed, const struct ps_standing *state)
{
	bool lost = false;
	const uint32_t whole = claimed | made_anew(p, claimed, &lost);

	if (p->next_roster && !ps_quorum_seen(p, claimed))
		return ps_too_few(p, claimed, NULL);
	if (!ps_quorum_claims(p, claimed))
		return ps_quorum_newest(p, whole) ? 0 : too_few_hold(p, state, lost);
	if (p->next_roster && !(p->options.flags & PERSEAS_CANCEL))
		return 0;
	return ps_quorum_touched(p, claimed) ? 0 : too_few_hold(p, state, lost);
}

const struct ps_standing *ps_newest(const struct perseas *p)
{
	struct ps_told told[PS_MIRRORS_MAX];
	uint32_t candidates = 0;
	int newest;

	ps_probe_told(p, told);
	for (unsigned i = 0; i < p->mirror_count; i++)
		candidates |= (uint32_t)p->mirrors[i].found.candidate << i;
	newest = ps_judge_newest(told, candidates);
	return newest < 0 ? NULL : &p->mirrors[newest].found.at;
}

/*
 * Takes back what an owner of before began, and left: none of R of the new roster has the mark, so
 * W of it never had, and never will; and the old roster's R and T are claimed, as for any open of
 * it. The state is the old roster's from here on. *counted are those examined.
 */
static int cancel(struct perseas *p, uint32_t *counted)
{
	int rc;

	if (p->marked)
		return ps_fail(p, PERSEAS_EBUSY,
		               "the change of the roster is decided and cannot be taken back: open "
		               "the store without PERSEAS_CANCEL, which completes it");
	if (!ps_quorum_claims(p, *counted))
		return ps_too_few(p, *counted, ps_newest(p));
	if (!ps_quorum_touched(p, ps_claimed(p)))
		return PS_AGAIN;
	ps_roster_cancel(p);
	ps_report(p, "a change of the roster that was not settled is taken back");
	p->opening.cancelled = true;
	rc = ps_probe_roster(p);
	*counted = examine_claimed(p);
	return rc;
}

int ps_choose(struct perseas *p, struct ps_standing *chosen)
{
	uint32_t counted = examine_claimed(p);
	const struct ps_standing *best;
	bool enough;
	int rc = p->next_roster && p->options.flags & PERSEAS_CANCEL ? cancel(p, &counted) : 0;

	if (rc)
		return rc;
	enough = ps_quorum_claims(p, counted);
	best = ps_newest(p);

	memset(chosen, 0, sizeof(*chosen));
	if (best)
		*chosen = *best;
	if (!best || (!enough && !ps_accepted(p, chosen)))
		return ps_too_few(p, counted, best ? chosen : NULL);
	ps_report(p, "chosen: epoch %llu, transaction %llu, the newest of %u examined (R = %u%s)",
	          (unsigned long long)chosen->epoch, (unsigned long long)chosen->seq,
	          ps_quorum_count(p, counted), ps_quorum_claimers(p),
	          enough ? "" : "; fewer, and accepted as asked");
	return 0;
}

/* R of those examined, and all that were adopted, must still be claimed over sessions that never
 * broke. One that broke means that another claimed it, or that it lost what it had. */
int ps_confirm(struct perseas *p)
{
	uint32_t claimed = 0, broken;
	int rc = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		claimed |= (uint32_t)p->mirrors[i].found.claimed << i;
	broken = claimed & ~ps_confirmed(p, claimed);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (broken >> i & 1 || (m->found.claimed && m->found.good && !m->link)) {
			ps_report(p, "%s: its session broke before the store was open",
			          m->address.text);
			rc = PS_AGAIN;
		}
	}
	return rc;
}

bool ps_claim_stands(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error error = { 0 };
	Perseas__ClaimRequest claim;
	Perseas__Request request;
	Perseas__Reply *reply;
	bool same;

	ps_mirror_disconnect(p, m);
	m->control = p->env->ops->connect(p->env, &m->address, &error);
	ps_claim_request(p, m, true, &claim, &request);
	/* Its memory is of no use until the keeper takes it up. */
	claim.shared = claim.rdma = false;
	if (ps_ask(p, m, &request, ps_answer_by(p), &reply, NULL, &error)) {
		ps_report(p, "%s", error.text);
		return false;
	}
	same = (m->found.header &&
	        ps_id_equal(reply->claim->header->image_id, m->found.header->image_id.data)) ||
	       ps_id_equal(reply->claim->header->image_id, m->image_id);
	perseas__reply__free_unpacked(reply, NULL);
	return same;
}
