/*
 * test_follow.c - a standby sees who owns its store, whatever becomes of the mirrors that it was
 * given.
 */
#include "follow_rig.h"

#include "../../client/command/run/tell_command.h"

enum { LEFT = 13 }; /* mirrors that former rosters named, besides the three of the list */

static int setup(void **state)
{
	*state = begin(3, 2);
	return 0;
}

static int teardown(void **state)
{
	follow_end();
	return owner_teardown(state);
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Returns what COMMAND of perseas run would inherit now. */
static struct ps_inherited tell(void)
{
	struct ps_inherited told;

	ps_set_inherited_variable(&follow, -1);
	ps_inherited_read(&told, getenv(PS_INHERITED_VARIABLE));
	unsetenv(PS_INHERITED_VARIABLE);
	return told;
}

/* One mirror was replaced many times, and no more peers fit. The newest one is followed all the
 * same; COMMAND of perseas run is told about it, and opens the store. */
TEST(mirrors_that_left_make_room_for_others, struct owner *o)
{
	struct ps_inherited told;

	replace_member(o, "sim://2", "sim://3");
	direct_crash(o->d, 4);
	direct_crash(o->d, 2);
	follow_begin(o, 3, LEFT);
	assert_int_equal(follow.status_peers.count, PS_MIRRORS_MAX);
	assert_int_equal(look(), PS_OWNER_LIVES);
	expect_last(3, "sim://2");
	assert_int_equal(setenv(PS_INHERITED_VARIABLE, "learnt 0:1 sim://4\nwarm 7\n", 1), 0);
	told = tell();
	assert_int_equal(told.unlisted_mirrors.count, 0);
	assert_int_equal(told.warm_fd, 0);
	look();
	expect_last(4, "sim://3");
	told = tell();
	assert_string_equal(told.store, STORE);
	assert_string_equal(told.list, follow.list);
	assert_string_equal(told.list_mirrors, "sim://0,sim://1,sim://2");
	assert_int_equal(told.unlisted_mirrors.epoch, 1);
	assert_int_equal(told.unlisted_mirrors.version, 3);
	assert_int_equal(told.unlisted_mirrors.count, 1);
	assert_string_equal(told.unlisted_mirrors.addresses[0].text, "sim://3");
	owner_die(o);
	direct_crash(o->d, 0);
	o->d->now += LONG_NS;
	assert_int_equal(look(), PS_OWNER_NONE);
}

/* A listed mirror was down while another one was replaced, and for a while only it answers, with an
 * older roster. The new mirror is not forgotten because of that. */
TEST(members_of_the_newest_roster_stay, struct owner *o)
{
	follow_begin(o, 3, 0);
	direct_crash(o->d, 0);
	direct_keep(o->d, o->p);
	replace_member(o, "sim://1", "sim://3");
	look();
	expect_last(4, "sim://3");
	owner_die(o);
	direct_crash(o->d, 1);
	direct_crash(o->d, 2);
	direct_crash(o->d, 3);
	direct_start(o->d, 0);
	o->d->now += LONG_NS;
	assert_int_equal(look(), PS_OWNER_UNKNOWN);
	expect_last(4, "sim://3");
	direct_start(o->d, 3);
	o->d->now += LONG_NS;
	assert_int_equal(look(), PS_OWNER_NONE);
}

/* Two moves were asked for at once: standbys choose the same one until there is another owner. */
TEST(standbys_agree_on_who_is_next, struct owner *o)
{
	ask_to_move(o, 0, o->p->epoch, 7);
	ask_to_move(o, 1, o->p->epoch, 5);
	ask_to_move(o, 2, o->p->epoch, 6);
	follow_begin(o, 3, 0);
	look();
	assert_true(now.handover.exists);
	assert_false(now.handover.is_present);
	assert_int_equal(now.handover.id[0], 5);
	assert_int_equal(now.handover.to[0], 5);
	assert_string_equal(now.handover.name, "beta");
	owner_die(o);
	assert_int_equal(look(), PS_OWNER_NONE);
	assert_true(now.handover.exists);
	open_well(o, 0, 3, 0);
	assert_int_equal(look(), PS_OWNER_LIVES);
	assert_false(now.handover.exists);
	owner_die(o);
	assert_int_equal(look(), PS_OWNER_NONE);
	assert_false(now.handover.exists);
}

static void cut_nothing(struct session *session)
{
	(void)session;
}

static bool writes_nothing(struct session *session)
{
	(void)session;
	return false;
}

/* Somebody else has claimed that mirror, and adopted nothing. */
static void claim_at(struct owner *o, unsigned mirror, uint64_t epoch, struct session *session)
{
	static const struct session_ops ops = { .cut = cut_nothing, .may_write = writes_nothing };
	Perseas__ClaimRequest ask = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__ClaimReply reply = PERSEAS__CLAIM_REPLY__INIT;
	uint8_t claimer[PS_ID_SIZE] = { 9 };
	struct why why;

	*session = (struct session){ .ops = &ops, .peer = "a claimer" };
	ask.store = (char *)(uintptr_t)STORE;
	ask.epoch = epoch;
	ask.owner = (ProtobufCBinaryData){ PS_ID_SIZE, claimer };
	assert_int_equal(store_claim(o->d->mirrors[mirror].stores, session, &ask, &reply, &why), 0);
}

/* A claim in between, which may fail, leaves the store to the chosen standby. */
TEST(a_claim_does_not_end_a_handover, struct owner *o)
{
	const uint64_t epoch = o->p->epoch;
	struct session claimer;

	for (unsigned i = 0; i < 3; i++)
		ask_to_move(o, i, epoch, 7);
	follow_begin(o, 3, 0);
	owner_die(o);
	claim_at(o, 1, epoch + 1, &claimer);
	assert_int_equal(look(), PS_OWNER_LIVES);
	store_session_ended(&claimer);
	assert_int_equal(look(), PS_OWNER_NONE);
	assert_true(now.handover.exists);
	assert_int_equal(now.handover.to[0], 7);
}

/* --- mirrors that say nothing --- */

enum { PATIENCE_MS = 600000 };

/* Returns how long a look takes at a store with W = 2, when the first `hung` of its three mirrors
 * are silent. */
static uint64_t look_at_hung(unsigned hung, bool owned, enum ps_ownership expected)
{
	struct owner *o = begin(3, 2);
	struct ps_error error;
	uint64_t began, took;

	if (!owned)
		owner_die(o);
	for (unsigned i = 0; i < hung; i++)
		direct_hang(o->d, i);
	assert_int_equal(ps_follow_open(&follow, STORE, "sim://0,sim://1,sim://2", mark,
	                                direct_env(o->d), direct_env(o->d), PATIENCE_MS, &error),
	                 0);
	began = o->d->now;
	look();
	took = (o->d->now - began) / 1000000;
	assert_int_equal(now.ownership, expected);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(ps_peers_answered(&follow.status_peers, i) == (i >= hung));
		assert_true(ps_follow_is_silent(&follow, follow.status_peers.addresses[i].text) ==
		            (i < hung));
	}
	follow_end();
	for (unsigned i = 0; i < hung; i++)
		direct_unhang(o->d, i);
	owner_free(o);
	return took;
}

/* The other two are enough for an open, which is not held up. */
TEST_WITH(one_that_says_nothing_is_not_waited_for, NULL, NULL)
{
	const uint64_t took = look_at_hung(1, false, PS_OWNER_NONE);

	assert_true(took >= 400 && took < 2000);
}

/* One mirror may not know of an owner that lives; and if an owner lives, nothing is urgent. */
TEST_WITH(others_are_waited_for, NULL, NULL)
{
	assert_true(look_at_hung(2, false, PS_OWNER_UNKNOWN) >= PATIENCE_MS);
	assert_true(look_at_hung(1, true, PS_OWNER_LIVES) >= PATIENCE_MS);
}

/* Mirrors that answer each Watch at once, and say that there is news. */
static struct {
	struct ps_env_ops ops;
	const struct ps_env_ops *real;
} eager;

static int eager_receive(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply,
                         int *fds, unsigned *count, struct ps_error *error)
{
	const int rc = eager.real->receive(control, until_ns, reply, fds, count, error);

	if (!rc && (*reply)->body_case == PERSEAS__REPLY__BODY_WATCH)
		(*reply)->watch->epoch++;
	return rc;
}

static void follow_eager(struct owner *o)
{
	struct ps_env *watches;

	follow_begin(o, 3, 0);
	watches = follow.watch_peers.env;
	eager.real = watches->ops;
	eager.ops = *eager.real;
	eager.ops.receive = eager_receive;
	watches->ops = &eager.ops;
}

/* Each announced change that no look shows makes looks rarer: the next comes a second later. */
TEST(news_that_no_look_shows_make_few_looks, struct owner *o)
{
	follow_eager(o);
	for (unsigned seconds = 0; seconds < 3; seconds++) {
		unsigned looks = 0;

		do {
			assert_true(looks++ < 4);
			look();
		} while (ps_follow_is_look_due(&follow));
		o->d->now += 1000000000;
		assert_true(ps_follow_is_look_due(&follow));
	}
}

TEST(after_news_that_a_look_shows_all_are_watched, struct owner *o)
{
	follow_eager(o);
	look();
	assert_false(now.handover.exists);
	for (unsigned i = 0; i < 3; i++)
		ask_to_move(o, i, o->p->epoch, 7);
	assert_true(ps_follow_is_look_due(&follow));
	look();
	assert_true(now.handover.exists);
	for (unsigned i = 0; i < 3; i++)
		assert_true(follow.mirrors[i].asked);
}
