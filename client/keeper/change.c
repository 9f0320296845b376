/*
 * change.c - the stages of a change of the roster, and the work in each. perseas_roster and orders
 * begin a change, and the keeper steps it. A stage must never end before the mirrors have recorded
 * what the next stage relies on. Commits wait for a change only while they need both rosters.
 */
#include "change.h"

#include "change_admission.h"
#include "pending_answers.h"
#include "../core/broken_copy.h"
#include "../core/event.h"
#include "../core/gather.h"
#include "../core/mirror.h"
#include "operator_orders.h"
#include "change_plan.h"
#include "../core/quorum.h"
#include "resync_progress.h"
#include "roster.h"
#include "session.h"
#include "roster_telling.h"
#include "../../proto/base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define COPY_GRACE ps_ms(10000) /* how long copying to the new mirror may fail */
#define ANSWER_GRACE ps_ms(100) /* how long to wait for more answers than suffice */

static const struct ps_state_row stages[] = {
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

/* Returns true if `roster` is the one that the change leads to. */
static bool is_roster_of_change(const struct ps_change *c, const Perseas__Roster *roster)
{
	return roster->acks == c->after.acks && roster->level >= c->raises_level &&
	       (!c->joining || ps_roster_member(roster, c->joining->image_id)) &&
	       (!c->leaving || !ps_roster_member(roster, c->leaving->image_id));
}

bool ps_change_matches_rosters(const struct perseas *p)
{
	const struct ps_change *c = &p->upkeep.change;
	const bool joint = p->next_roster != NULL;
	const bool joins = c->joining && c->joining->is_joining;

	switch (c->stage) {
	case PS_CHANGE_NONE:
		return !joint && !p->is_change_decided && !joins;
	case PS_CHANGE_COPYING:
	case PS_CHANGE_ASKING:
	case PS_CHANGE_CANCELLING:
		return !joint && !p->is_change_decided && joins == (c->joining != NULL);
	case PS_CHANGE_JOINT:
		return joint && !p->is_change_decided && is_roster_of_change(c, p->next_roster);
	case PS_CHANGE_MARKED:
		return joint && p->is_change_decided && is_roster_of_change(c, p->next_roster);
	case PS_CHANGE_SETTLING:
	case PS_CHANGE_RELEASING:
		return !joint && !p->is_change_decided && is_roster_of_change(c, p->roster);
	}
	return false;
}

/* Moves the change to stage `to`. `text` says how far the change is. */
static void move_change(struct perseas *p, enum ps_change_stage to, const char *text)
{
	struct ps_change *c = &p->upkeep.change;

	ps_assert_locked(p);
	ps_assert_admin(p);
	c->stage = ps_states_move(p->env, &ps_change_stages, c->stage, to, "change of the roster");
	ps_text_format(c->text, sizeof(c->text), "%s", text);
	assert(ps_change_matches_rosters(p));
}

/* Moves a mirror to REMOVED, under the lock: commits may be posting to it. */
static void remove_mirror(struct perseas *p, struct ps_mirror *m, const char *why)
{
	pthread_mutex_lock(&p->lock);
	ps_link_end(p, m);
	ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_REMOVED, why);
	pthread_mutex_unlock(&p->lock);
}

/* Ends the change and returns `code`. A failed change had no effect: the new mirror had no vote. */
static int finish_change(struct perseas *p, int code, const char *text)
{
	struct ps_change *c = &p->upkeep.change;

	if (code && c->joining) {
		c->joining->is_joining = false;
		remove_mirror(p, c->joining, "it did not join the roster");
		ps_mirror_disconnect(p, c->joining);
	}
	ps_question_forget(&c->question);
	pthread_mutex_lock(&p->lock);
	/* A change that is refused at once never left NONE. */
	if (c->stage == PS_CHANGE_NONE)
		ps_text_format(c->text, sizeof(c->text), "%s", text);
	else
		move_change(p, PS_CHANGE_NONE, text);
	c->result_code = code;
	if (!code && c->raises_level)
		ps_event(p, PERSEAS_EVENT_ROSTER, ps_last_committed_seq(p), NULL,
		         "the store has level %u now", p->roster->level);
	else if (!code)
		ps_event(p, PERSEAS_EVENT_ROSTER, ps_last_committed_seq(p),
		         c->joining ? c->joining : c->leaving,
		         "the roster has %u mirrors now, W = %u (before: %u, W = %u)",
		         p->member_count, p->acks, c->before.member_count, c->before.acks);
	ps_wake_waiters(p);
	pthread_mutex_unlock(&p->lock);
	p->upkeep.next_heartbeat_at = 0;
	return code;
}

/* Returns the connected mirrors whose answers are not overdue. */
static uint32_t connected_mirrors(struct perseas *p)
{
	uint32_t set = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].is_active && p->mirrors[i].control)
			set |= (uint32_t)1 << i;
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (set >> i & 1 && ps_pending_is_overdue(p, &p->mirrors[i]))
			set &= ~((uint32_t)1 << i);
	return set;
}

/* Ends the change if it could not be settled. Returns 0 if it may go on, or an error code. */
static int end_if_refused(struct perseas *p, uint32_t answered, uint32_t live)
{
	char text[sizeof(p->upkeep.change.text)];
	int rc = ps_change_check_plan(p, answered, live, text, sizeof(text));

	return rc ? finish_change(p, rc, text) : 0;
}

static const char salvage_text[] = "the store is open for salvage: its roster cannot be changed";

/* Saves the result of the last change, and clears p->upkeep.change for the next one. `id`: the
 * order that asks for the next one, or NULL. */
static void reset_change(struct perseas *p, const uint8_t *id)
{
	struct ps_change *c = &p->upkeep.change;

	assert(c->stage == PS_CHANGE_NONE);
	ps_orders_save_change_result(p);
	memset(c, 0, sizeof(*c));
	if (id)
		memcpy(c->order_id, id, PS_ID_SIZE);
}

int ps_change_begin(struct perseas *p, const struct perseas_roster_change *wanted,
                    const uint8_t *id)
{
	struct ps_change *c = &p->upkeep.change;
	char text[sizeof(c->text)];
	int rc;

	ps_assert_admin(p);
	reset_change(p, id);
	if (p->is_salvage)
		return finish_change(p, PERSEAS_ESALVAGE, salvage_text);
	rc = ps_change_plan_make(p, wanted, text, sizeof(text));
	if (rc)
		return finish_change(p, rc, text);
	rc = end_if_refused(p, connected_mirrors(p),
	                    ps_mirrors_live(p) | (c->joining ? ps_mirror_bit(p, c->joining) : 0));
	if (rc)
		return rc;
	c->copy_start_deadline = ps_now(p) + COPY_GRACE;
	pthread_mutex_lock(&p->lock);
	move_change(p, PS_CHANGE_COPYING,
	            c->joining ? "connecting to the new mirror" : "asking the mirrors");
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* Returns true if no more answers to the change's question will come, or if `has_enough` and the
 * grace period is over. */
static bool is_wait_over(struct perseas *p, bool has_enough)
{
	const struct ps_change *c = &p->upkeep.change;

	return ps_question_is_over(p, &c->question) || (ps_now(p) >= c->grace_until && has_enough);
}

/* Asks which mirrors can be told of the change: a mirror that hangs may still look connected. Does
 * nothing while a mirror owes too many answers to be asked. */
static void ask_mirrors_before_change(struct perseas *p)
{
	struct ps_change *c = &p->upkeep.change;

	if (ps_pending_is_any_full(p, connected_mirrors(p)))
		return;
	c->grace_until = ps_now(p) + ANSWER_GRACE;
	ps_question_ask_claim_confirmations(p, &c->question, connected_mirrors(p));
	pthread_mutex_lock(&p->lock);
	move_change(p, PS_CHANGE_ASKING, "asking the mirrors whether they can record the change");
	pthread_mutex_unlock(&p->lock);
}

/* Moves the change to JOINT: makes both rosters count, before any mirror is told. */
static void begin_joint_stage(struct perseas *p)
{
	Perseas__Roster *roster = ps_change_plan_roster(p);

	if (!roster) {
		finish_change(p, PERSEAS_ENOMEM, "out of memory");
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->next_roster = roster;
	p->upkeep.change.seq_next_roster_must_hold = p->commit.seq;
	ps_quorums_recompute(p);
	move_change(p, PS_CHANGE_JOINT,
	            "both rosters count until this is recorded; perseas roster cancel takes it "
	            "back");
	pthread_mutex_unlock(&p->lock);
}

static void step_asking(struct perseas *p)
{
	struct ps_change *c = &p->upkeep.change;
	char text[sizeof(c->text)];
	uint32_t answered, live;
	bool copied;

	ps_pending_take_all_answers(p, ps_now(p));
	answered = c->question.granting_mirrors & connected_mirrors(p);
	pthread_mutex_lock(&p->lock);
	copied = !c->joining || c->joining->state == PERSEAS_MIRROR_LIVE;
	if (!copied)
		move_change(p, PS_CHANGE_COPYING,
		            "the link of the new mirror broke: copying to it again");
	live = ps_mirrors_live(p) & answered;
	pthread_mutex_unlock(&p->lock);
	if (!copied) {
		c->copy_start_deadline = ps_now(p) + COPY_GRACE;
		ps_question_forget(&c->question);
	} else if (is_wait_over(p, !ps_change_check_plan(p, answered, live, text, sizeof(text))) &&
	           !end_if_refused(p, answered, live)) {
		ps_question_forget(&c->question);
		begin_joint_stage(p);
	}
}

/* Ends the change if copying to the new mirror keeps failing. `is_down`: the mirror is DOWN. */
static void handle_copy_trouble(struct perseas *p, bool is_down, const char *text, uint64_t now)
{
	struct ps_change *c = &p->upkeep.change;
	const bool tried = c->joining->retry.delay_ns > 0 && !ps_session_under_way(c->joining);

	/* No daemon answers at the new address, or it refuses: waiting would not help. */
	if (now >= c->copy_start_deadline || (is_down && tried && !c->was_copied_to))
		finish_change(p, PERSEAS_EUNREACHABLE, text);
	else if (tried)
		ps_text_format(c->text, sizeof(c->text),
		               "the new mirror cannot be copied to yet, and is tried again: %s",
		               text);
}

/* Gives the new mirror's address to the member that should leave, which answers there. Nothing else
 * changes, so the address is recorded like an image id, and the rosters never count jointly. */
static void record_new_member_address(struct perseas *p)
{
	struct ps_change *c = &p->upkeep.change;

	if (!ps_change_plan_set_new_address(p)) {
		finish_change(p, PERSEAS_ENOMEM, "out of memory");
		return;
	}
	if (c->joining && c->leaving) {
		remove_mirror(p, c->joining, "the roster has another address of this mirror");
		ps_mirror_disconnect(p, c->joining);
	}
	c->leaving = c->joining = NULL;
	pthread_mutex_lock(&p->lock);
	move_change(p, PS_CHANGE_SETTLING, "recording the mirror's new address");
	pthread_mutex_unlock(&p->lock);
}

/* Ends the change if the new mirror's address leads to a member of the roster, or gives that
 * address to the member if it is the one that should leave. */
static void handle_member_address(struct perseas *p)
{
	struct ps_change *c = &p->upkeep.change;
	char text[sizeof(c->text)];

	if (c->moves_address && !c->is_leaving_gone && c->after.acks == p->acks) {
		record_new_member_address(p);
		return;
	}
	pthread_mutex_lock(&p->lock);
	ps_text_format(text, sizeof(text), "%s", c->joining->trouble_text);
	pthread_mutex_unlock(&p->lock);
	finish_change(p, PERSEAS_EINVAL, text);
}

static void step_copying(struct perseas *p, uint64_t now)
{
	struct ps_change *c = &p->upkeep.change;
	char text[sizeof(c->joining->trouble_text)];
	enum perseas_mirror_state state;
	struct ps_resync_progress copy = { 0 };

	pthread_mutex_lock(&p->lock);
	state = c->joining ? c->joining->state : PERSEAS_MIRROR_LIVE;
	if (c->joining) {
		memcpy(text, c->joining->trouble_text, sizeof(text));
		ps_resync_progress(p, c->joining, &copy);
	}
	pthread_mutex_unlock(&p->lock);
	if (state == PERSEAS_MIRROR_LIVE) {
		ask_mirrors_before_change(p);
	} else if (state == PERSEAS_MIRROR_RESYNCING) {
		c->was_copied_to = true;
		c->copy_start_deadline = now + COPY_GRACE;
		snprintf(c->text, sizeof(c->text), "copied %llu of %llu bytes to the new mirror",
		         (unsigned long long)copy.sent_bytes, (unsigned long long)copy.total_bytes);
	} else if (p->upkeep.resync.target && p->upkeep.resync.target != c->joining) {
		c->copy_start_deadline = now + COPY_GRACE;
		snprintf(c->text, sizeof(c->text), "waiting for the copy to another mirror");
	} else if (p->upkeep.resync.state == PS_RESYNC_COMPARING) {
		c->was_copied_to = true;
		c->copy_start_deadline = now + COPY_GRACE;
		snprintf(c->text, sizeof(c->text), "comparing the image that the new mirror has");
	} else if (!p->upkeep.resync.target) {
		/* After a broken copy the keeper pauses before it copies again. */
		if (c->was_copied_to && ps_broken_copy_pause_end(c->joining) > now)
			c->copy_start_deadline = ps_broken_copy_pause_end(c->joining) + COPY_GRACE;
		if (c->joining->copy_place)
			c->copy_start_deadline = now + COPY_GRACE;
		handle_copy_trouble(p, state == PERSEAS_MIRROR_DOWN, text, now);
	}
}

/* Tells the rosters to the connected mirrors, and returns those that have recorded them. Mirrors
 * that were loaded from spills and may not know their own ids are told last, once they and the
 * recorders would be enough. */
static uint32_t tell_rosters(struct perseas *p,
                             bool (*are_enough)(struct perseas *p, uint32_t recorders))
{
	const uint32_t set = connected_mirrors(p), last = set & ps_roster_mirrors_to_tell_last(p);
	const uint32_t recorders = ps_roster_tell_mirrors(p, set & ~last);

	return last && are_enough(p, recorders | last) ? ps_roster_tell_mirrors(p, set) : recorders;
}

/* Returns true if the mirrors `recorders` are W of each roster. */
static bool are_recorders_w(struct perseas *p, uint32_t recorders)
{
	return ps_quorum_is_w(p, recorders);
}

/* Returns true if `recorders` suffice for the next stage: every open of the old roster would see
 * the change, and W of the new roster hold what the old roster alone acknowledged. */
static bool may_end_change_stage_locked(struct perseas *p, uint32_t recorders)
{
	const struct ps_change *c = &p->upkeep.change;
	const uint32_t holding = ps_mirrors_holding(p, c->seq_next_roster_must_hold);

	ps_mirrors_poll(p);
	/* An image without the key counts for nothing once the level is raised. */
	if (c->raises_level && c->stage == PS_CHANGE_JOINT &&
	    !ps_quorum_has_all_members(p, recorders))
		return false;
	return ps_quorum_every_open_sees(p, ps_change_plan_reachable(p, recorders)) &&
	       ps_quorum_is_w_of_newest_roster(p, recorders & holding);
}

static bool may_end_change_stage(struct perseas *p, uint32_t recorders)
{
	bool known;

	pthread_mutex_lock(&p->lock);
	known = may_end_change_stage_locked(p, recorders);
	pthread_mutex_unlock(&p->lock);
	return known;
}

/* Tells the rosters to the mirrors, and calls go_on() under the lock if enough have recorded them.
 * Returns true if it did. */
static bool tell_rosters_and_move(struct perseas *p, void (*go_on)(struct perseas *p))
{
	const uint32_t recorders = tell_rosters(p, may_end_change_stage);
	bool known;

	pthread_mutex_lock(&p->lock);
	known = may_end_change_stage_locked(p, recorders);
	if (known)
		go_on(p);
	pthread_mutex_unlock(&p->lock);
	return known;
}

static void mark_change_decided(struct perseas *p)
{
	ps_roster_mark_decided(p);
	move_change(p, PS_CHANGE_MARKED, "the change is decided; recording that on the mirrors");
}

/* Makes the new roster count alone. Caller holds p->lock. */
static void settle_change(struct perseas *p)
{
	ps_roster_settle(p);
	p->upkeep.renewal.is_wanted = p->upkeep.change.raises_level;
	move_change(p, PS_CHANGE_SETTLING, "the new roster counts; recording that on the mirrors");
	ps_end_doubt_if_durable(p);
	ps_wake_waiters(p);
}

static void step_marked(struct perseas *p)
{
	if (tell_rosters_and_move(p, settle_change))
		p->env->ops->wake(p->env, PS_COMMITTER);
}

/* Makes the old roster count alone at once. No mirror has the mark, and none will get it. */
static void cancel_joint_change(struct perseas *p)
{
	pthread_mutex_lock(&p->lock);
	ps_roster_drop_next(p);
	move_change(p, PS_CHANGE_CANCELLING,
	            "the change is taken back; recording that on the mirrors");
	ps_end_doubt_if_durable(p);
	ps_wake_waiters(p);
	pthread_mutex_unlock(&p->lock);
	p->env->ops->wake(p->env, PS_COMMITTER);
	p->env->ops->wake(p->env, PS_KEEPER);
}

static const char cancelled_text[] = "the change was taken back: the roster is as it was before";

int ps_change_cancel(struct perseas *p, char *text, size_t size)
{
	int rc;

	ps_assert_admin(p);
	switch (p->upkeep.change.stage) {
	case PS_CHANGE_COPYING:
	case PS_CHANGE_ASKING:
		finish_change(p, PERSEAS_EQUORUM, cancelled_text);
		return 0;
	case PS_CHANGE_JOINT:
		rc = ps_change_check_may_cancel(p, connected_mirrors(p), text, size);
		if (!rc)
			cancel_joint_change(p);
		return rc;
	case PS_CHANGE_CANCELLING:
		return 0;
	case PS_CHANGE_MARKED:
	case PS_CHANGE_SETTLING:
	case PS_CHANGE_RELEASING:
		snprintf(text, size,
		         "the change is decided and can only be completed: wait for its end");
		return PERSEAS_EBUSY;
	case PS_CHANGE_NONE:
		break;
	}
	snprintf(text, size, "no change of the roster is being made");
	return PERSEAS_EINVAL;
}

void ps_change_cancel_by_order(struct perseas *p, const uint8_t *id)
{
	static const uint8_t none[PS_ID_SIZE];
	struct ps_change *c = &p->upkeep.change;
	char text[sizeof(c->text)];
	int rc;

	if (c->stage == PS_CHANGE_NONE) {
		rc = ps_change_cancel(p, text, sizeof(text));
		reset_change(p, id);
		finish_change(p, rc, text);
		return;
	}
	/* A change that no order asked for reports its result as that of this order. */
	if (!memcmp(c->order_id, none, PS_ID_SIZE))
		memcpy(c->order_id, id, PS_ID_SIZE);
	/* The order stays until it can be obeyed. The change's text says why it cannot yet. */
	if (!memcmp(c->order_id, id, PS_ID_SIZE) &&
	    ps_change_cancel(p, text, sizeof(text)) == PERSEAS_EQUORUM)
		memcpy(c->text, text, sizeof(c->text));
}

static void step_cancelling(struct perseas *p)
{
	if (are_recorders_w(p, tell_rosters(p, are_recorders_w)))
		finish_change(p, PERSEAS_EQUORUM, cancelled_text);
}

/* Removes the mirror that leaves, and tells it that this owner holds no claim on it any more. Its
 * image stays. */
static void remove_mirror_and_ask_release(struct perseas *p, struct ps_mirror *m)
{
	Perseas__ReleaseRequest ask_release = PERSEAS__RELEASE_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_change *c = &p->upkeep.change;

	remove_mirror(p, m, "it was taken out of the roster");
	request.body_case = PERSEAS__REQUEST__BODY_RELEASE;
	request.release = &ask_release;
	c->grace_until = ps_now(p) + ANSWER_GRACE;
	if (m->session.state == PS_SESSION_UP)
		ps_question_ask(p, &c->question, ps_mirror_bit(p, m), &request);
	pthread_mutex_lock(&p->lock);
	move_change(p, PS_CHANGE_RELEASING, "telling the removed mirror that it left");
	pthread_mutex_unlock(&p->lock);
}

static const char readdressed_text[] =
	"the roster has the mirror's new address; nothing was copied";

static const char *success_text(const struct perseas *p)
{
	const struct ps_change *c = &p->upkeep.change;

	if (c->raises_level)
		return "the store has level 1";
	return c->moves_address ? readdressed_text : "the roster is changed";
}

static void step_releasing(struct perseas *p)
{
	ps_pending_take_all_answers(p, ps_now(p));
	if (!is_wait_over(p, true))
		return;
	ps_mirror_disconnect(p, p->upkeep.change.leaving);
	finish_change(p, 0, success_text(p));
}

static void step_settling(struct perseas *p)
{
	struct ps_change *c = &p->upkeep.change;

	if (!are_recorders_w(p, tell_rosters(p, are_recorders_w)))
		return;
	/* The mirror that leaves must hear of it, even if it is behind with its answers. */
	if (c->leaving && ps_pending_is_any_full(p, ps_mirror_bit(p, c->leaving)))
		return;
	if (c->joining)
		c->joining->is_joining = false;
	if (c->leaving)
		remove_mirror_and_ask_release(p, c->leaving);
	else
		finish_change(p, 0, success_text(p));
}

void ps_change_step(struct perseas *p, uint64_t now)
{
	const struct ps_change *c = &p->upkeep.change;

	ps_assert_admin(p);
	if (c->stage == PS_CHANGE_COPYING && c->is_member_address)
		handle_member_address(p);
	if (c->stage == PS_CHANGE_COPYING)
		step_copying(p, now);
	if (c->stage == PS_CHANGE_ASKING)
		step_asking(p);
	if (c->stage == PS_CHANGE_JOINT)
		tell_rosters_and_move(p, mark_change_decided);
	if (c->stage == PS_CHANGE_MARKED)
		step_marked(p);
	if (c->stage == PS_CHANGE_CANCELLING)
		step_cancelling(p);
	if (c->stage == PS_CHANGE_SETTLING)
		step_settling(p);
	if (c->stage == PS_CHANGE_RELEASING)
		step_releasing(p);
}

uint64_t ps_change_due_at(const struct perseas *p, uint64_t now)
{
	const struct ps_change *c = &p->upkeep.change;

	/* Allocating memory for the copy may take longer. Its end wakes the keeper. */
	if (c->stage == PS_CHANGE_COPYING)
		return now < c->copy_start_deadline ? c->copy_start_deadline : PS_NEVER;
	if (c->stage == PS_CHANGE_ASKING || c->stage == PS_CHANGE_RELEASING)
		return now < c->grace_until ? c->grace_until : c->question.deadline;
	return c->stage == PS_CHANGE_NONE ? PS_NEVER : ps_roster_tell_due_at(p);
}
