/*
 * change.c - the table of the stages of a change of the roster, and what is done in each of them.
 * perseas_roster and orders of operators begin one, and the keeper steps it. No stage is left
 * before what it rests on is recorded on the mirrors; and commits never wait for it, but for those
 * that need both rosters.
 */
#include "change.h"

#include "change_admission.h"
#include "due.h"
#include "../core/broken_copy.h"
#include "../core/event.h"
#include "../core/gather.h"
#include "../core/mirror.h"
#include "operator_orders.h"
#include "change_plan.h"
#include "../core/quorum.h"
#include "resync.h"
#include "roster.h"
#include "session.h"
#include "roster_telling.h"
#include "../../proto/base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE ps_ms(10000) /* with a new mirror that cannot be copied to */
#define GRACE ps_ms(100)      /* for those without whose answers there are enough */

static const struct ps_state stages[] = {
	[PS_CHANGE_NONE] = { "none", PS_TO(PS_CHANGE_COPYING) },
	[PS_CHANGE_COPYING] = { "copying", PS_TO(PS_CHANGE_ASKING) | PS_TO(PS_CHANGE_SETTLING) |
	                                           PS_TO(PS_CHANGE_NONE) },
	[PS_CHANGE_ASKING] = { "asking", PS_TO(PS_CHANGE_JOINT) | PS_TO(PS_CHANGE_COPYING) |
	                                         PS_TO(PS_CHANGE_NONE) },
	[PS_CHANGE_JOINT] = { "joint", PS_TO(PS_CHANGE_MARKED) | PS_TO(PS_CHANGE_CANCELLING) },
	[PS_CHANGE_MARKED] = { "marked", PS_TO(PS_CHANGE_SETTLING) },
	[PS_CHANGE_SETTLING] = { "settling", PS_TO(PS_CHANGE_RELEASING) | PS_TO(PS_CHANGE_NONE) },
	[PS_CHANGE_RELEASING] = { "releasing", PS_TO(PS_CHANGE_NONE) },
	[PS_CHANGE_CANCELLING] = { "cancelling", PS_TO(PS_CHANGE_NONE) },
};

const struct ps_states ps_change_stages = { stages, sizeof(stages) / sizeof(stages[0]) };

/* Is this the roster that the change leads to? */
static bool is_wanted(const struct ps_change *c, const Perseas__Roster *roster)
{
	return roster->acks == c->after.acks && roster->level >= c->raises &&
	       (!c->new || ps_roster_member(roster, c->new->image_id)) &&
	       (!c->old || !ps_roster_member(roster, c->old->image_id));
}

bool ps_change_is_sound(const struct perseas *p)
{
	const struct ps_change *c = &p->upkeep.change;
	const bool joint = p->next_roster != NULL;
	const bool joins = c->new && c->new->joins;

	switch (c->stage) {
	case PS_CHANGE_NONE:
		return !joint && !p->marked && !joins;
	case PS_CHANGE_COPYING:
	case PS_CHANGE_ASKING:
	case PS_CHANGE_CANCELLING:
		return !joint && !p->marked && joins == (c->new != NULL);
	case PS_CHANGE_JOINT:
		return joint && !p->marked && is_wanted(c, p->next_roster);
	case PS_CHANGE_MARKED:
		return joint && p->marked && is_wanted(c, p->next_roster);
	case PS_CHANGE_SETTLING:
	case PS_CHANGE_RELEASING:
		return !joint && !p->marked && is_wanted(c, p->roster);
	}
	return false;
}

/* The one place where a stage is left for another; text says how far it is. */
static void move(struct perseas *p, enum ps_change_stage to, const char *text)
{
	struct ps_change *c = &p->upkeep.change;

	ps_assert_locked(p);
	ps_assert_admin(p);
	c->stage = ps_states_move(p->env, &ps_change_stages, c->stage, to, "change of the roster");
	ps_text_format(c->text, sizeof(c->text), "%s", text);
	assert(ps_change_is_sound(p));
}

/* It takes no part any more. Commits may be posting to it until then. */
static void take_away(struct perseas *p, struct ps_mirror *m, const char *why)
{
	pthread_mutex_lock(&p->lock);
	ps_link_end(p, m);
	ps_mirror_move(p, m, PERSEAS_MIRROR_REMOVED, why);
	pthread_mutex_unlock(&p->lock);
}

/* It is over. A refusal has changed nothing: the new mirror had no vote. */
static int finish(struct perseas *p, int code, const char *text)
{
	struct ps_change *c = &p->upkeep.change;

	if (code && c->new) {
		c->new->joins = false;
		take_away(p, c->new, "it did not join the roster");
		ps_mirror_disconnect(p, c->new);
	}
	ps_question_forget(&c->question);
	pthread_mutex_lock(&p->lock);
	/* One that is refused has not begun. */
	if (c->stage == PS_CHANGE_NONE)
		ps_text_format(c->text, sizeof(c->text), "%s", text);
	else
		move(p, PS_CHANGE_NONE, text);
	c->code = code;
	if (!code && c->raises)
		ps_event(p, PERSEAS_EVENT_ROSTER, ps_last(p), NULL, "the store has level %u now",
		         p->roster->level);
	else if (!code)
		ps_event(p, PERSEAS_EVENT_ROSTER, ps_last(p), c->new ? c->new : c->old,
		         "the roster has %u mirrors now, W = %u (before: %u, W = %u)", p->members,
		         p->acks, c->before.members, c->before.acks);
	ps_progress(p);
	pthread_mutex_unlock(&p->lock);
	p->upkeep.pulse_at = 0;
	return code;
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

/* Ends a change that could not be settled. 0: it may go on. */
static int admit(struct perseas *p, uint32_t answered, uint32_t live)
{
	char text[sizeof(p->upkeep.change.text)];
	int rc = ps_plan_admit(p, answered, live, text, sizeof(text));

	return rc ? finish(p, rc, text) : 0;
}

static const char saves[] = "the store is open for salvage: its roster stays as it is";

/* The last one is over, and another one takes its place; id: of the order, or NULL. */
static void renew(struct perseas *p, const uint8_t *id)
{
	struct ps_change *c = &p->upkeep.change;

	assert(c->stage == PS_CHANGE_NONE);
	ps_orders_keep_end(p);
	memset(c, 0, sizeof(*c));
	if (id)
		memcpy(c->id, id, PS_ID_SIZE);
}

int ps_change_begin(struct perseas *p, const struct perseas_roster_change *wanted,
                    const uint8_t *id)
{
	struct ps_change *c = &p->upkeep.change;
	char text[sizeof(c->text)];
	int rc;

	ps_assert_admin(p);
	renew(p, id);
	if (p->salvage)
		return finish(p, PERSEAS_ESALVAGE, saves);
	rc = ps_plan_make(p, wanted, text, sizeof(text));
	if (rc)
		return finish(p, rc, text);
	rc = admit(p, connected(p), ps_mirrors_live(p) | (c->new ? ps_bit(p, c->new) : 0));
	if (rc)
		return rc;
	c->until = ps_now(p) + PATIENCE;
	pthread_mutex_lock(&p->lock);
	move(p, PS_CHANGE_COPYING,
	     c->new ? "the new mirror is being connected to" : "the mirrors are being asked");
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* All are waited for at first; then it goes on when `enough` have answered, or none will. */
static bool is_answered(struct perseas *p, bool enough)
{
	const struct ps_change *c = &p->upkeep.change;

	return ps_question_over(p, &c->question) || (ps_now(p) >= c->grace && enough);
}

/* Which mirrors can be told of the change: one that hangs is not yet known to. One that is behind
 * with its answers, as with what it was told of the change before, is asked when they are here. */
static void ask(struct perseas *p)
{
	struct ps_change *c = &p->upkeep.change;

	if (ps_dues_full(p, connected(p)))
		return;
	c->grace = ps_now(p) + GRACE;
	ps_question_confirm(p, &c->question, connected(p));
	pthread_mutex_lock(&p->lock);
	move(p, PS_CHANGE_ASKING, "the mirrors are asked whether they can be told of the change");
	pthread_mutex_unlock(&p->lock);
}

/* Both rosters count from here on, before any mirror is told. */
static void make_joint(struct perseas *p)
{
	Perseas__Roster *roster = ps_plan_roster(p);

	if (!roster) {
		finish(p, PERSEAS_ENOMEM, "out of memory");
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->next_roster = roster;
	p->upkeep.change.seq = p->commit.seq;
	ps_quorum_renew(p);
	move(p, PS_CHANGE_JOINT,
	     "both rosters count until the change is recorded; perseas roster cancel takes it "
	     "back");
	pthread_mutex_unlock(&p->lock);
}

static void asking(struct perseas *p)
{
	struct ps_change *c = &p->upkeep.change;
	char text[sizeof(c->text)];
	uint32_t answered, live;
	bool copied;

	ps_dues_take(p, ps_now(p));
	answered = c->question.granted & connected(p);
	pthread_mutex_lock(&p->lock);
	copied = !c->new || c->new->state == PERSEAS_MIRROR_LIVE;
	if (!copied)
		move(p, PS_CHANGE_COPYING, "the new mirror must be copied to again");
	live = ps_mirrors_live(p) & answered;
	pthread_mutex_unlock(&p->lock);
	if (!copied) {
		c->until = ps_now(p) + PATIENCE;
		ps_question_forget(&c->question);
	} else if (is_answered(p, !ps_plan_admit(p, answered, live, text, sizeof(text))) &&
	           !admit(p, answered, live)) {
		ps_question_forget(&c->question);
		make_joint(p);
	}
}

/* There is no copy under way to the new mirror, and it does not wait for its turn. */
static void trouble(struct perseas *p, bool down, const char *text, uint64_t now)
{
	struct ps_change *c = &p->upkeep.change;
	const bool tried = c->new->retry.delay > 0 && !ps_session_under_way(c->new);

	/* Nobody is at that address, or it refuses: that is not going to mend itself. */
	if (now >= c->until || (down && tried && !c->met))
		finish(p, PERSEAS_EUNREACHABLE, text);
	else if (tried)
		ps_text_format(c->text, sizeof(c->text), "the copying is tried again: %s", text);
}

/* The member that was to leave is at the new address, too: the roster has that address from now on.
 * Nothing else changes, so it is recorded like an image's id, and no change is joint. */
static void readdress(struct perseas *p)
{
	struct ps_change *c = &p->upkeep.change;

	if (!ps_plan_readdress(p)) {
		finish(p, PERSEAS_ENOMEM, "out of memory");
		return;
	}
	if (c->old) {
		take_away(p, c->new, "the roster has another address of this mirror");
		ps_mirror_disconnect(p, c->new);
	}
	c->old = c->new = NULL;
	pthread_mutex_lock(&p->lock);
	move(p, PS_CHANGE_SETTLING, "the mirror's new address is being recorded");
	pthread_mutex_unlock(&p->lock);
}

/* The new mirror's address leads to a member. */
static void meet_member(struct perseas *p)
{
	struct ps_change *c = &p->upkeep.change;
	char text[sizeof(c->text)];

	if (c->moves && !c->gone && c->after.acks == p->acks) {
		readdress(p);
		return;
	}
	pthread_mutex_lock(&p->lock);
	ps_text_format(text, sizeof(text), "%s", c->new->trouble);
	pthread_mutex_unlock(&p->lock);
	finish(p, PERSEAS_EINVAL, text);
}

static void copying(struct perseas *p, uint64_t now)
{
	struct ps_change *c = &p->upkeep.change;
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
		ask(p);
	} else if (state == PERSEAS_MIRROR_RESYNCING) {
		c->met = true;
		c->until = now + PATIENCE;
		snprintf(c->text, sizeof(c->text), "%llu of %llu bytes are copied",
		         (unsigned long long)done, (unsigned long long)total);
	} else if (p->upkeep.resync.mirror && p->upkeep.resync.mirror != c->new) {
		c->until = now + PATIENCE;
		snprintf(c->text, sizeof(c->text), "another mirror is being copied first");
	} else if (!p->upkeep.resync.mirror) {
		/* A copy that broke is not tried again at once. */
		if (c->met && ps_broken_copy_until(c->new) > now)
			c->until = ps_broken_copy_until(c->new) + PATIENCE;
		trouble(p, state == PERSEAS_MIRROR_DOWN, text, now);
	}
}

/* Tells all that can be told; who has recorded it. One that was loaded from a spill and may not
 * know its own id is told last: when those who have, and it, are enough. */
static uint32_t tell(struct perseas *p, bool (*are_enough)(struct perseas *p, uint32_t took))
{
	const uint32_t set = connected(p), last = set & ps_roster_unrecorded(p);
	const uint32_t took = ps_tell(p, set & ~last);

	return last && are_enough(p, took | last) ? ps_tell(p, set) : took;
}

static bool are_acks(struct perseas *p, uint32_t took)
{
	return ps_quorum_acks(p, took);
}

/* Have so many been told that every open of the old roster sees the change, and W of the new one,
 * which hold all that was acknowledged by the old one alone? */
static bool is_known(struct perseas *p, uint32_t took)
{
	const struct ps_change *c = &p->upkeep.change;
	const uint32_t holding = ps_mirrors_holding(p, c->seq);

	ps_mirrors_poll(p);
	/* An image without the key counts for nothing once the level is raised. */
	if (c->raises && c->stage == PS_CHANGE_JOINT && !ps_quorum_all(p, took))
		return false;
	return ps_quorum_seen(p, ps_plan_reach(p, took)) && ps_quorum_newest(p, took & holding);
}

static bool are_known_to(struct perseas *p, uint32_t took)
{
	bool known;

	pthread_mutex_lock(&p->lock);
	known = is_known(p, took);
	pthread_mutex_unlock(&p->lock);
	return known;
}

/* Tells the mirrors; when enough of them know it, does what comes then, with the lock. False: not
 * yet. */
static bool tell_all(struct perseas *p, void (*go_on)(struct perseas *p))
{
	const uint32_t took = tell(p, are_known_to);
	bool known;

	pthread_mutex_lock(&p->lock);
	known = is_known(p, took);
	if (known)
		go_on(p);
	pthread_mutex_unlock(&p->lock);
	return known;
}

static void mark(struct perseas *p)
{
	ps_roster_mark(p);
	move(p, PS_CHANGE_MARKED, "the change is decided, and that is being recorded");
}

static void joint(struct perseas *p)
{
	tell_all(p, mark);
}

/* From now on the new roster counts alone. */
static void settle(struct perseas *p)
{
	ps_roster_settle(p);
	p->upkeep.renewal.wanted = p->upkeep.change.raises;
	move(p, PS_CHANGE_SETTLING, "the new roster counts, and is being recorded");
	ps_mirrors_settle_doubt(p);
	ps_progress(p);
}

static void marked(struct perseas *p)
{
	if (tell_all(p, settle))
		p->env->ops->wake(p->env, PS_COMMITTER);
}

/* The old roster counts alone at once: no mirror has the mark, and none will. */
static void take_back(struct perseas *p)
{
	pthread_mutex_lock(&p->lock);
	ps_roster_cancel(p);
	move(p, PS_CHANGE_CANCELLING, "the change is taken back, and that is being recorded");
	ps_mirrors_settle_doubt(p);
	ps_progress(p);
	pthread_mutex_unlock(&p->lock);
	p->env->ops->wake(p->env, PS_COMMITTER);
	p->env->ops->wake(p->env, PS_KEEPER);
}

static const char taken_back[] = "the change was taken back: the roster is as it was before";

int ps_change_cancel(struct perseas *p, char *text, size_t size)
{
	int rc;

	ps_assert_admin(p);
	switch (p->upkeep.change.stage) {
	case PS_CHANGE_COPYING:
	case PS_CHANGE_ASKING:
		finish(p, PERSEAS_EQUORUM, taken_back);
		return 0;
	case PS_CHANGE_JOINT:
		rc = ps_change_admit_cancel(p, connected(p), text, size);
		if (!rc)
			take_back(p);
		return rc;
	case PS_CHANGE_CANCELLING:
		return 0;
	case PS_CHANGE_MARKED:
	case PS_CHANGE_SETTLING:
	case PS_CHANGE_RELEASING:
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
	struct ps_change *c = &p->upkeep.change;
	char text[sizeof(c->text)];
	int rc;

	if (c->stage == PS_CHANGE_NONE) {
		rc = ps_change_cancel(p, text, sizeof(text));
		renew(p, id);
		finish(p, rc, text);
		return;
	}
	/* Where no order asked for the change, its result is told as that of this one. */
	if (!memcmp(c->id, none, PS_ID_SIZE))
		memcpy(c->id, id, PS_ID_SIZE);
	/* The order stays, and is obeyed when that is possible: until then it says why not. */
	if (!memcmp(c->id, id, PS_ID_SIZE) &&
	    ps_change_cancel(p, text, sizeof(text)) == PERSEAS_EQUORUM)
		memcpy(c->text, text, sizeof(c->text));
}

static void cancelling(struct perseas *p)
{
	if (are_acks(p, tell(p, are_acks)))
		finish(p, PERSEAS_EQUORUM, taken_back);
}

/* It is told that the owner is done with it; its image stays. */
static void let_go(struct perseas *p, struct ps_mirror *m)
{
	Perseas__ReleaseRequest ask_release = PERSEAS__RELEASE_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_change *c = &p->upkeep.change;

	take_away(p, m, "it was taken out of the roster");
	request.body_case = PERSEAS__REQUEST__BODY_RELEASE;
	request.release = &ask_release;
	c->grace = ps_now(p) + GRACE;
	if (m->session.state == PS_SESSION_UP)
		ps_question_ask(p, &c->question, ps_bit(p, m), &request);
	pthread_mutex_lock(&p->lock);
	move(p, PS_CHANGE_RELEASING, "the mirror that left is told so");
	pthread_mutex_unlock(&p->lock);
}

static const char readdressed[] = "the roster has the mirror's new address; nothing was copied";

static const char *changed(const struct perseas *p)
{
	const struct ps_change *c = &p->upkeep.change;

	if (c->raises)
		return "the store has level 1";
	return c->moves ? readdressed : "the roster is changed";
}

static void releasing(struct perseas *p)
{
	ps_dues_take(p, ps_now(p));
	if (!is_answered(p, true))
		return;
	ps_mirror_disconnect(p, p->upkeep.change.old);
	finish(p, 0, changed(p));
}

static void settling(struct perseas *p)
{
	struct ps_change *c = &p->upkeep.change;

	if (!are_acks(p, tell(p, are_acks)))
		return;
	/* It is told that it leaves, also where it is behind with its answers. */
	if (c->old && ps_dues_full(p, ps_bit(p, c->old)))
		return;
	if (c->new)
		c->new->joins = false;
	if (c->old)
		let_go(p, c->old);
	else
		finish(p, 0, changed(p));
}

void ps_change_step(struct perseas *p, uint64_t now)
{
	const struct ps_change *c = &p->upkeep.change;

	ps_assert_admin(p);
	if (c->stage == PS_CHANGE_COPYING && c->same)
		meet_member(p);
	if (c->stage == PS_CHANGE_COPYING)
		copying(p, now);
	if (c->stage == PS_CHANGE_ASKING)
		asking(p);
	if (c->stage == PS_CHANGE_JOINT)
		joint(p);
	if (c->stage == PS_CHANGE_MARKED)
		marked(p);
	if (c->stage == PS_CHANGE_CANCELLING)
		cancelling(p);
	if (c->stage == PS_CHANGE_SETTLING)
		settling(p);
	if (c->stage == PS_CHANGE_RELEASING)
		releasing(p);
}

uint64_t ps_change_due(const struct perseas *p, uint64_t now)
{
	const struct ps_change *c = &p->upkeep.change;

	/* Making memory for the copy may take longer: the end of that wakes the keeper. */
	if (c->stage == PS_CHANGE_COPYING)
		return now < c->until ? c->until : PS_NEVER;
	if (c->stage == PS_CHANGE_ASKING || c->stage == PS_CHANGE_RELEASING)
		return now < c->grace ? c->grace : c->question.until;
	return c->stage == PS_CHANGE_NONE ? PS_NEVER : ps_telling_due(p);
}
