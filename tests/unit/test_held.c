/*
 * test_held.c - what takes the lock, or admin, for granted says so by an assertion: without it the
 * process ends, and with it nothing happens.
 */
#include "ends.h"
#include "owner.h"

#include "../../client/core/detour.h"
#include "../../client/core/event.h"
#include "../../client/core/mirror.h"
#include "../../client/core/pace.h"
#include "../../client/core/quorum.h"
#include "../../client/core/segment.h"
#include "../../client/core/timing.h"
#include "../../client/keeper/renew.h"
#include "../../client/keeper/roster.h"

static void note_move(struct owner *o)
{
	ps_event_note_move(o->p, &o->p->mirrors[0], PERSEAS_MIRROR_STALE, "");
}

static void ask_trouble(struct owner *o)
{
	ps_mirror_trouble_text(o->p, &o->p->mirrors[0]);
}

static void renew_quorum(struct owner *o)
{
	ps_quorums_recompute(o->p);
}

static void renew_timing(struct owner *o)
{
	ps_timing_adapt(o->p);
}

static void settle_doubt(struct owner *o)
{
	o->p->commit.in_doubt_seq = 1;
	ps_end_doubt_if_durable(o->p);
}

static void renew_layout(struct owner *o)
{
	ps_layout_refresh(o->p);
}

static void step_detour(struct owner *o)
{
	ps_detour_step(o->p, ps_now(o->p));
}

static void step_renewal(struct owner *o)
{
	ps_renew_step(o->p, ps_now(o->p));
}

static void stamp_roster(struct owner *o)
{
	ps_rosters_raise_version(o->p);
}

static void record_roster(struct owner *o)
{
	ps_roster_record_on_mirrors(o->p, 0);
}

/* The end of a change, as far as the rosters go. */
static void change_roster(struct owner *o, void (*change)(struct perseas *p))
{
	o->p->next_roster = ps_roster_copy(o->p->roster);
	change(o->p);
}

static void mark_roster(struct owner *o)
{
	change_roster(o, ps_roster_mark_decided);
}

static void settle_roster(struct owner *o)
{
	o->p->is_change_decided = true;
	change_roster(o, ps_roster_settle);
}

static void cancel_roster(struct owner *o)
{
	change_roster(o, ps_roster_drop_next);
}

static void add_segment(struct owner *o)
{
	ps_segment_add(o->p, "added", PS_PAGE);
}

static ends_step *const with_lock[] = { note_move,    ask_trouble, renew_quorum,  renew_timing,
	                                settle_doubt, mark_roster, settle_roster, cancel_roster };
static ends_step *const with_admin[] = { renew_layout, step_detour,   step_renewal,
	                                 stamp_roster, record_roster, add_segment };

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

TEST(what_needs_the_lock_has_it, struct owner *o)
{
	for (unsigned i = 0; i < sizeof(with_lock) / sizeof(with_lock[0]); i++) {
		assert_ends(o, with_lock[i]);
		pthread_mutex_lock(&o->p->lock);
		assert_int_equal(ends_with(o, with_lock[i]), 0);
		pthread_mutex_unlock(&o->p->lock);
	}
}

TEST(what_needs_admin_has_it, struct owner *o)
{
	for (unsigned i = 0; i < sizeof(with_admin) / sizeof(with_admin[0]); i++) {
		assert_ends(o, with_admin[i]);
		ps_admin_enter(o->p);
		assert_int_equal(ends_with(o, with_admin[i]), 0);
		ps_admin_leave(o->p);
	}
}
