/*
 * test_roster_cancel.c - a change of the roster is taken back, by its owner or by the next one, as
 * long as it is not decided: until W of the new roster can have the mark, a claimer sees that none
 * has.
 */
#include "roster_rig.h"

#include "../../client/core/mirror.h"

struct unit_fixture unit_fixture = { NULL, owner_teardown };

static void change(struct owner *o, int kind, const char *address, const char *with)
{
	const struct perseas_roster_change wanted = { kind, address, with, 0, 0 };

	assert_int_equal(owner_change(o, &wanted), 0);
}

static char refusal[256]; /* why the last cancel was refused */

static int cancel(struct owner *o)
{
	int rc;

	refusal[0] = 0;
	ps_admin_enter(o->p);
	rc = ps_change_cancel(o->p, refusal, sizeof(refusal));
	ps_admin_leave(o->p);
	return rc;
}

/* The first mirror is to leave, and another dies just when both rosters begin to count. */
static struct owner *begin_stuck(void)
{
	struct owner *o = begin_test(3, 2);

	change(o, PERSEAS_ROSTER_REMOVE, "sim://1", NULL);
	o->d->mirrors[2].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	owner_keep_stage(o, PS_CHANGE_JOINT);
	direct_crash(o->d, 2);
	o->d->mirrors[2].break_at = 0;
	direct_keep(o->d, o->p);
	return o;
}

/* Opens the store by all present mirrors, and checks that `members` are settled and all data is
 * found. */
static void assert_found(struct owner *o, unsigned members, uint8_t value)
{
	owner_die(o);
	reopen_with(o, 0, MIRRORS, PERSEAS_TAKEOVER);
	assert_int_equal(o->bytes[99], value);
	assert_null(o->p->next_roster);
	assert_int_equal(o->p->member_count, members);
}

/* Transactions go on, and the next owner finds them. */
static void assert_goes_on(struct owner *o, unsigned members)
{
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	assert_found(o, members, 3);
}

/* Commits are in doubt, since the new roster is short: not when the old one counts again. */
TEST(test_the_owner_takes_it_back)
{
	struct owner *o = begin_stuck();

	assert_int_equal(owner_put(o, 0, 100, 3), PERSEAS_EINDOUBT);
	assert_int_equal(cancel(o), 0);
	assert_null(o->p->next_roster);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(owner_put(o, 0, 100, 4), 0);
	owner_keep_stage(o, PS_CHANGE_NONE);
	assert_int_equal(o->p->upkeep.change.result_code, PERSEAS_EQUORUM);
	assert_non_null(strstr(o->p->upkeep.change.text, "taken back"));
	assert_int_equal(cancel(o), PERSEAS_EINVAL);
	assert_found(o, 3, 4);
	/* A mirror that returns with the cancelled roster gets the right one. */
	direct_start(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_put(o, 0, 100, 5), 0);
	assert_found(o, 3, 5);
}

/* A new mirror that is being copied to has no vote: it is let go at once. */
TEST(test_a_copy_is_taken_back)
{
	struct owner *o = begin_test(2, 2);

	change(o, PERSEAS_ROSTER_ADD, NULL, "sim://3");
	owner_keep(o, 2, PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(cancel(o), 0);
	assert_int_equal(o->p->upkeep.change.stage, PS_CHANGE_NONE);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_REMOVED);
	assert_goes_on(o, 2);
}

/* From this mirror on, each takes one roster, and breaks its connection at the next one. */
static void take_one_roster_from(struct direct *d, unsigned first)
{
	for (unsigned i = first; i < MIRRORS; i++) {
		d->mirrors[i].break_at = PERSEAS__REQUEST__BODY_ROSTER;
		d->mirrors[i].break_skip = 1;
	}
}

static void take_one_roster(void *arg)
{
	take_one_roster_from(arg, 0);
}

/* The mark was sent to a mirror, and not yet to W: both count, and it can only be completed. */
TEST(test_what_is_decided_is_completed)
{
	struct owner *o = begin_test(3, 2);

	change(o, PERSEAS_ROSTER_REPLACE, "sim://0", "sim://4");
	take_one_roster_from(o->d, 1);
	owner_keep_stage(o, PS_CHANGE_MARKED);
	assert_int_equal(o->p->quorum_count, 2);
	assert_int_equal(cancel(o), PERSEAS_EBUSY);
	owner_complete(o);
	assert_int_equal(cancel(o), PERSEAS_EINVAL);
	assert_goes_on(o, 3);
}

/* The owner died before it was decided: no open ends while the new roster is short, and one that
 * takes the change back does. */
TEST(test_the_next_one_takes_it_back)
{
	struct owner *o = begin_stuck();

	owner_die(o);
	assert_int_equal(open_with(o, 0, 3, PERSEAS_TAKEOVER), PERSEAS_EQUORUM);
	if (open_with(o, 0, 3, PERSEAS_TAKEOVER | PERSEAS_CANCEL))
		fail_msg("%s", o->error.text);
	assert_non_null(strstr(perseas_report(o->p), "is taken back"));
	owner_map(o);
	assert_int_equal(o->bytes[99], 2);
	assert_null(o->p->next_roster);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	assert_found(o, 3, 3);
	direct_start(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	change(o, PERSEAS_ROSTER_REMOVE, "sim://1", NULL);
	owner_complete(o);
	assert_found(o, 2, 3);
}

/* One mirror has the mark, and then the owner dies: an open that sees it can only complete the
 * change, and records the mark elsewhere, so that the next open sees it, too. */
TEST(test_the_mark_is_kept_by_who_sees_it)
{
	struct owner *o = begin_test(3, 2);

	change(o, PERSEAS_ROSTER_REPLACE, "sim://0", "sim://4");
	take_one_roster_from(o->d, 1);
	owner_keep_stage(o, PS_CHANGE_MARKED);
	owner_die(o);
	for (unsigned i = 1; i < MIRRORS; i++)
		o->d->mirrors[i].break_at = 0;
	assert_int_equal(open_with(o, 0, 5, PERSEAS_TAKEOVER | PERSEAS_CANCEL), PERSEAS_EBUSY);
	assert_error_says(o, "decided");
	/* The next one records it, and ends when it would settle it. */
	take_one_roster(o->d);
	o->d->on_pause = take_one_roster;
	o->d->on_pause_arg = o->d;
	o->options.open_timeout_ms = 1;
	assert_int_equal(open_with(o, 0, 5, PERSEAS_TAKEOVER), PERSEAS_EUNREACHABLE);
	o->options.open_timeout_ms = 0;
	o->d->on_pause = NULL;
	for (unsigned i = 0; i < MIRRORS; i++)
		o->d->mirrors[i].break_at = 0;
	direct_crash(o->d, 0);
	assert_int_equal(open_with(o, 1, 4, PERSEAS_TAKEOVER | PERSEAS_CANCEL), PERSEAS_EBUSY);
	reopen_with(o, 1, 4, PERSEAS_TAKEOVER);
	assert_goes_on(o, 3);
}

/* Without R of the new roster nobody knows whether W of it have the mark. */
TEST(test_not_without_r_of_the_new_roster)
{
	struct owner *o = begin_test(1, 1);

	change(o, PERSEAS_ROSTER_REPLACE, "sim://0", "sim://1");
	o->d->mirrors[1].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	owner_keep_stage(o, PS_CHANGE_JOINT);
	owner_die(o);
	o->d->mirrors[1].break_at = 0;
	direct_crash(o->d, 1);
	assert_int_equal(open_with(o, 0, 1, PERSEAS_TAKEOVER | PERSEAS_CANCEL), PERSEAS_EQUORUM);
	assert_error_says(o, "sim://1");
	direct_start(o->d, 1);
	/* The same if the mirror answers, and is gone when it must be claimed. */
	o->d->mirrors[1].break_at = PERSEAS__REQUEST__BODY_CLAIM;
	assert_int_equal(open_with(o, 0, 1, PERSEAS_TAKEOVER | PERSEAS_CANCEL), PERSEAS_EQUORUM);
	o->d->mirrors[1].break_at = 0;
	reopen_with(o, 0, 1, PERSEAS_TAKEOVER | PERSEAS_CANCEL);
	assert_int_equal(o->p->member_count, 1);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	/* The copy on the other mirror counts for nothing. */
	direct_crash(o->d, 1);
	assert_found(o, 1, 3);
}

/* While it is decided, and W of the new roster do not have the mark, commits need W of both. */
TEST(test_the_new_one_alone_does_not_count_before_w_have_the_mark)
{
	struct owner *o = begin_test(1, 1);

	change(o, PERSEAS_ROSTER_REPLACE, "sim://0", "sim://1");
	o->d->mirrors[1].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	o->d->mirrors[1].break_skip = 1;
	owner_keep_stage(o, PS_CHANGE_MARKED);
	direct_crash(o->d, 0);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_put(o, 0, 100, 3), PERSEAS_EINDOUBT);
	direct_start(o->d, 0);
	owner_keep_stage(o, PS_CHANGE_NONE);
	assert_int_equal(perseas_flush(o->p), 0);
}

/* The first of two has it, and W of the new roster are two. */
TEST(test_the_mark_counts_on_w_of_the_new_one)
{
	const struct perseas_roster_change two = { PERSEAS_ROSTER_ADD, NULL, "sim://1", 2, 0 };
	struct owner *o = begin_test(1, 1);

	assert_int_equal(owner_change(o, &two), 0);
	o->d->mirrors[1].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	o->d->mirrors[1].break_skip = 1;
	owner_keep_stage(o, PS_CHANGE_MARKED);
	assert_int_equal(o->p->quorum_count, 2);
	owner_complete(o);
	assert_found(o, 2, 2);
}

/* --- one that could not be settled --- */

static void lose(struct owner *o)
{
	memory_heap_lose(o->d->mirrors[2].memory, NULL);
}

static void damage(struct owner *o)
{
	memset(owner_piece(o, 2, "log"), 0xff, PS_PAGE);
}

/* All three mirrors are needed. The third is gone for good, and its replacement dies just when both
 * rosters begin to count. */
static struct owner *begin_short_of(void (*spoil)(struct owner *o))
{
	struct owner *o = begin_test(3, 3);

	direct_crash(o->d, 2);
	spoil(o);
	change(o, PERSEAS_ROSTER_REPLACE, "sim://2", "sim://3");
	o->d->mirrors[3].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	owner_keep_stage(o, PS_CHANGE_JOINT);
	direct_crash(o->d, 3);
	o->d->mirrors[3].break_at = 0;
	direct_keep(o->d, o->p);
	return o;
}

static struct owner *begin_short(void)
{
	return begin_short_of(lose);
}

static void assert_refused(struct owner *o)
{
	assert_int_equal(cancel(o), PERSEAS_EQUORUM);
	assert_non_null(strstr(refusal, "not connected: sim://2. Start them"));
	assert_non_null(strstr(refusal, "or let the change be completed"));
	assert_int_equal(o->p->upkeep.change.stage, PS_CHANGE_JOINT);
	assert_non_null(o->p->next_roster);
	assert_int_equal(o->p->quorum_count, 2);
}

/* The change is as it was: when the new mirror is back it is completed, and others can be made. */
TEST(test_a_cancel_that_could_not_be_settled_is_refused)
{
	struct owner *o = begin_short();

	assert_refused(o);
	direct_start(o->d, 3);
	owner_complete(o);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	change(o, PERSEAS_ROSTER_REPLACE, "sim://1", "sim://4");
	owner_complete(o);
	assert_goes_on(o, 3);
}

/* The member that was to leave is started again, with nothing in its memory: that is enough. */
TEST(test_an_empty_member_lets_it_be_taken_back)
{
	struct owner *o = begin_short();

	assert_refused(o);
	direct_start(o->d, 2);
	for (unsigned rounds = 0; cancel(o); rounds++) {
		assert_true(rounds < ROUNDS);
		direct_keep(o->d, o->p);
	}
	owner_keep_stage(o, PS_CHANGE_NONE);
	assert_non_null(strstr(o->p->upkeep.change.text, "taken back"));
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_goes_on(o, 3);
}

/* A member with a damaged image is not made anew until that image is dropped: it counts for
 * nothing. */
TEST(test_a_damaged_member_does_not)
{
	struct owner *o = begin_short_of(damage);

	direct_start(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_LOST);
	assert_refused(o);
	direct_start(o->d, 3);
	owner_complete(o);
	assert_goes_on(o, 3);
}

/* Nor may the next owner record the roster before the change where it is short: it could not open
 * the store then, and nobody could. It claims nothing, and may complete the change. */
TEST(test_the_next_one_is_refused_it_too)
{
	struct owner *o = begin_short();
	uint64_t epoch = o->p->epoch;

	owner_die(o);
	direct_start(o->d, 3);
	assert_int_equal(open_with(o, 0, 4, PERSEAS_TAKEOVER | PERSEAS_CANCEL), PERSEAS_EQUORUM);
	assert_error_says(o, "cannot be taken back: 2 of 3");
	assert_error_says(o, "sim://2");
	assert_error_says(o, "without PERSEAS_CANCEL");
	if (open_with(o, 0, 4, PERSEAS_TAKEOVER))
		fail_msg("%s", o->error.text);
	assert_int_equal(o->p->epoch, epoch + 1);
	owner_map(o);
	assert_goes_on(o, 3);
}

/* A member that lost its memory counts for it, although the new mirror is gone: by the old roster
 * alone it may be made anew. */
TEST(test_the_next_one_takes_it_back_with_an_empty_member)
{
	struct owner *o = begin_short();

	owner_die(o);
	assert_int_equal(open_with(o, 0, 4, PERSEAS_TAKEOVER), PERSEAS_EQUORUM);
	direct_start(o->d, 2);
	direct_start(o->d, 3);
	reopen_with(o, 0, 4, PERSEAS_TAKEOVER | PERSEAS_CANCEL);
	assert_goes_on(o, 3);
}
