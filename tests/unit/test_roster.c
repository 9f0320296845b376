/*
 * test_roster.c - the roster is changed while transactions go on: mirrors join, leave and are
 * replaced, dead or alive; owners die in the middle, and the next one finds all that was
 * acknowledged.
 */
#include "roster_rig.h"

#include "../../client/core/mirror.h"
#include "../../client/core/quorum.h"
#include "../../client/keeper/roster.h"

struct unit_fixture unit_fixture = { NULL, owner_teardown };

/* The change is begun, as perseas_roster does; the test goes the keeper's rounds itself. */
static int change(struct owner *o, int kind, const char *address, const char *with, uint32_t acks)
{
	const struct perseas_roster_change wanted = { kind, address, with, acks, 0 };

	return owner_change(o, &wanted);
}

static int replace_gone(struct owner *o, bool gone)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, "sim://0", "sim://4",
		                                      0, gone };

	return owner_change(o, &wanted);
}

static bool over(struct owner *o)
{
	return o->p->upkeep.change.stage == PS_CHANGE_NONE;
}

/* The change is begun, and done. */
static void change_all(struct owner *o, int kind, const char *address, const char *with,
                       uint32_t acks)
{
	assert_int_equal(change(o, kind, address, with, acks), 0);
	owner_complete(o);
}

static unsigned images(struct owner *o, unsigned mirror)
{
	return memory_heap_pieces(o->d->mirrors[mirror].memory) != 0;
}

/* The next owner is given these mirrors, and finds `value` in the first bytes. */
static void assert_found(struct owner *o, unsigned first, unsigned count, uint8_t value)
{
	owner_die(o);
	reopen_with(o, first, count, PERSEAS_TAKEOVER);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(o->bytes[i], value);
}

/* A mirror joins; W becomes what is asked for, or stays a majority; it counts from then on. */
TEST(test_add)
{
	struct owner *o = begin_test(1, 1);

	assert_int_equal(change(o, PERSEAS_ROSTER_ADD, NULL, "sim://1", 2), 0);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	owner_complete(o);
	assert_int_equal(owner_stat(o).acks, 2);
	assert_int_equal(owner_put(o, 0, 100, 4), 0);
	direct_crash(o->d, 1);
	assert_int_equal(owner_put(o, 0, 100, 5), PERSEAS_EINDOUBT);
	direct_start(o->d, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	change_all(o, PERSEAS_ROSTER_ADD, NULL, "sim://2", 0);
	assert_int_equal(owner_stat(o).acks, 2);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(owner_put(o, 0, 100, 6), 0);
	owner_die(o);
	direct_crash(o->d, 0);
	assert_found(o, 1, 2, 6);
}

static void assert_size(struct owner *o, unsigned members, unsigned acks)
{
	owner_complete(o);
	assert_int_equal(o->p->member_count, members);
	assert_int_equal(owner_stat(o).acks, acks);
}

/* A store grows from one mirror to four and shrinks to one again, and nobody names W. */
TEST(test_a_majority_stays_a_majority)
{
	static const unsigned majority[] = { 0, 1, 2, 2, 3 };
	static const char *const all[] = { "sim://0", "sim://1", "sim://2", "sim://3" };
	struct owner *o = begin_test(1, 1);

	for (unsigned n = 2; n <= 4; n++) {
		assert_int_equal(change(o, PERSEAS_ROSTER_ADD, NULL, all[n - 1], 0), 0);
		assert_size(o, n, majority[n]);
		assert_int_equal(o->p->upkeep.change.before.member_count, n - 1);
		assert_int_equal(o->p->upkeep.change.before.acks, majority[n - 1]);
	}
	for (unsigned n = 3; n >= 1; n--) {
		assert_int_equal(change(o, PERSEAS_ROSTER_REMOVE, all[n], NULL, 0), 0);
		assert_size(o, n, majority[n]);
	}
	/* The last mirror can only be replaced. */
	assert_int_equal(change(o, PERSEAS_ROSTER_REMOVE, "sim://0", NULL, 0), PERSEAS_EINVAL);
	assert_non_null(strstr(o->p->upkeep.change.text, "replace"));
	assert_int_equal(owner_put(o, 0, 100, 8), 0);
	assert_found(o, 0, 1, 8);
}

/* W = 1 of three, and W = 3 of three, were chosen by somebody. */
TEST(test_another_w_than_a_majority_stays_while_it_fits)
{
	struct owner *o = begin_test(3, 1);

	assert_int_equal(change(o, PERSEAS_ROSTER_ADD, NULL, "sim://3", 0), 0);
	assert_size(o, 4, 1);
	assert_int_equal(change(o, PERSEAS_ROSTER_REMOVE, "sim://3", NULL, 0), 0);
	assert_size(o, 3, 1);
	assert_int_equal(change(o, PERSEAS_ROSTER_REPLACE, "sim://2", "sim://3", 3), 0);
	assert_size(o, 3, 3);
	assert_int_equal(change(o, PERSEAS_ROSTER_REMOVE, "sim://3", NULL, 0), 0);
	assert_size(o, 2, 2);
	/* A W that the operator names overrides the rule. */
	assert_int_equal(change(o, PERSEAS_ROSTER_ADD, NULL, "sim://4", 1), 0);
	assert_size(o, 3, 1);
}

/* The owner ends while it copies to a mirror that is to join, after each of the keeper's rounds. No
 * change is decided by then: the next owner makes the same one, and copies over what is there. */
TEST(test_a_copy_that_was_left_is_copied_over)
{
	unsigned rounds = 0, copies = 0;
	bool joint;

	do {
		struct owner *o = begin_test(2, 2);

		assert_int_equal(change(o, PERSEAS_ROSTER_REPLACE, "sim://1", "sim://4", 0), 0);
		for (unsigned k = 0; k < rounds && !o->p->next_roster; k++)
			direct_keep(o->d, o->p);
		joint = o->p->next_roster;
		if (!joint) {
			copies += images(o, 4);
			assert_found(o, 0, 2, 2);
			change_all(o, PERSEAS_ROSTER_REPLACE, "sim://1", "sim://4", 0);
		}
	} while (!joint && ++rounds < ROUNDS);
	assert_true(joint && copies > 0);
}

/* A mirror leaves: its image is left where it is, and counts for nothing. */
TEST(test_remove)
{
	struct owner *o = begin_test(3, 2);

	change_all(o, PERSEAS_ROSTER_REMOVE, "sim://0", NULL, 0);
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_REMOVED);
	assert_int_equal(owner_stat(o).acks, 2);
	assert_int_equal(owner_put(o, 0, 100, 7), 0);
	assert_int_equal(images(o, 0), 1);
	owner_die(o);
	/* The removed one is of no help, but knows who is. */
	assert_found(o, 0, 1, 7);
	assert_int_equal(owner_stat(o).live, 2);
	owner_die(o);
	direct_crash(o->d, 1);
	direct_crash(o->d, 2);
	assert_int_equal(open_with(o, 0, 1, PERSEAS_TAKEOVER), PERSEAS_EQUORUM);
	assert_error_says(o, "sim://1");
	direct_start(o->d, 1);
	direct_start(o->d, 2);
	assert_found(o, 1, 2, 7);
}

/* The list still names a mirror that left: it is no loss, whether its daemon answers or not. */
TEST(test_an_old_list)
{
	struct owner *o = begin_test(3, 2);

	change_all(o, PERSEAS_ROSTER_REMOVE, "sim://0", NULL, 0);
	for (unsigned dead = 0; dead < 2; dead++) {
		owner_die(o);
		if (dead)
			direct_crash(o->d, 0);
		reopen_with(o, 0, 2, PERSEAS_TAKEOVER);
		assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_REMOVED);
		assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
		assert_int_equal(owner_stat(o).live, 2);
		assert_int_equal(owner_put(o, 0, 100, 7), 0);
	}
	/* It can come back as a new member. */
	direct_start(o->d, 0);
	change_all(o, PERSEAS_ROSTER_ADD, NULL, "sim://0", 0);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(o->p->mirror_count, 3);
}

/* A mirror that is there is replaced, with W of any size; also the only one. */
TEST(test_replace)
{
	for (unsigned n = 1; n <= 3; n++) {
		for (uint32_t w = 1; w <= n; w++) {
			struct owner *o = begin_test(n, w);

			assert_int_equal(replace_gone(o, false), 0);
			assert_int_equal(owner_put(o, 0, 100, 3), 0);
			owner_complete(o);
			assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_REMOVED);
			assert_int_equal(owner_put(o, 0, 100, 9), 0);
			owner_die(o);
			direct_crash(o->d, 0);
			reopen_with(o, 1, 4, PERSEAS_TAKEOVER);
			assert_int_equal(o->bytes[99], 9);
		}
	}
}

/* A dead mirror is replaced, where W is all of them, too: the commit in doubt is held at last. */
TEST(test_replace_dead)
{
	for (unsigned n = 2; n <= 3; n++) {
		for (uint32_t w = 1; w <= n; w++) {
			struct owner *o = begin_test(n, w);

			direct_crash(o->d, 0);
			direct_keep(o->d, o->p);
			assert_int_equal(owner_put(o, 0, 100, 3), w == n ? PERSEAS_EINDOUBT : 0);
			assert_int_equal(replace_gone(o, n == 2), 0);
			owner_complete(o);
			assert_int_equal(perseas_flush(o->p), 0);
			assert_int_equal(owner_put(o, 0, 100, 9), 0);
			/* The mirror returns with its image, unless it was called gone. */
			if (n > 2)
				direct_start(o->d, 0);
			owner_die(o);
			reopen_with(o, 0, 5, PERSEAS_TAKEOVER);
			assert_int_equal(o->bytes[99], 9);
		}
	}
}

/*
 * Another owner took over through mirrors 0 and 2 while 1 was down, and mirror 0 has truly lost
 * what it held. The first owner reaches only mirror 1: that 0 is gone does not tell it that nobody
 * went by.
 */
TEST(test_gone_is_no_voice_of_three)
{
	struct owner *o = begin_test(3, 2);
	struct perseas_options options = o->options;
	struct ps_error error;
	perseas_t *second;

	direct_crash(o->d, 1);
	options.flags = PERSEAS_TAKEOVER;
	assert_int_equal(ps_open(direct_env(o->d), STORE, "sim://0,sim://2", &options, &second,
	                         &error),
	                 0);
	direct_start(o->d, 1);
	direct_crash(o->d, 0);
	memory_heap_lose(o->d->mirrors[0].memory, NULL);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	replace_gone(o, true);
	owner_keep_stage(o, PS_CHANGE_NONE);
	assert_int_equal(o->p->upkeep.change.result_code, PERSEAS_EQUORUM);
	assert_int_equal(perseas_close(second), 0);
}

/* A dead mirror of two may come back alone, and would not know of the change: it is refused until
 * somebody says that it is gone, or it is there again. One that dies meanwhile is waited for. */
TEST(test_a_dead_one_of_two)
{
	struct owner *o = begin_test(2, 1);

	direct_crash(o->d, 0);
	direct_keep(o->d, o->p);
	assert_int_equal(replace_gone(o, false), PERSEAS_EQUORUM);
	assert_null(o->p->next_roster);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	direct_start(o->d, 0);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	assert_int_equal(replace_gone(o, false), 0);
	o->d->mirrors[0].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	owner_complete(o);
	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	assert_found(o, 1, 4, 9);
}

/* The owner dies after each round of the keeper, and after each request of a kind: the next one
 * has the old roster or the new one, and all that was acknowledged; the change can be made then. */
TEST(test_owner_dies)
{
	static const int kinds[] = {
		0,
		PERSEAS__REQUEST__BODY_ROSTER,
		PERSEAS__REQUEST__BODY_FINISH,
		PERSEAS__REQUEST__BODY_REBUILD,
	};

	for (unsigned i = 0; i < 4 * 5 * 6; i++) {
		struct owner *o = begin_test(3, 1 + i % 3);
		const unsigned rounds = i / 20, dead = i % 5;

		if (dead < 3)
			direct_crash(o->d, dead);
		assert_int_equal(replace_gone(o, false), 0);
		o->d->mirrors[1].break_at = kinds[i % 4];
		o->d->mirrors[1].reply_lost = i % 2;
		for (unsigned r = 0; r < rounds && !over(o); r++)
			direct_keep(o->d, o->p);
		o->d->mirrors[1].break_at = 0;
		owner_die(o);
		if (dead < 3)
			direct_start(o->d, dead);
		reopen_with(o, 0, 5, PERSEAS_TAKEOVER);
		assert_int_equal(o->bytes[99], 2);
		assert_null(o->p->next_roster);
		assert_int_equal(o->p->member_count, 3);
		if (!replace_gone(o, false))
			owner_complete(o);
		assert_int_equal(owner_put(o, 0, 100, 9), 0);
		assert_found(o, 0, 5, 9);
	}
}

/* The new mirror is behind: its roster does not count alone before it has all that was acknowledged
 * by the old one. */
TEST(test_what_was_acknowledged_is_waited_for)
{
	struct owner *o = begin_test(1, 1);

	assert_int_equal(change(o, PERSEAS_ROSTER_REPLACE, "sim://0", "sim://1", 0), 0);
	/* Its only chunk is under way; what comes behind it does not arrive. */
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(o->p->upkeep.resync.sent_bytes, SIZE);
	o->d->mirrors[1].hold = DIRECT_HOLD_WRITES;
	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	for (unsigned i = 0; i < 5; i++)
		direct_keep(o->d, o->p);
	assert_non_null(o->p->next_roster);
	assert_false(over(o));
	o->d->mirrors[1].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 1, 100);
	owner_complete(o);
	owner_die(o);
	direct_crash(o->d, 0);
	assert_found(o, 1, 1, 9);
}

/* The new mirror loses its memory while both rosters count: it is made anew under another id,
 * which the roster that is settled then lists. Of a store of one there is no other to be asked. */
TEST(test_the_new_one_loses_its_memory)
{
	for (unsigned i = 0; i < 6; i++) {
		static const uint8_t sizes[6][2] = { { 1, 1 }, { 2, 1 }, { 2, 2 },
			                             { 3, 1 }, { 3, 2 }, { 3, 3 } };
		const unsigned n = sizes[i][0];
		struct owner *o = begin_test(n, sizes[i][1]);

		assert_int_equal(replace_gone(o, false), 0);
		for (unsigned k = 0; k < n; k++)
			o->d->mirrors[k].break_at = PERSEAS__REQUEST__BODY_ROSTER;
		while (!o->p->next_roster)
			direct_keep(o->d, o->p);
		assert_false(over(o));
		owner_lose(o, 4);
		owner_complete(o);
		/* Where W others hold everything, the change need not wait for it. */
		while (owner_stat(o).live < n)
			direct_keep(o->d, o->p);
		assert_int_equal(owner_put(o, 0, 100, 9), 0);
		owner_die(o);
		direct_crash(o->d, 0);
		reopen_with(o, 1, 4, PERSEAS_TAKEOVER);
		assert_int_equal(o->bytes[99], 9);
		assert_int_equal(owner_stat(o).live, n);
		assert_int_equal(owner_stat(o).mended_whole, 0);
	}
}

/* An image gets another id while a change is decided: a mirror that recorded the earlier next
 * roster must not take it for the one with the new id. */
TEST(test_an_edited_next_roster_is_newer)
{
	struct owner *o = begin_test(3, 2);
	struct perseas *p = o->p;
	const uint8_t id[PS_ID_SIZE] = { 77 };
	uint64_t version;

	pthread_mutex_lock(&p->lock);
	p->is_admin_taken = true;
	p->next_roster = ps_roster_copy(p->roster);
	assert_non_null(p->next_roster);
	ps_rosters_raise_version(p);
	ps_roster_mark_decided(p);
	version = p->next_roster->version;
	ps_roster_set_image_id(p, &p->mirrors[1], id);
	assert_true(ps_id_equal(p->next_roster->members[1]->image_id, id));
	assert_true(p->next_roster->version > version);
	assert_true(p->next_roster->version > p->roster->version);
	ps_roster_free(&p->next_roster);
	p->is_change_decided = false;
	p->is_admin_taken = false;
	pthread_mutex_unlock(&p->lock);
}

/* Impossible changes are refused by name, and change nothing. */
TEST(test_refusals)
{
	struct owner *o = begin_test(2, 2);
	unsigned rounds = 0;

	assert_int_equal(change(o, 0, NULL, NULL, 0), PERSEAS_EINVAL);
	assert_int_equal(change(o, PERSEAS_ROSTER_ADD, NULL, "sim://1", 0), PERSEAS_EINVAL);
	assert_int_equal(change(o, PERSEAS_ROSTER_ADD, NULL, "nonsense:", 0), PERSEAS_EINVAL);
	assert_int_equal(change(o, PERSEAS_ROSTER_REMOVE, "sim://4", NULL, 0), PERSEAS_EINVAL);
	assert_int_equal(change(o, PERSEAS_ROSTER_ADD, NULL, "sim://2", 4), PERSEAS_EINVAL);
	/* A mirror that is not there. */
	direct_crash(o->d, 2);
	assert_int_equal(change(o, PERSEAS_ROSTER_ADD, NULL, "sim://2", 0), 0);
	for (; !over(o); rounds++) {
		assert_true(rounds < ROUNDS);
		direct_keep(o->d, o->p);
		assert_int_equal(owner_put(o, 0, 100, 3), 0);
	}
	assert_int_equal(o->p->upkeep.change.result_code, PERSEAS_EUNREACHABLE);
	assert_int_equal(o->p->member_count, 2);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_REMOVED);
	direct_start(o->d, 2);
	change_all(o, PERSEAS_ROSTER_ADD, NULL, "sim://2", 0);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_LIVE);
}

static void assert_refused(struct owner *o, int kind, const char *address, const char *with,
                           uint32_t acks, int code, const char *words)
{
	int rc = change(o, kind, address, with, acks);

	if (!rc)
		owner_keep_stage(o, PS_CHANGE_NONE);
	assert_null(o->p->next_roster);
	assert_int_equal(rc ? rc : o->p->upkeep.change.result_code, code);
	if (!strstr(o->p->upkeep.change.text, words))
		fail_msg("'%s' does not say '%s'", o->p->upkeep.change.text, words);
}

/* A change that could not be settled would hold every commit back until a dead mirror returns: it
 * is refused at once, and the roster that is short is named. */
TEST(test_what_cannot_settle_is_refused)
{
	struct owner *o = begin_test(3, 2);

	direct_crash(o->d, 2);
	direct_keep(o->d, o->p);
	assert_refused(o, PERSEAS_ROSTER_REMOVE, "sim://1", NULL, 0, PERSEAS_EQUORUM,
	               "as it would be has 1 of 2 mirrors live, and a commit needs 2; not live: "
	               "sim://2");
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	/* R of it would be four. */
	assert_refused(o, PERSEAS_ROSTER_ADD, NULL, "sim://3", 1, PERSEAS_EQUORUM,
	               "the next open needs 4");
	/* A change that removes the dead mirror is a cure. */
	change_all(o, PERSEAS_ROSTER_REMOVE, "sim://2", NULL, 0);
	assert_int_equal(owner_put(o, 0, 100, 4), 0);
	/* The roster that is there lacks one, and the change would not take that one out. */
	o = begin_test(3, 3);
	direct_crash(o->d, 2);
	direct_keep(o->d, o->p);
	assert_refused(o, PERSEAS_ROSTER_ADD, NULL, "sim://3", 3, PERSEAS_EQUORUM,
	               "as it is now has 2 of 3 mirrors live, and a commit needs 3");
	change_all(o, PERSEAS_ROSTER_REPLACE, "sim://2", "sim://3", 0);
}

/* All are connected, and one that the change needs does not answer: it is asked before both rosters
 * count. */
TEST(test_one_that_hangs_is_found_before_both_count)
{
	struct owner *o = begin_test(3, 2);

	assert_int_equal(change(o, PERSEAS_ROSTER_REMOVE, "sim://1", NULL, 0), 0);
	o->p->upkeep.next_heartbeat_at = UINT64_MAX;
	o->d->mirrors[2].break_at = PERSEAS__REQUEST__BODY_CONFIRM;
	direct_keep(o->d, o->p);
	assert_int_equal(o->p->upkeep.change.result_code, PERSEAS_EQUORUM);
	assert_null(o->p->next_roster);
	o->d->mirrors[2].break_at = 0;
}

/* A member dies after both began to count: the message names the roster that is short. */
TEST(test_a_commit_in_doubt_names_the_roster_that_is_short)
{
	struct owner *o = begin_test(3, 2);

	assert_int_equal(change(o, PERSEAS_ROSTER_REMOVE, "sim://1", NULL, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		o->d->mirrors[i].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	while (!o->p->next_roster)
		direct_keep(o->d, o->p);
	direct_crash(o->d, 2);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_put(o, 0, 100, 3), PERSEAS_EINDOUBT);
	assert_says(o, "is held by 1 of 2 mirrors of the new roster, which is not settled yet, and "
	               "2 must hold it");
	direct_start(o->d, 2);
	owner_complete(o);
	assert_int_equal(perseas_flush(o->p), 0);
}

/* A commit in doubt needs W of the roster by which it was sent. */
TEST(test_no_change_while_a_commit_is_in_doubt)
{
	struct owner *o = begin_test(3, 2);

	o->d->mirrors[1].hold = o->d->mirrors[2].hold = DIRECT_HOLD_COMPLETIONS;
	assert_int_equal(owner_put(o, 0, 100, 3), PERSEAS_EINDOUBT);
	assert_refused(o, PERSEAS_ROSTER_REMOVE, "sim://0", NULL, 0, PERSEAS_EBLOCKED, "in doubt");
	o->d->mirrors[1].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 1, 100);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(change(o, PERSEAS_ROSTER_REMOVE, "sim://0", NULL, 0), 0);
	o->d->mirrors[2].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 2, 100);
	owner_complete(o);
}

/* Nobody is at the new mirror's address: the first attempt fails, without a wait. */
TEST(test_a_dead_address_is_told_at_once)
{
	struct owner *o = begin_test(2, 2);

	direct_crash(o->d, 3);
	assert_int_equal(change(o, PERSEAS_ROSTER_ADD, NULL, "sim://3", 0), 0);
	assert_null(strstr(o->p->upkeep.change.text, "copied"));
	direct_keep(o->d, o->p);
	assert_true(over(o));
	assert_int_equal(o->p->upkeep.change.result_code, PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(o->p->upkeep.change.text, "sim://3"));
}

/* A member that nobody named is asked all the same: the roster says where it is. */
TEST(test_members_not_given_are_asked)
{
	struct owner *o = begin_test(3, 2);

	change_all(o, PERSEAS_ROSTER_REPLACE, "sim://2", "sim://3", 0);
	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	assert_found(o, 0, 3, 9);
	assert_int_equal(owner_stat(o).mirrors, 4);
	assert_int_equal(owner_stat(o).live, 3);
}

/* The owner was given two mirrors that the roster does not list, and the last one joins. */
TEST(test_a_mirror_that_joins_is_there_once)
{
	struct owner *o = begin_test(3, 2);
	unsigned found = 0;

	reopen_with(o, 0, 5, 0);
	for (unsigned i = 3; i < 5; i++)
		assert_int_equal(owner_state(o, i), PERSEAS_MIRROR_REMOVED);
	change_all(o, PERSEAS_ROSTER_ADD, NULL, "sim://4", 0);
	assert_int_equal(owner_stat(o).mirrors, 5);
	for (unsigned i = 0; i < 5; i++) {
		if (strcmp(o->p->mirrors[i].address.text, "sim://4") != 0)
			continue;
		assert_int_equal(owner_state(o, i), PERSEAS_MIRROR_LIVE);
		found++;
	}
	assert_int_equal(found, 1);
}
