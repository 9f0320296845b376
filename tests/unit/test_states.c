/*
 * test_states.c - tables of states allow the moves that are listed here, one by one, and no others;
 * a move that a table does not allow ends the process; and each move is traced in one line.
 */
#include "ends.h"
#include "owner.h"
#include "traced.h"

#include "../../client/core/quorum.h"
#include "../../client/keeper/attempt.h"
#include "../../client/keeper/roster.h"
#include "../../client/keeper/resync.h"
#include "../../client/keeper/session.h"
#include "../../client/standby/standby.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

enum { MOVES_MAX = 40, ROUNDS_MAX = 200 };

struct drawn {
	const struct ps_states *states;
	unsigned count;
	const char *moves[MOVES_MAX]; /* "from, then to" */
};

/* Written by hand from the meaning of each state, not copied from the tables. */
/* clang-format off */
static const struct drawn drawn[] = {
	{ &ps_session_states, 7,
	  { "none, then asking", "none, then up", "asking, then queuing", "asking, then claiming",
	    "asking, then preparing", "asking, then none", "queuing, then asking",
	    "queuing, then none", "claiming, then attaching",
	    "claiming, then preparing", "claiming, then none", "attaching, then preparing",
	    "attaching, then none", "preparing, then up", "preparing, then none",
	    "up, then none" } },
	{ &ps_resync_states, 12,
	  { "none, then asking", "none, then comparing", "none, then making",
	    "asking, then recording", "asking, then making", "asking, then none",
	    "comparing, then making", "comparing, then none",
	    "recording, then making", "recording, then none", "making, then attaching",
	    "making, then adding", "making, then copying", "making, then none",
	    "attaching, then adding", "attaching, then copying", "attaching, then none",
	    "adding, then copying", "adding, then none", "copying, then reading",
	    "copying, then confirming", "copying, then finishing", "copying, then none",
	    "reading, then reading", "reading, then vouching", "reading, then copying",
	    "reading, then none",
	    "vouching, then reading", "vouching, then copying", "vouching, then none",
	    "confirming, then finishing", "confirming, then copying", "confirming, then none",
	    "finishing, then none" } },
	{ &ps_change_stages, 8,
	  { "none, then copying", "copying, then asking", "copying, then settling",
	    "copying, then none",
	    "asking, then joint", "asking, then copying", "asking, then none",
	    "joint, then marked", "joint, then cancelling", "marked, then settling",
	    "settling, then releasing", "settling, then none", "releasing, then none",
	    "cancelling, then none" } },
	{ &ps_attempt_steps, 10,
	  { "none, then probed", "none, then superseded", "probed, then made",
	    "probed, then judged", "probed, then none",
	    "made, then probed", "made, then none", "judged, then claimed", "judged, then none",
	    "claimed, then chosen", "claimed, then none", "chosen, then confirmed",
	    "chosen, then none", "confirmed, then adopted", "confirmed, then none",
	    "adopted, then open", "adopted, then none", "open, then none",
	    "open, then superseded" } },
	{ &ps_standby_stages, 3,
	  { "idle, then following", "following, then handed", "following, then idle",
	    "handed, then idle" } },
};
/* clang-format on */

enum { TABLES = sizeof(drawn) / sizeof(drawn[0]) };

static bool is_drawn(const struct drawn *d, unsigned from, unsigned to)
{
	char text[80];

	snprintf(text, sizeof(text), "%s, then %s", d->states->rows[from].name,
	         d->states->rows[to].name);
	for (unsigned i = 0; i < MOVES_MAX && d->moves[i]; i++)
		if (!strcmp(text, d->moves[i]))
			return true;
	return false;
}

static unsigned count_moves(const struct drawn *d)
{
	unsigned count = 0;

	while (count < MOVES_MAX && d->moves[count])
		count++;
	return count;
}

TEST_WITH(tables_allow_what_is_drawn_and_no_more, NULL, NULL)
{
	for (unsigned i = 0; i < TABLES; i++) {
		const struct drawn *d = &drawn[i];
		unsigned allowed = 0;

		assert_int_equal(d->states->count, d->count);
		for (unsigned from = 0; from < d->count; from++) {
			for (unsigned to = 0; to < d->count; to++) {
				const bool leads = ps_states_allow(d->states, from, to);

				allowed += leads;
				if (leads != is_drawn(d, from, to))
					fail_msg("%s, then %s: %s", d->states->rows[from].name,
					         d->states->rows[to].name,
					         leads ? "allowed" : "not allowed");
			}
		}
		assert_int_equal(allowed, count_moves(d));
	}
}

static unsigned reached_from(const struct ps_states *states, unsigned first)
{
	unsigned reached = PS_TO(first);

	for (unsigned round = 0; round < states->count; round++)
		for (unsigned i = 0; i < states->count; i++)
			if (reached & PS_TO(i))
				reached |= states->rows[i].next_states;
	return reached;
}

/* From the first state to each, and from each to the first, unless it is for good: nothing else
 * gets stuck. */
TEST_WITH(every_state_is_reached_and_is_left, NULL, NULL)
{
	for (unsigned i = 0; i < TABLES; i++) {
		const struct ps_states *states = drawn[i].states;

		assert_int_equal(reached_from(states, 0), PS_TO(states->count) - 1);
		for (unsigned from = 0; from < states->count; from++)
			assert_true(
				(states == &ps_attempt_steps && from == PS_ATTEMPT_SUPERSEDED) ||
				reached_from(states, from) & PS_TO(0));
	}
}

TEST_WITH(states_that_do_not_exist_lead_nowhere, NULL, NULL)
{
	for (unsigned i = 0; i < TABLES; i++) {
		const struct ps_states *states = drawn[i].states;

		for (unsigned known = 0; known < states->count; known++) {
			assert_false(ps_states_allow(states, known, states->count));
			assert_false(ps_states_allow(states, states->count, known));
		}
	}
}

static void step_up(struct owner *o)
{
	ps_states_move(o->p->env, &ps_session_states, PS_SESSION_UP, PS_SESSION_CLAIMING,
	               "session");
}

/* None is up without a claim that was granted, or an open that had it. */
TEST(a_move_that_is_not_allowed_ends_the_process, struct owner *o)
{
	assert_ends(o, step_up);
}

/* A mirror's daemon is started again. */
TEST(the_moves_of_a_session_are_traced, struct owner *o)
{
	static const char *const moves[] = { "up, then none",
		                             "none, then asking",
		                             "asking, then claiming",
		                             "claiming, then attaching",
		                             "attaching, then preparing",
		                             "preparing, then up",
		                             NULL };
	struct traced t = { .of = "session with sim://1: " };

	listen_to(o, &t);
	direct_crash(o->d, 1);
	direct_start(o->d, 1);
	direct_keep(o->d, o->p);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_traced(o, &t, moves);
}

/* The mirror lost its memory, so questions precede and follow the copy. */
TEST(the_states_of_a_copy_are_traced, struct owner *o)
{
	static const char *const moves[] = {
		"none, then asking",          "asking, then recording",  "recording, then making",
		"making, then attaching",     "attaching, then copying", "copying, then reading",
		"reading, then vouching",     "vouching, then copying",  "copying, then confirming",
		"confirming, then finishing", "finishing, then none",    NULL
	};
	struct traced t = { .of = "copy to sim://1: " };

	listen_to(o, &t);
	owner_lose(o, 1);
	direct_keep(o->d, o->p);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_traced(o, &t, moves);
}

static const struct perseas_roster_change leaves = { PERSEAS_ROSTER_REMOVE, "sim://2", NULL, 0, 0 };

/* A mirror is to leave, which is taken back when both rosters count; then it leaves. */
TEST(the_stages_of_a_change_are_traced, struct owner *o)
{
	static const char *const moves[] = { "none, then copying",
		                             "copying, then asking",
		                             "asking, then joint",
		                             "joint, then cancelling",
		                             "cancelling, then none",
		                             "none, then copying",
		                             "copying, then asking",
		                             "asking, then joint",
		                             "joint, then marked",
		                             "marked, then settling",
		                             "settling, then releasing",
		                             "releasing, then none",
		                             NULL };
	struct traced t = { .of = "change of the roster: " };
	char text[256];

	listen_to(o, &t);
	o->d->mirrors[1].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	assert_int_equal(owner_change(o, &leaves), 0);
	owner_keep_stage(o, PS_CHANGE_JOINT);
	o->d->mirrors[1].break_at = 0;
	ps_admin_enter(o->p);
	assert_int_equal(ps_change_cancel(o->p, text, sizeof(text)), 0);
	ps_admin_leave(o->p);
	owner_keep_stage(o, PS_CHANGE_NONE);
	assert_int_equal(o->p->upkeep.change.result_code, PERSEAS_EQUORUM);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_change(o, &leaves), 0);
	owner_keep_stage(o, PS_CHANGE_NONE);
	assert_int_equal(o->p->upkeep.change.result_code, 0);
	assert_traced(o, &t, moves);
}

static void step_change(struct owner *o)
{
	ps_change_step(o->p, ps_now(o->p));
}

static void begin_change(struct owner *o)
{
	owner_change(o, &leaves);
}

/* Only the keeper, and a thread with admin, may step a change. */
TEST(a_change_is_stepped_with_admin, struct owner *o)
{
	assert_ends(o, step_change);
}

/* A change is in progress. */
TEST(a_second_change_ends_the_process, struct owner *o)
{
	assert_int_equal(owner_change(o, &leaves), 0);
	assert_ends(o, begin_change);
}

/* Each mistake of ours that a stage's invariant is for: the rosters are not what they are then. */
TEST(stages_say_what_the_rosters_are, struct owner *o)
{
	static const bool joint[] = {
		[PS_CHANGE_JOINT] = true, [PS_CHANGE_MARKED] = true, [PS_CHANGE_CANCELLING] = false
	};
	struct perseas *p = o->p;
	const struct ps_change before = p->upkeep.change;
	Perseas__Roster *wanted;
	struct ps_mirror *old = &p->mirrors[2];

	assert_int_equal(owner_change(o, &leaves), 0);
	wanted = ps_roster_copy(p->roster);
	assert_non_null(wanted);
	ps_roster_remove_member(wanted, old->image_id);
	wanted->acks = p->upkeep.change.after.acks;
	for (enum ps_change_stage stage = PS_CHANGE_NONE; stage <= PS_CHANGE_CANCELLING; stage++) {
		Perseas__Roster *const settled = p->roster;

		p->upkeep.change.stage = stage;
		for (unsigned bits = 0; bits < 8; bits++) {
			const bool two = bits & 1, marked = bits & 2, changed = bits & 4;
			Perseas__Roster *const counts = changed ? wanted : settled;
			const bool sound = joint[stage]
			                           ? two && changed &&
			                                     marked == (stage == PS_CHANGE_MARKED)
			                           : !two && !marked &&
			                                     (changed ||
			                                      (stage != PS_CHANGE_SETTLING &&
			                                       stage != PS_CHANGE_RELEASING));

			p->next_roster = two ? counts : NULL;
			p->roster = two ? settled : counts;
			p->is_change_decided = marked;
			if (ps_change_matches_rosters(p) != sound)
				fail_msg("%s: %u", ps_change_stages.rows[stage].name, bits);
		}
		p->roster = settled;
	}
	p->next_roster = NULL;
	p->is_change_decided = false;
	p->upkeep.change = before;
	ps_roster_free(&wanted);
}

/* A joining mirror has no vote before the change, and is not joining after it. */
TEST(whoever_joins_does_so_while_the_change_goes_on, struct owner *o)
{
	struct perseas *p = o->p;
	const struct ps_change before = p->upkeep.change;

	p->upkeep.change.joining = &p->mirrors[2];
	for (unsigned joins = 0; joins < 2; joins++) {
		p->mirrors[2].is_joining = joins;
		p->upkeep.change.stage = PS_CHANGE_NONE;
		assert_int_equal(ps_change_matches_rosters(p), !joins);
		p->upkeep.change.stage = PS_CHANGE_COPYING;
		assert_int_equal(ps_change_matches_rosters(p), joins);
		p->upkeep.change.stage = PS_CHANGE_CANCELLING;
		assert_int_equal(ps_change_matches_rosters(p), joins);
	}
	p->mirrors[2].is_joining = false;
	p->upkeep.change = before;
}

/* Another owner lives that claimed the store. */
TEST(an_owner_that_is_superseded_says_so, struct owner *o)
{
	static const char *const moves[] = { "open, then superseded", NULL };
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct traced t = { .of = "open of store 'bank': " };
	perseas_t *second;

	options.flags = PERSEAS_TAKEOVER;
	assert_int_equal(direct_open(o->d, STORE, &options, &second, &o->error), 0);
	listen_to(o, &t);
	for (unsigned rounds = 0; !o->p->is_superseded; rounds++) {
		assert_true(rounds < ROUNDS_MAX);
		direct_keep(o->d, o->p);
	}
	assert_traced(o, &t, moves);
	assert_int_equal(perseas_close(second), 0);
}
