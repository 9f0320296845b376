/*
 * test_confirm.c - perseas_confirm: which answers of which mirrors count, and what becomes of an
 * owner that was replaced while it did not look. Mirrors answer at once unless a test holds them
 * up; the keeper runs while the call waits.
 */
#include "resync_rig.h"

#define MS (uint64_t)1000000

/* What happens while a call waits for another thread: act() if it is set, and then the keeper
 * runs. */
static struct beside {
	struct owner *o;
	void (*act)(struct owner *o);
	unsigned confirms[PS_MIRRORS_MAX]; /* requests that each mirror got */
} beside;

static void wait_beside(struct direct *d)
{
	void (*act)(struct owner * o) = beside.act;

	beside.act = NULL;
	if (act)
		act(beside.o);
	direct_keep_after(d, beside.o->p, MS);
}

static void count_request(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                          size_t len)
{
	Perseas__Request *request = perseas__request__unpack(NULL, len, bytes);

	(void)arg;
	(void)session;
	assert_non_null(request);
	/* Signs of life say more. */
	beside.confirms[mirror] += request->body_case == PERSEAS__REQUEST__BODY_CONFIRM &&
	                           !request->confirm->figures;
	perseas__request__free_unpacked(request, NULL);
}

static const struct direct_tap tap = { .request = count_request };

static void watch(struct owner *o)
{
	beside = (struct beside){ .o = o };
	o->d->on_wait = wait_beside;
	o->d->tap = &tap;
}

static int begin_owner(void **state, unsigned mirrors, uint32_t acks)
{
	owner_setup(state, mirrors, acks);
	watch(*state);
	return 0;
}

static int setup_three_of_two(void **state)
{
	return begin_owner(state, 3, 2);
}

static int setup_three_of_one(void **state)
{
	return begin_owner(state, 3, 1);
}

static int setup_three_of_three(void **state)
{
	return begin_owner(state, 3, 3);
}

static int end_owner(void **state)
{
	struct owner *o = *state;

	o->d->on_wait = NULL;
	o->d->tap = NULL;
	return owner_teardown(state);
}

struct unit_fixture unit_fixture = { setup_three_of_two, end_owner };

/* Another owner takes the store over, publishes a segment, and leaves. */
static void take_over(struct owner *o)
{
	struct perseas_options options = o->options;
	perseas_t *second;
	void *addr;

	options.flags = PERSEAS_TAKEOVER;
	o->d->on_wait = NULL;
	assert_int_equal(direct_open(o->d, STORE, &options, &second, &o->error), 0);
	assert_int_equal(perseas_map(second, "new", 100, &addr), 0);
	assert_int_equal(perseas_publish(second), 0);
	perseas_close(second);
	o->d->on_wait = wait_beside;
}

static void set_slow(struct owner *o, int request, uint64_t ns)
{
	for (unsigned i = 0; i < o->d->count; i++) {
		o->d->mirrors[i].slow_at = request;
		o->d->mirrors[i].slow_ns = ns;
	}
}

TEST(test_an_owner_is_confirmed_in_one_round, struct owner *o)
{
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	assert_int_equal(perseas_confirm(o->p), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(beside.confirms[i], 1);
	/* Mirrors that have confirmed all calls are not asked again. */
	direct_keep_after(o->d, o->p, MS);
	direct_keep_after(o->d, o->p, MS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(beside.confirms[i], 1);
}

static void confirm_too(struct owner *o)
{
	assert_int_equal(perseas_confirm(o->p), 0);
}

/* A second thread calls before the keeper has asked: one question serves both. */
TEST(test_calls_share_a_round, struct owner *o)
{
	beside.act = confirm_too;
	assert_int_equal(perseas_confirm(o->p), 0);
	assert_int_equal(o->p->confirm_calls.call_count, 2);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(beside.confirms[i], 1);
}

/* The process slept, or its network was cut, while another owner came. Its memory is old; nothing
 * else has told it yet. */
TEST(test_a_deposed_owner_is_not_confirmed, struct owner *o)
{
	take_over(o);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(perseas_confirm(o->p), PERSEAS_EFENCED);
	assert_says(o, "close this handle");
	assert_int_equal(perseas_confirm(o->p), PERSEAS_EFENCED);
}

/* Two of three mirrors do not answer, and have another owner, perhaps. */
TEST(test_an_owner_without_r_is_in_doubt, struct owner *o)
{
	direct_hang(o->d, 1);
	direct_hang(o->d, 2);
	assert_int_equal(perseas_confirm(o->p), PERSEAS_EINDOUBT);
	assert_says(o, "1 of 3 mirrors");
	assert_says(o, "2 must");
	/* No commit is in doubt by that. */
	assert_false(owner_stat(o).in_doubt);
	direct_unhang(o->d, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_confirm(o->p), 0);
}

/* Asks the earlier owner after it was cut off: mirrors 1 and 2 never get its questions, and serve
 * another owner. */
static void part_and_take_over(struct owner *o)
{
	direct_hang(o->d, 1);
	direct_hang(o->d, 2);
	direct_keep_after(o->d, o->p, MS);
	o->d->mirrors[1].hung = o->d->mirrors[2].hung = false;
	take_over(o);
}

TEST(test_a_parted_owner_is_not_confirmed, struct owner *o)
{
	int rc;

	beside.act = part_and_take_over;
	rc = perseas_confirm(o->p);
	assert_true(rc == PERSEAS_EFENCED || rc == PERSEAS_EINDOUBT);
}

/* W is one: an owner needs all three mirrors to know that no other one acknowledged. */
TEST_WITH(test_r_counts_and_not_w, setup_three_of_one, end_owner, struct owner *o)
{
	assert_int_equal(perseas_confirm(o->p), 0);
	direct_hang(o->d, 2);
	assert_int_equal(perseas_confirm(o->p), PERSEAS_EINDOUBT);
	assert_says(o, "3 must");
}

/* W is all three: one mirror knows whether another owner can have acknowledged anything. */
TEST_WITH(test_where_w_is_all_one_mirror_is_enough, setup_three_of_three, end_owner,
          struct owner *o)
{
	direct_hang(o->d, 1);
	direct_hang(o->d, 2);
	assert_int_equal(perseas_confirm(o->p), 0);
}

/* The first call gives up. What mirrors said to its questions, before another owner came, arrives
 * during the second call. */
TEST(test_an_answer_from_before_the_call_does_not_count, struct owner *o)
{
	set_slow(o, PERSEAS__REQUEST__BODY_CONFIRM, 50 * MS);
	o->p->options.commit_timeout_ms = 10;
	assert_int_equal(perseas_confirm(o->p), PERSEAS_EINDOUBT);
	set_slow(o, 0, 0);
	take_over(o);
	o->p->options.commit_timeout_ms = 5000;
	assert_int_equal(perseas_confirm(o->p), PERSEAS_EFENCED);
}

/* A thread that calls while questions are on their way gets answers to the next ones. */
static void call_behind_the_question(struct owner *o)
{
	direct_keep_after(o->d, o->p, MS);
	assert_int_equal(perseas_confirm(o->p), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(beside.confirms[i], 2);
}

TEST(test_a_later_call_has_a_round_of_its_own, struct owner *o)
{
	set_slow(o, PERSEAS__REQUEST__BODY_CONFIRM, 20 * MS);
	beside.act = call_behind_the_question;
	assert_int_equal(perseas_confirm(o->p), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(beside.confirms[i], 2);
}

/* Eight more threads call, one after another, while the first question is in flight. */
static void call_eight_behind_the_question(struct owner *o)
{
	if (o->p->confirm_calls.call_count == 1)
		direct_keep_after(o->d, o->p, MS);
	if (o->p->confirm_calls.call_count < 8)
		beside.act = call_eight_behind_the_question;
	assert_int_equal(perseas_confirm(o->p), 0);
}

/* Eight calls share a question, which is sent before the first question is answered. So nine calls
 * take less than two round trips; one after another, they would take nine. */
TEST(test_eight_calls_share_the_next_round, struct owner *o)
{
	const uint64_t start = o->d->now;

	set_slow(o, PERSEAS__REQUEST__BODY_CONFIRM, 20 * MS);
	beside.act = call_eight_behind_the_question;
	assert_int_equal(perseas_confirm(o->p), 0);
	assert_int_equal(o->p->confirm_calls.call_count, 9);
	assert_true(o->d->now - start < 40 * MS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(beside.confirms[i], 2);
}

/* Two questions are under way to each mirror, at most: a third caller waits for one of them. */
static void call_behind_two(struct owner *o)
{
	direct_keep_after(o->d, o->p, MS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(beside.confirms[i], 2);
	beside.act = NULL;
	assert_int_equal(perseas_confirm(o->p), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(beside.confirms[i], 3);
}

static void call_behind_one(struct owner *o)
{
	direct_keep_after(o->d, o->p, MS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(beside.confirms[i], 1);
	beside.act = call_behind_two;
	assert_int_equal(perseas_confirm(o->p), 0);
}

TEST(test_two_questions_are_under_way, struct owner *o)
{
	const uint64_t start = o->d->now;

	set_slow(o, PERSEAS__REQUEST__BODY_CONFIRM, 20 * MS);
	beside.act = call_behind_one;
	assert_int_equal(perseas_confirm(o->p), 0);
	assert_true(o->d->now - start >= 40 * MS);
}

/* An answer counts while its session goes on. */
static void break_a_session(struct owner *o)
{
	direct_hang(o->d, 0);
	direct_hang(o->d, 2);
	direct_keep_after(o->d, o->p, MS);
	direct_keep_after(o->d, o->p, MS);
	assert_int_equal(ps_mirrors_that_confirmed_call(o->p, 1), 2);
	direct_hang(o->d, 1);
	direct_cut(o->d, 1);
	direct_unhang(o->d, 0);
	direct_keep_after(o->d, o->p, MS);
	assert_int_equal(o->p->mirrors[1].confirm.confirmed_call, 0);
}

TEST(test_a_session_that_broke_is_asked_again, struct owner *o)
{
	beside.act = break_a_session;
	assert_int_equal(perseas_confirm(o->p), PERSEAS_EINDOUBT);
	assert_says(o, "1 of 3 mirrors");
	assert_int_equal(beside.confirms[0], 1);
}

/* Its data path breaks, and the keeper has not looked yet. */
static void break_a_link(struct owner *o)
{
	direct_keep_after(o->d, o->p, MS);
	direct_keep_after(o->d, o->p, MS);
	assert_int_equal(ps_mirrors_that_confirmed_call(o->p, 1), 7);
	assert_int_equal(ps_mirrors_that_confirmed_call(o->p, 2), 0);
	pthread_mutex_lock(&o->p->lock);
	ps_mirror_break_link(o->p, &o->p->mirrors[1], PS_LINK_BROKEN, "the test breaks it");
	pthread_mutex_unlock(&o->p->lock);
	assert_int_equal(ps_mirrors_that_confirmed_call(o->p, 1), 5);
}

TEST(test_a_mirror_whose_link_broke_does_not_count, struct owner *o)
{
	beside.act = break_a_link;
	assert_int_equal(perseas_confirm(o->p), 0);
}

/* The keeper is woken, which sleeps for half a second else. */
TEST(test_the_keeper_is_woken, struct owner *o)
{
	o->d->woken = 0;
	assert_int_equal(perseas_confirm(o->p), 0);
	assert_true(o->d->woken >> PS_KEEPER & 1);
}

static int put_unwaited(struct owner *o, struct perseas_token *token)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, o->bytes, 10), 0);
	memset(o->bytes, 7, 10);
	return perseas_commit_token(tx, PERSEAS_NOWAIT, token);
}

static int setup_gathering(void **state)
{
	struct owner *o = owner_new(3);

	o->options.gather_us = 1000 * 1000;
	owner_begin(o);
	watch(o);
	*state = o;
	return 0;
}

/* A commit that is held back was read, perhaps: it is sent first. */
TEST_WITH(test_what_is_held_back_is_sent, setup_gathering, end_owner, struct owner *o)
{
	struct perseas_token token;
	uint64_t before = o->p->commit.seq;

	assert_int_equal(put_unwaited(o, &token), 0);
	assert_int_equal(o->p->commit.seq, before);
	assert_int_equal(perseas_confirm(o->p), 0);
	assert_int_equal(o->p->commit.seq, before + 1);
	assert_true(ps_w_mirrors_hold(o->p, before + 1));
}

/* R mirrors answer, and W do not hold what was committed. */
TEST(test_what_was_posted_must_be_on_w, struct owner *o)
{
	struct perseas_token token;

	owner_hold(o, DIRECT_HOLD_COMPLETIONS);
	assert_int_equal(put_unwaited(o, &token), 0);
	assert_int_equal(perseas_confirm(o->p), PERSEAS_EINDOUBT);
	assert_says(o, "is held by 1 of 3 mirrors");
	owner_hold(o, DIRECT_HOLD_NOTHING);
	assert_int_equal(perseas_confirm(o->p), 0);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
}

/* Another owner claimed all mirrors and died before it adopted one: the claims are renewed, and
 * the mirrors asked again under the new epoch. */
static void renew_and_ask(struct owner *o)
{
	for (unsigned rounds = 0; !owner_stat(o).renewals; rounds++) {
		assert_true(rounds < ROUNDS);
		direct_keep_after(o->d, o->p, 100 * MS);
	}
	/* In the round in which they were claimed: the next one may come half a second later. */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(o->p->mirrors[i].confirm.asked_call, 1);
	assert_int_equal(o->p->confirm_calls.confirmed_call, 0);
}

TEST(test_it_asks_again_after_a_renewal, struct owner *o)
{
	o->d->on_wait = NULL;
	owner_claimed_and_left(o);
	o->d->on_wait = wait_beside;
	beside.act = renew_and_ask;
	assert_int_equal(perseas_confirm(o->p), 0);
	assert_int_equal(owner_stat(o).renewals, 1);
}

/* --- a joining mirror --- */

static int setup_joining(void **state)
{
	struct fixture *f;

	setup_of(state, 3, 2, true);
	f = *state;
	make_stale(f, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_RESYNCING);
	watch(f->o);
	return 0;
}

static int end_joining(void **state)
{
	struct fixture *f = *state;

	f->o->d->on_wait = NULL;
	f->o->d->tap = NULL;
	return teardown(state);
}

/* The joining mirror's session says yes, but the mirror has no vote before others confirmed
 * (I9). */
TEST_WITH(test_a_joining_mirror_never_counts, setup_joining, end_joining, struct fixture *f)
{
	struct owner *o = f->o;

	o->d->mirrors[1].slow_at = PERSEAS__REQUEST__BODY_FINISH;
	o->d->mirrors[1].slow_ns = 3600 * 1000 * MS;
	o->p->options.connect_timeout_ms = 4000 * 1000;
	direct_hang(o->d, 2);
	assert_int_equal(perseas_confirm(o->p), PERSEAS_EINDOUBT);
	assert_says(o, "1 of 3 mirrors");
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(beside.confirms[0], 1);
	assert_int_equal(beside.confirms[1], 0);
}

/* Nor does what it said before it was whole. */
TEST_WITH(test_it_counts_once_it_is_whole, setup_joining, end_joining, struct fixture *f)
{
	struct owner *o = f->o;

	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	direct_hang(o->d, 2);
	assert_int_equal(perseas_confirm(o->p), 0);
	assert_int_equal(beside.confirms[1], 1);
}

/* --- while another thread is at the mirrors --- */

static int setup_large(void **state)
{
	setup_of(state, 3, 2, true);
	watch(((struct fixture *)*state)->o);
	return 0;
}

/* A segment is read, which may take minutes. As with signs of life, that holds no call up. */
TEST_WITH(test_mirrors_are_asked_while_a_segment_is_read, setup_large, end_joining,
          struct fixture *f)
{
	assert_int_equal(perseas_unmap(f->o->p, f->big), 0);
	f->o->p->confirm_calls.call_count = 1;
	map_big(f);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(beside.confirms[i], 1);
	direct_keep_after(f->o->d, f->o->p, MS);
	assert_int_equal(f->o->p->confirm_calls.confirmed_call, 1);
}

/* --- two rosters --- */

/* Mirror 1 is to leave, and the change stays joint while mirror 2 is away: one mirror is R of the
 * new roster, and not of the old one. */
TEST(test_r_of_each_roster_is_asked, struct owner *o)
{
	const struct perseas_roster_change without = { PERSEAS_ROSTER_REMOVE, "sim://1", NULL, 0,
		                                       0 };

	assert_int_equal(owner_change(o, &without), 0);
	o->d->mirrors[2].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	while (o->p->upkeep.change.stage != PS_CHANGE_JOINT)
		direct_keep(o->d, o->p);
	direct_crash(o->d, 2);
	o->d->mirrors[2].break_at = 0;
	direct_keep(o->d, o->p);
	assert_int_equal(perseas_confirm(o->p), 0);
	direct_hang(o->d, 1);
	assert_int_equal(perseas_confirm(o->p), PERSEAS_EINDOUBT);
	assert_int_equal(o->p->quorum_count, 2);
	assert_says(o, "1 of 3 mirrors");
}

/* --- calls that are refused --- */

TEST(test_a_salvage_owns_nothing, struct owner *o)
{
	assert_int_equal(perseas_confirm(NULL), PERSEAS_EINVAL);
	o->d->on_wait = NULL;
	assert_int_equal(owner_open(o, PERSEAS_SALVAGE | PERSEAS_TAKEOVER), 0);
	assert_int_equal(perseas_confirm(o->p), PERSEAS_ESALVAGE);
}
