/*
 * test_follow.c - a standby sees who owns its store, whatever becomes of the mirrors that it was
 * given.
 */
#include "follow_rig.h"

#include "../../client/command/run/mirrors_told.h"

enum { LEFT = 13 }; /* mirrors that a roster named once, beside the three of the list */

static const uint8_t mark[PS_OWNER_MARK] = { 1 };

static void panel_add(struct ps_panel *panel, const char *text)
{
	struct ps_error error;

	assert_int_equal(ps_address_parse(text, &panel->addresses[panel->count++], &error), 0);
}

static void panel_begin(struct ps_panel *panel, struct direct *d, unsigned given)
{
	panel->env = direct_env(d);
	panel->timeout_ms = 1000;
	for (panel->count = 0; panel->count < given;) {
		char text[24];

		snprintf(text, sizeof(text), "sim://%u", panel->count);
		panel_add(panel, text);
	}
	panel->given = panel->count;
}

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

/* A standby that was given the first so many mirrors, and that learnt of others since. */
static void follow_begin(struct owner *o, unsigned given, unsigned others)
{
	follow.store = STORE;
	follow.mark = mark;
	panel_begin(&follow.looks, o->d, given);
	panel_begin(&follow.watches, o->d, given);
	while (follow.looks.count < given + others) {
		panel_add(&follow.looks, "sim://4");
		panel_add(&follow.watches, "sim://4");
	}
}

/* Both panels have the same mirrors, of which the last has this address. */
static void expect_last(unsigned count, const char *address)
{
	assert_int_equal(follow.looks.count, count);
	assert_int_equal(follow.watches.count, count);
	for (unsigned i = 0; i < count; i++)
		assert_string_equal(follow.looks.addresses[i].text,
		                    follow.watches.addresses[i].text);
	assert_string_equal(follow.looks.addresses[count - 1].text, address);
}

/* One mirror was replaced many times, and the panel of all that were ever named is full. The newest
 * one is followed nevertheless, and COMMAND of perseas run is told of it, and opens the store. */
TEST(mirrors_that_left_make_room_for_others, struct owner *o)
{
	replace_member(o, "sim://2", "sim://3");
	direct_crash(o->d, 4);
	direct_crash(o->d, 2);
	follow_begin(o, 3, LEFT);
	assert_int_equal(follow.looks.count, PS_MIRRORS_MAX);
	assert_int_equal(look(), PS_OWNER_LIVES);
	expect_last(3, "sim://2");
	assert_int_equal(setenv(PS_LEARNT_VARIABLE, STORE " 0:1 sim://4", 1), 0);
	ps_mirrors_told(&follow);
	assert_null(getenv(PS_LEARNT_VARIABLE));
	look();
	expect_last(4, "sim://3");
	ps_mirrors_told(&follow);
	assert_string_equal(getenv(PS_LEARNT_VARIABLE), STORE " 1:3 sim://3");
	owner_die(o);
	direct_crash(o->d, 0);
	o->d->now += LONG_NS;
	assert_int_equal(look(), PS_OWNER_NONE);
}

/* One of the list was down while another one was replaced, and is the only one that answers for a
 * while. The one that came is not forgotten for that: what is told then is an older roster. */
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
	assert_true(now.handing.asked);
	assert_false(now.handing.there);
	assert_int_equal(now.handing.id[0], 5);
	assert_int_equal(now.handing.to[0], 5);
	assert_string_equal(now.handing.name, "beta");
	owner_die(o);
	assert_int_equal(look(), PS_OWNER_NONE);
	assert_true(now.handing.asked);
	open_well(o, 0, 3, 0);
	assert_int_equal(look(), PS_OWNER_LIVES);
	assert_false(now.handing.asked);
	owner_die(o);
	assert_int_equal(look(), PS_OWNER_NONE);
	assert_false(now.handing.asked);
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

/* A claim in between, which may come to nothing, leaves the store to the standby that is meant. */
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
	assert_true(now.handing.asked);
	assert_int_equal(now.handing.to[0], 7);
}

/* A name that stands for one mirror, or cannot be looked up until somebody has it stand for one. */
static struct {
	struct ps_env_ops ops;
	const char *list;
	unsigned asked;
} named;

static int named_list(struct ps_env *env, const char *text, char list[PS_LIST_TEXT],
                      struct ps_error *error)
{
	(void)env;
	assert_string_equal(text, "@bank");
	named.asked++;
	if (!named.list)
		return ps_error_set(error, PERSEAS_EUNREACHABLE, "no server answers");
	strcpy(list, named.list);
	return 0;
}

/* All mirrors of a store have new addresses, which only the name of the list leads to. It is looked
 * up again only while no mirror tells of the store: then its roster says where it is. */
TEST(a_name_is_looked_up_again_while_no_mirror_tells_of_the_store, struct owner *o)
{
	follow_begin(o, 0, 1);
	follow.looks.given = follow.watches.given = 1;
	direct_crash(o->d, 4);
	named.ops = *follow.looks.env->ops;
	named.ops.name_list = named_list;
	named.list = NULL;
	named.asked = 0;
	follow.looks.env->ops = &named.ops;
	follow.list = "@bank";
	follow.named_ns = ps_follow_now(&follow);
	look();
	assert_int_equal(named.asked, 0);
	assert_int_equal(now.ownership, PS_OWNER_UNKNOWN);
	o->d->now += LONG_NS;
	look();
	assert_int_equal(named.asked, 1);
	assert_int_equal(now.ownership, PS_OWNER_UNKNOWN);
	named.list = "sim://1";
	look();
	assert_int_equal(named.asked, 1);
	o->d->now += LONG_NS;
	look();
	assert_int_equal(named.asked, 2);
	assert_int_equal(now.ownership, PS_OWNER_LIVES);
	expect_last(4, "sim://2");
	named.list = "sim://7";
	o->d->now += LONG_NS;
	look();
	assert_int_equal(named.asked, 2);
	expect_last(4, "sim://2");
}

/* --- mirrors that say nothing --- */

enum { PATIENCE_MS = 600000 };

/* How long a look takes, of a store with W 2. The first `hung` of its three mirrors say nothing. */
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
		assert_true(ps_panel_answered(&follow.looks, i) == (i >= hung));
		assert_true(ps_follow_silent(&follow, follow.looks.addresses[i].text) ==
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

/* One mirror may not know of an owner that lives; and where one lives, nothing is urgent. */
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
	watches = follow.watches.env;
	eager.real = watches->ops;
	eager.ops = *eager.real;
	eager.ops.receive = eager_receive;
	watches->ops = &eager.ops;
}

/* For each look that shows none of it, there is none for a second. */
TEST(news_that_no_look_shows_make_few_looks, struct owner *o)
{
	follow_eager(o);
	for (unsigned seconds = 0; seconds < 3; seconds++) {
		unsigned looks = 0;

		do {
			assert_true(looks++ < 4);
			look();
		} while (ps_follow_stirred(&follow));
		o->d->now += 1000000000;
		assert_true(ps_follow_stirred(&follow));
	}
}

TEST(after_news_that_a_look_shows_all_are_watched, struct owner *o)
{
	follow_eager(o);
	look();
	assert_false(now.handing.asked);
	for (unsigned i = 0; i < 3; i++)
		ask_to_move(o, i, o->p->epoch, 7);
	assert_true(ps_follow_stirred(&follow));
	look();
	assert_true(now.handing.asked);
	for (unsigned i = 0; i < 3; i++)
		assert_true(follow.mirrors[i].asked);
}

/* Mirrors of which some are of a version that does not know how warm a copy is. Whoever tells one
 * of them finds that out when it sends that, or when it looks for the answer. */
static struct {
	struct ps_env_ops ops;
	const struct ps_env_ops *real;
	const struct ps_panel *panel;
	bool old[3], late[3];
	bool told[3];   /* by the last Watch, how warm the copy is */
	bool breaks[3]; /* the connection has broken */
} aged;

static unsigned aged_mirror(const struct ps_control *control)
{
	for (unsigned i = 0; i < 3; i++)
		if (aged.panel->controls[i] == control)
			return i;
	fail_msg("this is no connection of the panel");
	return 0;
}

static int aged_refuse(struct ps_error *error)
{
	return ps_error_set(error, PERSEAS_EVERSION, "the mirror is of an older version");
}

static int aged_send(struct ps_control *control, const Perseas__Request *request,
                     struct ps_error *error)
{
	const Perseas__WatchRequest *watch = request->watch;
	const unsigned i = aged_mirror(control);

	if (request->body_case != PERSEAS__REQUEST__BODY_WATCH)
		return aged.real->send(control, request, error);
	assert_string_equal(watch->standby->name, "aged");
	aged.told[i] = watch->within_ms || watch->standby->memory || watch->standby->warm;
	if (aged.old[i] && aged.told[i] && !aged.late[i])
		return aged_refuse(error);
	return aged.real->send(control, request, error);
}

static bool aged_answered(struct ps_control *control)
{
	const unsigned i = aged_mirror(control);

	return aged.breaks[i] || (aged.old[i] && aged.told[i]) || aged.real->answered(control);
}

static int aged_receive(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply,
                        int *fds, unsigned *count, struct ps_error *error)
{
	const unsigned i = aged_mirror(control);

	if (aged.breaks[i])
		return ps_error_set(error, PERSEAS_EUNREACHABLE, "the connection has broken");
	if (aged.old[i] && aged.told[i])
		return aged_refuse(error);
	return aged.real->receive(control, until_ns, reply, fds, count, error);
}

/* A look, what came after it, and another look: all mirrors are watched then. */
static void follow_aged(struct owner *o)
{
	o->d->now += 10000000000;
	look();
	ps_follow_stirred(&follow);
	memset(aged.breaks, 0, sizeof(aged.breaks));
	o->d->now += 10000000000;
	look();
	for (unsigned i = 0; i < 3; i++)
		assert_true(follow.mirrors[i].asked);
}

/* They are told what they know, and everything after their upgrade, which ends their sessions. */
TEST(an_older_mirror_is_told_what_it_knows, struct owner *o)
{
	follow_begin(o, 3, 0);
	memset(&aged, 0, sizeof(aged));
	aged.panel = &follow.watches;
	aged.real = follow.watches.env->ops;
	aged.ops = *aged.real;
	aged.ops.send = aged_send;
	aged.ops.answered = aged_answered;
	aged.ops.receive = aged_receive;
	follow.watches.env->ops = &aged.ops;
	follow.name = "aged";
	follow.copies = true;
	follow.memory = 4096;
	aged.old[0] = aged.old[1] = aged.late[1] = true;
	follow_aged(o);
	assert_false(aged.told[0] || aged.told[1]);
	assert_true(aged.told[2]);
	follow_aged(o);
	assert_false(aged.told[0] || aged.told[1]);
	memset(aged.old, 0, sizeof(aged.old));
	aged.breaks[0] = aged.breaks[1] = true;
	follow_aged(o);
	assert_true(aged.told[0] && aged.told[1] && aged.told[2]);
}
