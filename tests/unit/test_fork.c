/*
 * test_fork.c - a store of two, both of which acknowledge. The operator called one of them gone,
 * and it came back: its image and its old roster are enough to open the store once more. What the
 * store has become meanwhile must not be copied over by that, whatever epochs there were.
 */
#include "follow_rig.h"

#include "../../server/store/store_private.h"

enum {
	BACK = 0,  /* was called gone, and came back */
	OTHER = 1, /* the other one of the two: both the store and the fork may have it */
	NEW = 4,   /* took its place */
	OPENS = 6, /* of the fork, each under a higher epoch */
};

static int add(struct owner *o, const char *with)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_ADD, NULL, with, 1, false };

	return change_roster(o, &wanted);
}

static int take_out(struct owner *o, const char *address)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REMOVE, address, NULL, 1,
		                                      false };

	return change_roster(o, &wanted);
}

static int replace(struct owner *o, const char *address, const char *with, bool gone)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, address, with, 0,
		                                      gone };

	return change_roster(o, &wanted);
}

static void begin_at(struct owner *o, unsigned mirror)
{
	owner_die(o);
	open_well(o, mirror, 1, PERSEAS_TAKEOVER);
	owner_map(o);
}

/* The store is that of NEW alone, with a 9 in it, and BACK runs again. */
static struct owner *begin_fork(void)
{
	struct owner *o = begin(2, 2);

	direct_crash(o->d, BACK);
	owner_keep(o, BACK, PERSEAS_MIRROR_DOWN);
	assert_int_equal(replace(o, "sim://0", "sim://4", true), 0);
	assert_int_equal(take_out(o, "sim://1"), 0);
	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	owner_lose(o, OTHER);
	direct_start(o->d, BACK);
	return o;
}

/* The fork is opened again and again, and makes OTHER anew each time. */
static void open_fork(struct owner *o)
{
	for (unsigned i = 0; i < OPENS; i++) {
		owner_die(o);
		owner_lose(o, OTHER);
		begin_at(o, BACK);
	}
	assert_int_equal(o->bytes[0], 2);
}

static const Perseas__Header *header_at(struct owner *o, unsigned mirror)
{
	return store_find(o->d->mirrors[mirror].stores, STORE)->header;
}

static void assert_found(struct owner *o, unsigned mirror, uint8_t value)
{
	begin_at(o, mirror);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(o->bytes[i], value);
}

/* The fork's roster is newer by then, by (epoch, version). */
TEST(an_image_of_a_fork_does_not_join)
{
	struct owner *o = begin_fork();

	open_fork(o);
	assert_true(ps_roster_newer(o->p->roster, header_at(o, NEW)->roster));
	assert_int_equal(replace(o, "sim://1", "sim://4", false), PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(o->p->upkeep.change.text, "no image in common"));
	assert_int_equal(add(o, "sim://4"), PERSEAS_EUNREACHABLE);
	assert_found(o, NEW, 9);
	/* Nor does one of the fork become the store's, until it is deleted. */
	assert_int_equal(add(o, "sim://1"), PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(o->p->upkeep.change.text, "no image in common"));
	owner_lose(o, OTHER);
	assert_int_equal(add(o, "sim://1"), 0);
	assert_int_equal(owner_put(o, 0, 100, 10), 0);
	owner_free(o);
}

/* Only OTHER has the store, with a 10 in it; the roster of the fork lists its address. */
static struct owner *begin_at_other(void)
{
	struct owner *o = begin_fork();

	assert_int_equal(add(o, "sim://1"), 0);
	assert_int_equal(take_out(o, "sim://4"), 0);
	assert_int_equal(owner_put(o, 0, 100, 10), 0);
	owner_die(o);
	return o;
}

/* OTHER has again what it had when it was the store. */
static void give_back(struct owner *o, struct memory **kept)
{
	direct_crash(o->d, OTHER);
	memory_heap_free(o->d->mirrors[OTHER].memory);
	o->d->mirrors[OTHER].memory = *kept;
	*kept = NULL;
	direct_start(o->d, OTHER);
}

/* An open of the fork needs W, and would make OTHER anew. */
TEST(an_open_makes_none_anew_that_has_an_image_of_a_fork)
{
	struct owner *o = begin_at_other();
	struct memory *kept = memory_heap_copy(o->d->mirrors[OTHER].memory);

	open_fork(o);
	owner_die(o);
	give_back(o, &kept);
	assert_true(ps_roster_newer(header_at(o, BACK)->roster, header_at(o, OTHER)->roster));
	assert_int_equal(open_with(o, BACK, 1, PERSEAS_TAKEOVER), PERSEAS_EQUORUM);
	assert_error_says(o, "no image in common");
	assert_found(o, OTHER, 10);
	owner_free(o);
}

/* Nor does the keeper of an owner that has the fork open. */
TEST(a_keeper_makes_none_anew_that_has_an_image_of_a_fork)
{
	struct owner *o = begin_at_other();
	struct memory *kept = memory_heap_copy(o->d->mirrors[OTHER].memory);
	struct perseas_mirror_stat stat;

	open_fork(o);
	give_back(o, &kept);
	for (unsigned rounds = 0; rounds < ROUNDS; rounds++)
		direct_keep(o->d, o->p);
	assert_int_equal(perseas_mirror_stat(o->p, OTHER, &stat), 0);
	assert_int_equal(stat.state, PERSEAS_MIRROR_DOWN);
	assert_non_null(strstr(stat.trouble, "no image in common"));
	assert_found(o, OTHER, 10);
	owner_free(o);
}

/* Where one of two acknowledges, what came back is opened only where the operator accepts it. Then
 * its roster has a mirror in common with that of the store, which is newer. */
TEST(an_image_of_a_newer_roster_does_not_join)
{
	struct owner *o = begin(2, 1);

	direct_crash(o->d, BACK);
	owner_keep(o, BACK, PERSEAS_MIRROR_DOWN);
	assert_int_equal(replace(o, "sim://0", "sim://4", true), 0);
	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	owner_die(o);
	direct_crash(o->d, OTHER);
	direct_start(o->d, BACK);
	o->options.accept_epoch = 1;
	o->options.accept_seq = 2;
	begin_at(o, BACK);
	o->options.accept_epoch = o->options.accept_seq = 0;
	assert_int_equal(replace(o, "sim://1", "sim://4", true), PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(o->p->upkeep.change.text, "by a newer roster"));
	direct_start(o->d, OTHER);
	assert_found(o, NEW, 9);
	owner_free(o);
}

/* A client that names mirrors of both stores must say which one it means; without that neither
 * opens. */
TEST(an_open_of_both_is_told_so)
{
	struct owner *o = begin_fork();

	open_fork(o);
	owner_die(o);
	assert_int_equal(open_with(o, 0, 5, PERSEAS_TAKEOVER), PERSEAS_EROSTER);
	assert_error_says(o, "a fork of it");
	begin_at(o, BACK);
	assert_int_equal(o->bytes[0], 2);
	assert_found(o, NEW, 9);
	owner_lose(o, BACK);
	owner_lose(o, OTHER);
	open_well(o, 0, 5, PERSEAS_TAKEOVER);
	owner_free(o);
}

static void begin_change(struct owner *o)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, "sim://0", "sim://4",
		                                      0, true };

	assert_int_equal(owner_change(o, &wanted), 0);
}

/* The change that removed BACK counts for the owner, and NEW has recorded it as decided only, since
 * its daemon hangs while its memory is written. The roster before it, and the fork's, list BACK. */
TEST(an_image_whose_change_is_decided_does_not_join)
{
	struct owner *o = begin(2, 2);

	direct_crash(o->d, BACK);
	owner_keep(o, BACK, PERSEAS_MIRROR_DOWN);
	begin_change(o);
	owner_keep_stage(o, PS_CHANGE_MARKED);
	direct_hang(o->d, NEW);
	owner_keep_stage(o, PS_CHANGE_SETTLING);
	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	owner_die(o);
	direct_unhang(o->d, NEW);
	assert_true(header_at(o, NEW)->marked);
	owner_lose(o, OTHER);
	direct_start(o->d, BACK);
	open_fork(o);
	assert_int_equal(replace(o, "sim://1", "sim://4", false), PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(o->p->upkeep.change.text, "no image in common"));
	owner_free(o);
}

/* Mirror 1 of three has lost its memory, and the fork made it anew as its own. */
static struct owner *begin_fork_at_a_member(void)
{
	const struct perseas_roster_change third = { PERSEAS_ROSTER_ADD, NULL, "sim://3", 2,
		                                     false };
	struct owner *o = begin_fork();

	assert_int_equal(add(o, "sim://1"), 0);
	/* Makes the fork's roster the older one. */
	for (unsigned i = 0; i < OPENS; i++)
		begin_at(o, NEW);
	assert_int_equal(change_roster(o, &third), 0);
	assert_int_equal(owner_put(o, 0, 100, 10), 0);
	owner_die(o);
	owner_lose(o, OTHER);
	begin_at(o, BACK);
	assert_int_equal(o->bytes[0], 2);
	owner_die(o);
	return o;
}

/* A standby finds a fork's image in place of a member, and has the store opened without it. */
TEST(a_fork_where_a_member_was_is_no_place_of_the_store)
{
	struct owner *o = begin_fork_at_a_member();

	follow_list(o, "sim://3,sim://4", direct_env(o->d));
	assert_int_equal(look(), PS_OWNER_NONE);
	assert_int_equal(follow.status_peers.count, 3);
	assert_false(ps_follow_is_unlisted_member(&follow, 2));
	follow_end();
	assert_int_equal(open_with(o, 1, 4, PERSEAS_CREATE), PERSEAS_EROSTER);
	open_well(o, 3, 2, 0);
	owner_map(o);
	assert_int_equal(o->bytes[0], 10);
	owner_free(o);
}

/* The fork is opened once more after the store's owner opened that, at a mirror that the store's
 * roster names. Nobody has taken that owner's place for it: whom it was to hand over to is next. */
TEST(an_owner_of_a_fork_ends_no_handover)
{
	struct owner *o = begin_fork_at_a_member();
	uint64_t epoch;

	open_well(o, 3, 2, 0);
	epoch = o->p->epoch;
	ask_to_move(o, 3, epoch, 7);
	ask_to_move(o, 4, epoch, 7);
	begin_at(o, BACK);
	assert_true(o->p->epoch > epoch);
	ask_to_move(o, OTHER, o->p->epoch, 5);
	owner_die(o);
	follow_list(o, "sim://3,sim://4", direct_env(o->d));
	assert_int_equal(look(), PS_OWNER_NONE);
	assert_int_equal(follow.status_peers.count, 3);
	assert_true(now.handover.exists);
	assert_int_equal(now.handover.to[0], 7);
	follow_end();
	owner_free(o);
}

/* Somebody opens the store, and something happens when the mirrors were asked so often. */
static struct {
	struct ps_env_ops ops;
	const struct ps_env_ops *real;
	struct owner *o;
	unsigned asked, at;
	void (*happens)(struct owner *o);
	struct ps_inherited inherited; /* of its env */
} watched;

static int watched_send(struct ps_control *control, const Perseas__Request *request,
                        struct ps_error *error)
{
	if (request->body_case == PERSEAS__REQUEST__BODY_STATUS && watched.asked++ == watched.at)
		watched.happens(watched.o);
	return watched.real->send(control, request, error);
}

static void watch(struct owner *o, struct ps_env *env, unsigned at,
                  void (*happens)(struct owner *o))
{
	watched.o = o;
	watched.asked = 0;
	watched.at = at;
	watched.happens = happens;
	watched.real = env->ops;
	watched.ops = *env->ops;
	watched.ops.send = watched_send;
	env->ops = &watched.ops;
	watched.inherited.silent_at_ms = o->d->now / 1000000;
	env->told_by_run = &watched.inherited;
}

static int open_while(struct owner *o, const char *list, unsigned at,
                      void (*happens)(struct owner *o))
{
	struct ps_env *env = direct_env(o->d);
	struct perseas *none;

	watch(o, env, at, happens);
	memset(&o->error, 0, sizeof(o->error));
	return ps_open(env, STORE, list, &o->options, &none, &o->error);
}

static void replace_both(struct owner *o)
{
	replace_member(o, "sim://0", "sim://2");
	replace_member(o, "sim://1", "sim://3");
}

/* The owner has two mirrors, and puts others in their places when two of the four have answered.
 * The two rosters that are told have no image in common, as those of a fork, but not for long. */
TEST(a_roster_that_changes_meanwhile_is_no_fork)
{
	struct owner *o = begin(2, 2);

	assert_int_equal(open_while(o, "sim://0,sim://1,sim://2,sim://3", 2, replace_both),
	                 PERSEAS_EBUSY);
	assert_int_equal(watched.asked, 8);
	owner_free(o);
}

static void end_fork(struct owner *o)
{
	direct_crash(o->d, BACK);
	direct_crash(o->d, OTHER);
}

/* Since a fork's mirrors were seen a moment ago, the store is not opened without them. */
TEST(a_fork_that_was_seen_is_not_forgotten)
{
	struct owner *o = begin_fork();

	open_fork(o);
	owner_die(o);
	assert_int_equal(open_while(o, "sim://0,sim://1,sim://2,sim://3,sim://4", MIRRORS,
	                            end_fork),
	                 PERSEAS_EUNREACHABLE);
	assert_true(watched.asked > MIRRORS);
	assert_error_says(o, "sim://0");
	owner_free(o);
}

static void end_store(struct owner *o)
{
	direct_crash(o->d, NEW);
}

/* Nor is it where the first round did not ask a mirror that was silent a moment ago: the second one
 * asked that, too, and no other attempt may find the fork alone, or the store. */
TEST(a_fork_that_was_seen_is_not_forgotten_for_a_silent_mirror)
{
	void (*const ends[])(struct owner * o) = { end_fork, end_store };

	for (int i = 0; i < 2; i++) {
		struct owner *o = begin_fork();

		open_fork(o);
		owner_die(o);
		strcpy(watched.inherited.mirrors_silent_to_run, "sim://2");
		assert_int_equal(open_while(o, "sim://0,sim://1,sim://2,sim://3,sim://4",
		                            MIRRORS - 1, ends[i]),
		                 PERSEAS_EUNREACHABLE);
		*watched.inherited.mirrors_silent_to_run = 0;
		assert_error_says(o, "did not answer again");
		owner_free(o);
	}
}

static enum ps_ownership look_later(struct owner *o)
{
	o->d->now += LONG_NS;
	look();
	if (follow.is_forked)
		assert_non_null(strstr(now.text, "a fork of it, or another store"));
	return now.ownership;
}

/* A standby that has seen both opens neither until the images of one of them are gone. */
TEST(a_standby_does_not_forget_a_fork)
{
	void (*const ends[])(struct owner * o) = { end_fork, end_store };

	for (int i = 0; i < 2; i++) {
		struct owner *o = begin_fork();

		open_fork(o);
		owner_die(o);
		follow_list(o, "sim://0,sim://1,sim://4", direct_env(o->d));
		assert_int_equal(look_later(o), PS_OWNER_UNKNOWN);
		ends[i](o);
		assert_int_equal(look_later(o), PS_OWNER_UNKNOWN);
		assert_int_equal(look_later(o), PS_OWNER_UNKNOWN);
		for (unsigned k = 0; k < MIRRORS; k++)
			if (!o->d->mirrors[k].stores)
				direct_start(o->d, k);
		assert_int_equal(look_later(o), PS_OWNER_UNKNOWN);
		owner_lose(o, BACK);
		owner_lose(o, OTHER);
		assert_int_equal(look_later(o), PS_OWNER_NONE);
		follow_end();
		owner_free(o);
	}
}

/* Nobody has opened a fork yet. The mirror that was called gone returns while the mirrors of the
 * store's roster, which the standby knows, are silent: the standby must not make the fork. */
TEST(a_standby_makes_no_fork)
{
	struct owner *o = begin(2, 2);

	direct_crash(o->d, BACK);
	owner_keep(o, BACK, PERSEAS_MIRROR_DOWN);
	follow_list(o, "sim://0,sim://1", direct_env(o->d));
	assert_int_equal(replace(o, "sim://0", "sim://4", true), 0);
	assert_int_equal(look_later(o), PS_OWNER_LIVES);
	assert_int_equal(take_out(o, "sim://1"), 0);
	assert_int_equal(owner_put(o, 0, 100, 9), 0);
	assert_int_equal(look_later(o), PS_OWNER_LIVES);
	owner_die(o);
	owner_lose(o, OTHER);
	direct_crash(o->d, NEW);
	direct_start(o->d, BACK);
	assert_int_equal(look_later(o), PS_OWNER_UNKNOWN);
	direct_start(o->d, NEW);
	assert_int_equal(look_later(o), PS_OWNER_UNKNOWN);
	/* Deleting the images of one store makes clear that the other one is meant. */
	owner_lose(o, NEW);
	assert_int_equal(look_later(o), PS_OWNER_NONE);
	follow_end();
	owner_free(o);
}

/* Nor does it take a roster that changes twice during a look for a fork: it opens the store. */
TEST(a_standby_takes_no_change_for_a_fork)
{
	struct owner *o = begin(2, 2);
	struct ps_env *looks = direct_env(o->d);

	watch(o, looks, 2, replace_both);
	follow_list(o, "sim://0,sim://1,sim://2,sim://3", looks);
	assert_int_equal(look_later(o), PS_OWNER_LIVES);
	assert_int_equal(watched.asked, 8);
	end_fork(o);
	owner_die(o);
	assert_int_equal(look_later(o), PS_OWNER_NONE);
	follow_end();
	owner_free(o);
}
