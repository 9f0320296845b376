/*
 * change.c - the stages of a change of the roster. perseas_roster and orders of operators begin
 * one, and the keeper steps it. No stage is left before what it rests on is recorded on the
 * mirrors; and commits never wait for it, but for those that need both rosters.
 */
#include "change.h"

#include "admission.h"
#include "../core/event.h"
#include "../core/mirror.h"
#include "pulse.h"
#include "../core/quorum.h"
#include "resync.h"
#include "roster.h"
#include "session.h"
#include "telling.h"
#include "../../proto/base/text.h"

#include <stdio.h>
#include <string.h>

#define PATIENCE ps_ms(10000) /* with a new mirror that cannot be copied to */
#define LOOK ps_ms(500)       /* how often one who waits looks whether the store is fenced */

/* It takes no part any more. Commits may be posting to it until then. */
static void take_away(struct perseas *p, struct ps_mirror *m, const char *why)
{
	pthread_mutex_lock(&p->lock);
	ps_link_end(p, m);
	ps_mirror_move(p, m, PERSEAS_MIRROR_REMOVED, why);
	pthread_mutex_unlock(&p->lock);
}

/* It is over. A refusal has changed nothing: the new mirror had no vote. */
static int over(struct perseas *p, int code, const char *text)
{
	struct ps_change *c = &p->change;

	if (code && c->new) {
		c->new->joins = false;
		take_away(p, c->new, "it did not join the roster");
		ps_mirror_disconnect(p, c->new);
	}
	pthread_mutex_lock(&p->lock);
	c->stage = PS_CHANGE_NONE;
	c->code = code;
	ps_text_format(c->text, sizeof(c->text), "%s", text);
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
	ps_text_format(c->text, sizeof(c->text),
	               "the roster has no mirror %s: perseas roster shows it", address);
	return PERSEAS_EINVAL;
}

/* The new mirror gets a place here; the keeper will copy to it. */
static int bring_in(struct perseas *p, const char *text)
{
	struct ps_change *c = &p->change;
	struct ps_address address;
	struct ps_error error = { 0 };

	if (ps_address_parse(text, &address, &error)) {
		ps_text_format(c->text, sizeof(c->text), "%s", error.text);
		return error.code;
	}
	if (member_at(p, address.text) || listed_at(p, address.text)) {
		ps_text_format(c->text, sizeof(c->text), "%s is in the roster already",
		               address.text);
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
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (set >> i & 1 && ps_silent(p, &p->mirrors[i]))
			set &= ~((uint32_t)1 << i);
	return set;
}

/*
 * Those of the old roster that can be told of the change. Of two, the one that is gone need not
 * be: no open can be through it alone. Of more, an open may have been through it and through
 * another before it was gone, and only the others can tell.
 */
static uint32_t reach(struct perseas *p, uint32_t told)
{
	const struct ps_change *c = &p->change;

	return c->gone && c->old && p->members == 2 ? told | ps_bit(p, c->old) : told;
}

/* May it begin? `answered` can be told of it, and `live` can hold transactions. 0, or a code with
 * the reason. */
static int may_begin(struct perseas *p, uint32_t answered, uint32_t live, char *text, size_t size)
{
	struct ps_change *c = &p->change;
	Perseas__Roster *next = changed_roster(p);
	const struct ps_admission asked = {
		.next = next,
		.answered = reach(p, answered),
		.live = live,
		.cures = c->leaves && !(c->old && live & ps_bit(p, c->old)),
	};
	int rc;

	if (!next) {
		snprintf(text, size, "out of memory");
		return PERSEAS_ENOMEM;
	}
	rc = ps_change_admit(p, &asked, text, size);
	ps_roster_free(&next);
	return rc;
}

/* Ends a change that could not be settled. 0: it may go on. */
static int admit(struct perseas *p, uint32_t answered, uint32_t live)
{
	char text[sizeof(p->change.text)];
	int rc = may_begin(p, answered, live, text, sizeof(text));

	return rc ? over(p, rc, text) : 0;
}

static const char saves[] = "the store is open for salvage: its roster stays as it is";

int ps_change_begin(struct perseas *p, const struct perseas_roster_change *wanted,
                    const uint8_t *id)
{
	struct ps_change *c = &p->change;
	int rc;

	memset(c, 0, sizeof(*c));
	if (id)
		memcpy(c->id, id, PS_ID_SIZE);
	if (p->salvage)
		return over(p, PERSEAS_ESALVAGE, saves);
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
	rc = admit(p, connected(p), ps_mirrors_live(p) | (c->new ? ps_bit(p, c->new) : 0));
	if (rc)
		return rc;
	c->until = ps_now(p) + PATIENCE;
	say(p, PS_CHANGE_COPYING,
	    c->new ? "the new mirror is being connected to" : "the mirrors are being asked");
	return 0;
}

static bool are_admitted(struct perseas *p, uint32_t answered, const void *ignored)
{
	char text[sizeof(p->change.text)];

	(void)ignored;
	return !may_begin(p, answered, ps_mirrors_live(p) & answered, text, sizeof(text));
}

/* Both rosters count from here on, before any mirror is told. */
static void make_joint(struct perseas *p)
{
	struct ps_change *c = &p->change;
	const struct ps_change before = *c;
	Perseas__Roster *roster;
	/* One that hangs is not yet known to. */
	const uint32_t answered = ps_confirmed_enough(p, connected(p), are_admitted, NULL);

	/* Orders may have come with the answers: to take it back, and to make another one. */
	if (c->stage != before.stage || memcmp(c->id, before.id, PS_ID_SIZE) != 0)
		return;
	if (admit(p, answered, ps_mirrors_live(p) & answered))
		return;
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
	say(p, PS_CHANGE_JOINT,
	    "both rosters count until the change is recorded; perseas roster cancel takes it back");
}

/* There is no copy under way to the new mirror, and it does not wait for its turn. */
static void trouble(struct perseas *p, bool down, const char *text, uint64_t now)
{
	struct ps_change *c = &p->change;
	const bool tried = c->new->retry_delay > 0 && !ps_session_under_way(c->new);

	/* Nobody is at that address, or it refuses: that is not going to mend itself. */
	if (now >= c->until || (down && tried && !c->met))
		over(p, PERSEAS_EUNREACHABLE, text);
	else if (tried)
		ps_text_format(c->text, sizeof(c->text), "the copying is tried again: %s", text);
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
		c->met = true;
		c->until = now + PATIENCE;
		snprintf(c->text, sizeof(c->text), "%llu of %llu bytes are copied",
		         (unsigned long long)done, (unsigned long long)total);
	} else if (p->resync.mirror) {
		c->until = now + PATIENCE;
		snprintf(c->text, sizeof(c->text), "another mirror is being copied first");
	} else {
		trouble(p, state == PERSEAS_MIRROR_DOWN, text, now);
	}
}

/* Have so many been told that every open of the old roster sees the change, and W of the new one,
 * which hold all that was acknowledged by the old one alone? Locked. */
static bool is_known(struct perseas *p, uint32_t took)
{
	const uint32_t holding = ps_mirrors_holding(p, p->change.seq);

	ps_mirrors_poll(p);
	return ps_quorum_seen(p, reach(p, took)) && ps_quorum_newest(p, took & holding);
}

/* Tells the mirrors; when enough of them know it, does what comes then, with the lock. False: not
 * yet. */
static bool tell_all(struct perseas *p, void (*go_on)(struct perseas *p))
{
	const uint32_t took = ps_tell(p, connected(p));
	bool known;

	pthread_mutex_lock(&p->lock);
	known = is_known(p, took);
	if (known)
		go_on(p);
	pthread_mutex_unlock(&p->lock);
	return known;
}

static void joint(struct perseas *p)
{
	if (tell_all(p, ps_roster_mark))
		say(p, PS_CHANGE_MARKED, "the change is decided, and that is being recorded");
}

/* From now on the new roster counts alone. */
static void settle(struct perseas *p)
{
	ps_roster_settle(p);
	ps_mirrors_settle_doubt(p);
	ps_progress(p);
}

static void marked(struct perseas *p)
{
	if (!tell_all(p, settle))
		return;
	say(p, PS_CHANGE_SETTLING, "the new roster counts, and is being recorded");
	p->env->ops->wake(p->env, PS_COMMITTER);
}

/* The old roster counts alone at once: no mirror has the mark, and none will. */
static void take_back(struct perseas *p)
{
	pthread_mutex_lock(&p->lock);
	ps_roster_cancel(p);
	ps_mirrors_settle_doubt(p);
	ps_progress(p);
	pthread_mutex_unlock(&p->lock);
	say(p, PS_CHANGE_CANCELLING, "the change is taken back, and that is being recorded");
	p->env->ops->wake(p->env, PS_COMMITTER);
	p->env->ops->wake(p->env, PS_KEEPER);
}

static const char taken_back[] = "the change was taken back: the roster is as it was before";

int ps_change_cancel(struct perseas *p, char *text, size_t size)
{
	switch (p->change.stage) {
	case PS_CHANGE_COPYING:
		over(p, PERSEAS_EQUORUM, taken_back);
		return 0;
	case PS_CHANGE_JOINT:
		take_back(p);
		return 0;
	case PS_CHANGE_CANCELLING:
		return 0;
	case PS_CHANGE_MARKED:
	case PS_CHANGE_SETTLING:
		snprintf(text, size, "the change is decided, and can only be completed");
		return PERSEAS_EBUSY;
	case PS_CHANGE_NONE:
		break;
	}
	snprintf(text, size, "no change of the roster is being made");
	return PERSEAS_EINVAL;
}

void ps_change_obey_cancel(struct perseas *p, const uint8_t *id)
{
	static const uint8_t none[PS_ID_SIZE];
	struct ps_change *c = &p->change;
	char text[sizeof(c->text)];
	int rc;

	if (c->stage == PS_CHANGE_NONE) {
		rc = ps_change_cancel(p, text, sizeof(text));
		memset(c, 0, sizeof(*c));
		memcpy(c->id, id, PS_ID_SIZE);
		over(p, rc, text);
		return;
	}
	/* Where no order asked for the change, its result is told as that of this one. */
	if (!memcmp(c->id, none, PS_ID_SIZE))
		memcpy(c->id, id, PS_ID_SIZE);
	if (!memcmp(c->id, id, PS_ID_SIZE))
		ps_change_cancel(p, text, sizeof(text));
}

static void cancelling(struct perseas *p)
{
	if (ps_quorum_acks(p, ps_tell(p, connected(p))))
		over(p, PERSEAS_EQUORUM, taken_back);
}

/* Whoever answers in a moment. */
static bool is_enough(struct perseas *p, uint32_t granted, const void *ignored)
{
	(void)p;
	(void)granted;
	(void)ignored;
	return true;
}

/* It is told that the owner is done with it; its image stays. */
static void let_go(struct perseas *p, struct ps_mirror *m)
{
	Perseas__ReleaseRequest ask = PERSEAS__RELEASE_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	take_away(p, m, "it was taken out of the roster");
	request.body_case = PERSEAS__REQUEST__BODY_RELEASE;
	request.release = &ask;
	if (m->session.state == PS_SESSION_UP)
		ps_ask_enough(p, ps_bit(p, m), &request, is_enough, NULL);
	ps_mirror_disconnect(p, m);
}

static void settling(struct perseas *p)
{
	struct ps_change *c = &p->change;

	if (!ps_quorum_acks(p, ps_tell(p, connected(p))))
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
	if (c->stage == PS_CHANGE_JOINT)
		joint(p);
	if (c->stage == PS_CHANGE_MARKED)
		marked(p);
	if (c->stage == PS_CHANGE_CANCELLING)
		cancelling(p);
	if (c->stage == PS_CHANGE_SETTLING)
		settling(p);
}

uint64_t ps_change_due(const struct perseas *p)
{
	const struct ps_change *c = &p->change;

	if (c->stage == PS_CHANGE_COPYING)
		return c->until;
	return c->stage == PS_CHANGE_NONE ? PS_NEVER : ps_telling_due(p);
}

/* Waits for the end of a change, or of its stage `only`. */
static int await(struct perseas *p, enum ps_change_stage only)
{
	const struct ps_change *c = &p->change;
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	while (only == PS_CHANGE_NONE ? c->stage != only : c->stage == only) {
		rc = ps_fenced(p) ? ps_fail_fenced(p) : 0;
		if (rc)
			break;
		p->waiters++;
		p->env->ops->wait(p->env, &p->progress, &p->lock, ps_now(p) + LOOK);
		p->waiters--;
	}
	if (!rc && only == PS_CHANGE_NONE && c->code)
		rc = ps_fail(p, c->code, "%s", c->text);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* A cancel may come while another thread waits for the change. */
static int cancel(struct perseas *p)
{
	char text[sizeof(p->change.text)];
	int rc;

	ps_admin_enter(p);
	rc = ps_change_cancel(p, text, sizeof(text));
	if (rc)
		ps_fail(p, rc, "%s", text);
	ps_admin_leave(p);
	return rc ? rc : await(p, PS_CHANGE_CANCELLING);
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
	if (change->kind == PERSEAS_ROSTER_CANCEL)
		return cancel(p);
	ps_admin_enter(p);
	if (p->change.stage != PS_CHANGE_NONE)
		rc = ps_fail(p, PERSEAS_EBUSY, "another change of the roster is not over: %s",
		             p->change.text);
	else if (ps_change_begin(p, change, NULL))
		rc = ps_fail(p, p->change.code, "%s", p->change.text);
	ps_admin_leave(p);
	return rc ? rc : await(p, PS_CHANGE_NONE);
}
