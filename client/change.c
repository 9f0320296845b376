#include "change.h"

#include "event.h"
#include "mirror.h"
#include "quorum.h"
#include "resync.h"
#include "roster.h"

#include <stdio.h>
#include <string.h>

#define PATIENCE ps_ms(10000) /* with a new mirror that cannot be copied to */
#define AGAIN ps_ms(500)      /* mirrors that did not take a roster are told again */

/* It is over. A refusal has changed nothing: the new mirror had no vote. */
static int over(struct perseas *p, int code, const char *text)
{
	struct ps_change *c = &p->change;

	if (code && c->new) {
		ps_mirror_disconnect(p, c->new);
		pthread_mutex_lock(&p->lock);
		c->new->joins = false;
		ps_mirror_move(p, c->new, PERSEAS_MIRROR_REMOVED, "it did not join the roster");
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_lock(&p->lock);
	c->stage = PS_CHANGE_NONE;
	c->code = code;
	snprintf(c->text, sizeof(c->text), "%.255s", text);
	if (!code)
		ps_event(p, PERSEAS_EVENT_ROSTER, p->seq, c->new ? c->new : c->old,
		         "the roster has %u mirrors now, W = %u", p->members, p->acks);
	ps_progress(p);
	pthread_mutex_unlock(&p->lock);
	p->pulse_at = 0;
	return code;
}

static void say(struct perseas *p, enum ps_change_stage stage, const char *text)
{
	struct ps_change *c = &p->change;

	pthread_mutex_lock(&p->lock);
	c->stage = stage;
	snprintf(c->text, sizeof(c->text), "%s", text);
	pthread_mutex_unlock(&p->lock);
}

static struct ps_mirror *member_at(struct perseas *p, const char *address)
{
	for (size_t k = 0; k < p->roster->n_members; k++) {
		const Perseas__Member *member = p->roster->members[k];

		for (unsigned i = 0; i < p->mirror_count; i++) {
			struct ps_mirror *m = &p->mirrors[i];

			if (m->votes && ps_id_equal(member->image_id, m->image_id) &&
			    (!strcmp(member->address, address) ||
			     !strcmp(m->address.text, address)))
				return m;
		}
	}
	return NULL;
}

/* A member that is not among the handle's mirrors can leave the roster all the same. */
static const Perseas__Member *listed_at(const struct perseas *p, const char *address)
{
	for (size_t k = 0; k < p->roster->n_members; k++)
		if (!strcmp(p->roster->members[k]->address, address))
			return p->roster->members[k];
	return NULL;
}

/* The member's image, as the roster lists it now; NULL: it is not there. */
static const uint8_t *leaving(struct perseas *p)
{
	const struct ps_change *c = &p->change;
	const Perseas__Member *member = listed_at(p, c->address);

	if (c->old)
		return c->old->image_id;
	return member ? member->image_id.data : NULL;
}

static int take_out(struct perseas *p, const char *address, bool gone)
{
	struct ps_change *c = &p->change;

	c->leaves = true;
	c->gone = gone;
	snprintf(c->address, sizeof(c->address), "%.255s", address);
	c->old = member_at(p, address);
	if (leaving(p))
		return 0;
	snprintf(c->text, sizeof(c->text),
	         "the roster has no mirror %.150s: perseas roster shows it", address);
	return PERSEAS_EINVAL;
}

/* The new mirror gets a place here; the keeper will copy to it. */
static int bring_in(struct perseas *p, const char *text)
{
	struct ps_change *c = &p->change;
	struct ps_address address;
	struct ps_error error = { 0 };

	if (ps_address_parse(text, &address, &error)) {
		snprintf(c->text, sizeof(c->text), "%.250s", error.text);
		return error.code;
	}
	if (member_at(p, address.text) || listed_at(p, address.text)) {
		snprintf(c->text, sizeof(c->text), "%.150s is in the roster already", address.text);
		return PERSEAS_EINVAL;
	}
	pthread_mutex_lock(&p->lock);
	c->new = ps_mirror_add(p, &address);
	if (c->new) {
		c->new->joins = c->new->known = true;
		p->env->ops->random(p->env, c->new->image_id, PS_ID_SIZE);
		ps_quorum_renew(p);
	}
	pthread_mutex_unlock(&p->lock);
	if (c->new)
		return 0;
	snprintf(c->text, sizeof(c->text), "a store has 16 mirrors at most");
	return PERSEAS_ELIMIT;
}

/* How many members there will be, and W. */
static int check_size(struct perseas *p, const struct perseas_roster_change *wanted)
{
	struct ps_change *c = &p->change;
	const bool joins = wanted->kind != PERSEAS_ROSTER_REMOVE;
	const unsigned members = p->members + joins - c->leaves;

	if (!members || wanted->acks > members) {
		snprintf(c->text, sizeof(c->text),
		         members ? "%u mirrors cannot give %u acknowledgements"
		                 : "a store needs a mirror: replace the only one instead",
		         members, wanted->acks);
		return PERSEAS_EINVAL;
	}
	c->acks = wanted->acks ? wanted->acks : p->acks;
	if (c->acks > members)
		c->acks = members / 2 + 1;
	return 0;
}

static int prepare(struct perseas *p, const struct perseas_roster_change *wanted)
{
	int rc = 0;

	if (wanted->kind != PERSEAS_ROSTER_ADD)
		rc = take_out(p, wanted->address, wanted->gone);
	if (!rc)
		rc = check_size(p, wanted);
	if (!rc && wanted->kind != PERSEAS_ROSTER_REMOVE)
		rc = bring_in(p, wanted->with);
	return rc;
}

int ps_change_begin(struct perseas *p, const struct perseas_roster_change *wanted,
                    const uint8_t *id)
{
	struct ps_change *c = &p->change;
	int rc;

	memset(c, 0, sizeof(*c));
	if (id)
		memcpy(c->id, id, PS_ID_SIZE);
	if (wanted->kind < PERSEAS_ROSTER_ADD || wanted->kind > PERSEAS_ROSTER_REPLACE ||
	    (wanted->kind != PERSEAS_ROSTER_ADD && !wanted->address) ||
	    (wanted->kind != PERSEAS_ROSTER_REMOVE && !wanted->with))
		return over(p, PERSEAS_EINVAL, "a change adds, removes or replaces a mirror");
	rc = prepare(p, wanted);
	if (rc) {
		char text[sizeof(c->text)];

		memcpy(text, c->text, sizeof(text));
		return over(p, rc, text);
	}
	c->until = ps_now(p) + PATIENCE;
	say(p, PS_CHANGE_COPYING, "the new mirror is being copied");
	return 0;
}

/* The roster that the change leads to, from the one that is there now; NULL: out of memory. */
static Perseas__Roster *changed_roster(struct perseas *p)
{
	const struct ps_change *c = &p->change;
	Perseas__Roster *roster = ps_roster_copy(p->roster);

	if (!roster)
		return NULL;
	if (c->new && !ps_roster_add(roster, c->new->address.text, c->new->image_id)) {
		ps_roster_free(&roster);
		return NULL;
	}
	if (c->leaves && leaving(p))
		ps_roster_remove(roster, leaving(p));
	roster->acks = c->acks;
	roster->epoch = p->epoch;
	roster->version = p->roster->version + 1;
	return roster;
}

static uint32_t connected(struct perseas *p)
{
	uint32_t set = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].active && p->mirrors[i].control)
			set |= (uint32_t)1 << i;
	pthread_mutex_unlock(&p->lock);
	return set;
}

/* Those of the old roster that can be told of the change; who is gone need not be. */
static uint32_t reach(struct perseas *p, uint32_t told)
{
	const struct ps_change *c = &p->change;

	/* Not of one that is alone: nobody could tell then that this owner was not fenced there. */
	return c->gone && c->old && p->members > 1 ? told | ps_bit(p, c->old) : told;
}

/* Both rosters count from here on, before any mirror is told. */
static void make_joint(struct perseas *p)
{
	struct ps_change *c = &p->change;
	Perseas__Roster *roster;

	if (!ps_quorum_seen(p, reach(p, connected(p)))) {
		over(p, PERSEAS_EQUORUM,
		     "too few mirrors of the roster are connected for a change to be seen by every "
		     "later open: start them, or say that the one that leaves is gone for good");
		return;
	}
	roster = changed_roster(p);
	if (!roster) {
		over(p, PERSEAS_ENOMEM, "out of memory");
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->next_roster = roster;
	c->seq = p->seq;
	ps_quorum_renew(p);
	pthread_mutex_unlock(&p->lock);
	say(p, PS_CHANGE_JOINT, "both rosters count until the change is recorded");
}

static void copying(struct perseas *p, uint64_t now)
{
	struct ps_change *c = &p->change;
	char text[sizeof(c->new->trouble)];
	enum perseas_mirror_state state;
	uint64_t done, total;

	pthread_mutex_lock(&p->lock);
	state = c->new ? c->new->state : PERSEAS_MIRROR_LIVE;
	if (c->new) {
		memcpy(text, c->new->trouble, sizeof(text));
		ps_resync_progress(p, c->new, &done, &total);
	}
	pthread_mutex_unlock(&p->lock);
	if (state == PERSEAS_MIRROR_LIVE) {
		make_joint(p);
	} else if (state == PERSEAS_MIRROR_RESYNCING) {
		c->until = now + PATIENCE;
		snprintf(c->text, sizeof(c->text), "%llu of %llu bytes are copied",
		         (unsigned long long)done, (unsigned long long)total);
	} else if (p->resync.mirror) {
		/* It waits for its turn. */
		c->until = now + PATIENCE;
	} else if (now >= c->until) {
		over(p, PERSEAS_EUNREACHABLE, text);
	}
}

/* Tells the mirrors, and looks whether the new roster can count alone. */
static void joint(struct perseas *p, uint64_t now)
{
	struct ps_change *c = &p->change;
	const uint32_t took = ps_roster_record(p, connected(p));
	bool ready;

	c->next_at = now + AGAIN;
	pthread_mutex_lock(&p->lock);
	ps_mirrors_poll(p);
	ready = ps_quorum_seen(p, reach(p, took)) && ps_quorum_newest(p, took) &&
	        ps_quorum_newest(p, ps_mirrors_holding(p, c->seq));
	if (ready) {
		ps_roster_settle(p);
		ps_mirrors_settle_doubt(p);
		ps_progress(p);
	}
	pthread_mutex_unlock(&p->lock);
	if (!ready)
		return;
	c->next_at = now;
	say(p, PS_CHANGE_SETTLING, "the new roster counts, and is being recorded");
	p->env->ops->wake(p->env, PS_COMMITTER);
}

/* It is told that the owner is done with it; its image stays. */
static void let_go(struct perseas *p, struct ps_mirror *m)
{
	Perseas__ReleaseRequest ask = PERSEAS__RELEASE_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__Reply *reply;
	struct ps_error ignored;

	pthread_mutex_lock(&p->lock);
	if (m->link)
		m->fabric->detach(m->link);
	m->link = NULL;
	m->outstanding = m->bulk = 0;
	ps_mirror_move(p, m, PERSEAS_MIRROR_REMOVED, "it was taken out of the roster");
	pthread_mutex_unlock(&p->lock);
	request.body_case = PERSEAS__REQUEST__BODY_RELEASE;
	request.release = &ask;
	if (!ps_ask(p, m, &request, ps_answer_by(p), &reply, NULL, &ignored))
		perseas__reply__free_unpacked(reply, NULL);
	ps_mirror_hang_up(p, m);
}

static void settling(struct perseas *p, uint64_t now)
{
	struct ps_change *c = &p->change;

	c->next_at = now + AGAIN;
	if (!ps_quorum_acks(p, ps_roster_record(p, connected(p))))
		return;
	if (c->new)
		c->new->joins = false;
	if (c->old) {
		let_go(p, c->old);
	}
	over(p, 0, "the roster is changed");
}

void ps_change_step(struct perseas *p, uint64_t now)
{
	struct ps_change *c = &p->change;

	if (c->stage == PS_CHANGE_COPYING)
		copying(p, now);
	if (c->stage == PS_CHANGE_JOINT && now >= c->next_at)
		joint(p, now);
	if (c->stage == PS_CHANGE_SETTLING && now >= c->next_at)
		settling(p, now);
}

uint64_t ps_change_due(const struct perseas *p)
{
	const struct ps_change *c = &p->change;

	if (c->stage == PS_CHANGE_COPYING)
		return c->until;
	return c->stage == PS_CHANGE_NONE ? PS_NEVER : c->next_at;
}

static int await(struct perseas *p)
{
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	while (p->change.stage != PS_CHANGE_NONE && !rc) {
		rc = ps_fenced(p) ? ps_fail_fenced(p) : 0;
		if (rc)
			break;
		p->waiters++;
		p->env->ops->wait(p->env, &p->progress, &p->lock, ps_now(p) + AGAIN);
		p->waiters--;
	}
	if (!rc && p->change.code)
		rc = ps_fail(p, p->change.code, "%s", p->change.text);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int perseas_roster(perseas_t *p, const struct perseas_roster_change *change)
{
	int rc;

	if (!p || !change)
		return ps_fail(p, PERSEAS_EINVAL, "roster needs a handle and a change");
	pthread_mutex_lock(&p->lock);
	rc = p->salvage || ps_fenced(p) ? ps_ready(p) : 0;
	pthread_mutex_unlock(&p->lock);
	if (rc)
		return rc;
	ps_admin_enter(p);
	if (p->change.stage != PS_CHANGE_NONE)
		rc = ps_fail(p, PERSEAS_EBUSY, "another change of the roster is not over: %.200s",
		             p->change.text);
	else if (ps_change_begin(p, change, NULL))
		rc = ps_fail(p, p->change.code, "%s", p->change.text);
	ps_admin_leave(p);
	return rc ? rc : await(p);
}
