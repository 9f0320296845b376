/*
 * claim.c - claims on the mirrors (I5), and the choice of the state (I6).
 */
#include "claim.h"

#include "mirror.h"
#include "quorum.h"
#include "socket.h"

#include <stdio.h>
#include <string.h>

bool ps_stands_at(const struct ps_mirror *m, const struct ps_standing *at)
{
	return m->found.candidate && m->found.at.epoch == at->epoch && m->found.at.seq == at->seq;
}

static bool same_store(const struct perseas *p, const struct ps_mirror *m)
{
	return !m->found.code && m->found.header &&
	       ps_id_equal(m->found.header->store_id, p->store_id);
}

static void choose_epoch(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (same_store(p, m) && m->found.header->promised_epoch > p->epoch)
			p->epoch = m->found.header->promised_epoch;
	}
	p->epoch++;
	p->env->ops->random(p->env, p->owner, sizeof(p->owner));
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

static void refused(struct perseas *p, struct ps_mirror *m, const struct ps_error *error, int *rc)
{
	m->found.error = *error;
	m->found.code = error->code;
	ps_report(p, "%s", error->text);
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

	choose_epoch(p);
	ps_report(p, "claiming store '%s' with epoch %llu", p->store, (unsigned long long)p->epoch);
	memset(&round.ask, 0, sizeof(round.ask));
	memset(round.errors, 0, sizeof(round.errors));
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		round.ask[i] = same_store(p, m);
		if (m->found.code)
			ps_report(p, "%s", m->found.error.text);
		else if (!round.ask[i])
			ps_report(p, "%s: has another store of this name; left alone",
			          m->address.text);
		ps_claim_request(p, m, false, &claims[i], &requests[i]);
		round.requests[i] = &requests[i];
	}
	ps_round_run(p, &round, ps_now(p) + ps_ms(p->options.connect_timeout_ms));
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

/* What each claimed image is worth: a candidate for the state, a voice towards R, or nothing. */
static uint32_t examine(struct perseas *p)
{
	uint32_t counted = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_found *f = &p->mirrors[i].found;

		f->counts = f->candidate = f->good = false;
		if (!f->claimed)
			continue;
		if (!f->listed) {
			ps_report(p, "%s: its image is not in the roster, and counts for nothing",
			          p->mirrors[i].address.text);
			continue;
		}
		f->candidate = f->header->state == PERSEAS__STATE__STATE_CONSISTENT;
		f->counts = f->candidate || (f->header->state == PERSEAS__STATE__STATE_JOINING &&
		                             f->header->harmless);
		counted |= (uint32_t)f->counts << i;
	}
	return counted;
}

/* Names a roster's members that did not count, and why. */
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
		used += (size_t)snprintf(text + used, size - used, "%s%s (%.120s)",
		                         used ? ", " : "", roster->members[k]->address, why);
	}
}

bool ps_accepted(const struct perseas *p, const struct ps_standing *state)
{
	return state->epoch && p->options.accept_seq == state->seq &&
	       (p->options.accept_epoch == state->epoch || p->accepted_as == state->epoch);
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
	char names[450], newest[120] = "no state was seen";
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
	char names[450], anew[120] = "";
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
	       (same_store(p, m) || m->found.code == PERSEAS_ENOSTORE);
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
	return p->next_roster || ps_quorum_touched(p, claimed) ? 0 : too_few_hold(p, state, lost);
}

const struct ps_standing *ps_newest(const struct perseas *p)
{
	const struct ps_standing *best = NULL;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_found *f = &p->mirrors[i].found;

		if (f->candidate && (!best || f->at.epoch > best->epoch ||
		                     (f->at.epoch == best->epoch && f->at.seq > best->seq)))
			best = &f->at;
	}
	return best;
}

int ps_choose(struct perseas *p, struct ps_standing *chosen)
{
	const uint32_t counted = examine(p);
	const bool enough = ps_quorum_claims(p, counted);
	const struct ps_standing *best = ps_newest(p);

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
