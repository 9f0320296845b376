/*
 * test_nowait_room.c - commits that nobody waits for fill the ring: neither a healthy mirror nor
 * what W do not hold is given up for them, by commits, by what holds commits back, or by close.
 */
#include "nowait_rig.h"

struct unit_fixture unit_fixture = { setup_lone_acks, teardown };

static int post_big(struct fixture *f, unsigned flags, unsigned i)
{
	struct perseas_token token;
	perseas_tx_t *tx;
	int rc = perseas_begin(f->o->p, 0, &tx);

	if (rc)
		return rc;
	assert_int_equal(perseas_set_range(tx, f->big + i % 10 * 3000, 3000), 0);
	memset(f->big + i % 10 * 3000, (int)i, 3000);
	rc = perseas_commit_token(tx, flags, &token);
	if (rc)
		assert_int_equal(perseas_abort(tx), 0);
	return rc;
}

static void release_some(void *arg)
{
	struct owner *o = arg;

	for (unsigned m = 0; m < o->d->count; m++)
		direct_release(o->d, m, 2);
}

/* Half of the ring is under way: who does not want to wait is told so, and who waits gets on as
 * soon as mirrors do, which are not dropped. Status says which ones commits wait for. */
TEST(test_a_full_ring_holds_back, struct fixture *f)
{
	struct perseas_mirror_stat stat;
	struct owner *o = f->o;
	unsigned i = 0;
	int rc;

	hold_all(o, DIRECT_HOLD_WRITES);
	do
		rc = post_big(f, PERSEAS_NOWAIT | PERSEAS_NOBLOCK, i++);
	while (!rc);
	assert_int_equal(rc, PERSEAS_EAGAIN);
	assert_says(o, "try again");
	assert_true(i > 5);
	owner_at_pause(o, release_some);
	for (unsigned more = 0; more < 100; more++)
		assert_int_equal(post_big(f, PERSEAS_NOWAIT, i++), 0);
	o->d->on_pause = NULL;
	assert_int_equal(owner_stat(o).dropped, 0);
	assert_true(owner_stat(o).paced > 0);
	assert_int_equal(perseas_mirror_stat(o->p, 1, &stat), 0);
	assert_non_null(strstr(stat.trouble, "cannot keep up"));
	complete_all(o);
	assert_int_equal(owner_stat(o).live, o->d->count);
}

/* One mirror takes nothing for longer than a waiting commit would wait for it. */
TEST(test_a_hiccup_drops_no_mirror, struct fixture *f)
{
	struct owner *o = f->o;
	const uint64_t pace = (uint64_t)o->p->options.pace_ms * 1000000;
	const uint64_t most = (uint64_t)o->p->options.commit_timeout_ms * 1000000;
	uint64_t start;
	unsigned i = 0;

	o->d->mirrors[1].hold = DIRECT_HOLD_WRITES;
	while (!post_big(f, PERSEAS_NOWAIT | PERSEAS_NOBLOCK, i++))
		;
	o->d->now += 2 * pace;
	assert_int_equal(post_big(f, PERSEAS_NOWAIT | PERSEAS_NOBLOCK, i), PERSEAS_EAGAIN);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	owner_at_pause(o, release_some);
	assert_int_equal(post_big(f, PERSEAS_NOWAIT, i), 0);
	o->d->on_pause = NULL;
	assert_int_equal(owner_stat(o).dropped, 0);
	/* A mirror that never takes anything again stops commits for one commit's timeout, and no
	 * longer. */
	start = o->d->now;
	for (unsigned more = 0; more < 100; more++)
		assert_int_equal(post_big(f, PERSEAS_NOWAIT, i++), 0);
	assert_int_equal(owner_stat(o).dropped, 1);
	assert_true(o->d->now - start >= most && o->d->now - start < most + most / 10);
	let_all_go(o);
}

/* While a commit waits, the mirror that it waits for completes one more. */
static void release_one(void *arg)
{
	struct owner *o = arg;

	direct_release(o->d, 1, 1);
}

/* A commit waits longer for a mirror than a mirror may take for one, since it gets on. */
static void wait_for_who_gets_on(struct fixture *f, unsigned flags)
{
	struct owner *o = f->o;
	struct perseas_token token;
	perseas_tx_t *tx;
	unsigned i = 0;

	o->d->mirrors[1].hold = DIRECT_HOLD_WRITES;
	while (!post_big(f, PERSEAS_NOWAIT | PERSEAS_NOBLOCK, i++))
		;
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, f->big, 25000), 0);
	memset(f->big, 1, 25000);
	owner_at_pause(o, release_one);
	assert_int_equal(perseas_commit_token(tx, flags, &token), 0);
	o->d->on_pause = NULL;
	assert_int_equal(owner_stat(o).dropped, 0);
	let_all_go(o);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
}

TEST(test_who_gets_on_is_waited_for, struct fixture *f)
{
	wait_for_who_gets_on(f, PERSEAS_NOWAIT);
}

/* Unawaited commits have filled the ring, not this one. */
TEST(test_one_that_waits_is_as_patient, struct fixture *f)
{
	wait_for_who_gets_on(f, 0);
}

TEST(test_one_without_ranges_needs_no_room, struct fixture *f)
{
	struct owner *o = f->o;
	struct perseas_token token = { 0, 0 };
	uint64_t start;
	unsigned i = 0;

	o->d->mirrors[1].hold = DIRECT_HOLD_WRITES;
	while (!post_big(f, PERSEAS_NOWAIT | PERSEAS_NOBLOCK, i++))
		;
	/* Not even the smallest fits. */
	for (unsigned length = 1500; length; length--)
		while (!post_with(o, PERSEAS_NOWAIT | PERSEAS_NOBLOCK, 0, length, 1, &token))
			;
	start = o->d->now;
	for (unsigned waits = 0; waits < 2; waits++) {
		perseas_tx_t *tx;

		assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
		assert_int_equal(perseas_commit_token(tx,
		                                      waits ? 0 : PERSEAS_NOWAIT | PERSEAS_NOBLOCK,
		                                      &token),
		                 0);
		assert_true(token.seq == o->p->commit.seq);
	}
	assert_true(o->d->now - start < 1000000);
	assert_int_equal(owner_stat(o).dropped, 0);
	let_all_go(o);
}

/* Entries that W mirrors do not hold stay in the ring: they could not be sent again from anywhere
 * else. */
TEST(test_what_w_do_not_hold_stays_in_the_ring, struct fixture *f)
{
	struct owner *o = f->o;
	unsigned i = 0;
	int rc;

	for (unsigned m = 0; m < o->d->count; m++)
		direct_cut(o->d, m);
	direct_crash(o->d, 0);
	direct_crash(o->d, 1);
	do
		rc = post_big(f, PERSEAS_NOWAIT, i++);
	while (!rc);
	assert_int_equal(rc, PERSEAS_EBLOCKED);
	assert_true(o->p->commit.ring.first_seq <= o->p->commit.durable_seq + 1);
	for (unsigned m = 0; m < o->d->count; m++) {
		direct_start(o->d, m);
		owner_keep(o, m, PERSEAS_MIRROR_LIVE);
	}
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(owner_stat(o).resyncs, 0);
	assert_int_equal(post_big(f, PERSEAS_NOWAIT, i), 0);
}

enum { THREADS = 3 };

/* Threads that commit, and wait for it, while the one before waits. */
static struct crowd {
	struct fixture *f;
	perseas_tx_t *tx[THREADS];
	unsigned begun;
	int rc[THREADS];
} crowd;

static void commit_one_more(struct direct *d)
{
	struct perseas_token token;
	unsigned me;

	if (crowd.begun == THREADS) {
		d->now += 1000000000;
		return;
	}
	me = crowd.begun++;
	assert_int_equal(perseas_set_range(crowd.tx[me], crowd.f->big, 30000), 0);
	memset(crowd.f->big, 1, 30000);
	crowd.rc[me] = perseas_commit_token(crowd.tx[me], 0, &token);
	if (crowd.rc[me] == PERSEAS_EBLOCKED)
		perseas_abort(crowd.tx[me]);
}

static void commit_at_pause(void *arg)
{
	commit_one_more(arg);
}

/* Nor do the commits of several threads that wait, and that need more room than is left. */
TEST(test_the_ring_keeps_it_from_those_that_wait, struct fixture *f)
{
	struct owner *o = f->o;
	unsigned i = 0;

	crowd = (struct crowd){ .f = f };
	for (unsigned k = 0; k < THREADS; k++)
		assert_int_equal(perseas_begin(o->p, 0, &crowd.tx[k]), 0);
	for (unsigned m = 0; m < o->d->count; m++) {
		direct_cut(o->d, m);
		direct_crash(o->d, m);
	}
	while (!post_big(f, PERSEAS_NOWAIT | PERSEAS_NOBLOCK, i++))
		;
	o->d->on_pause = commit_at_pause;
	o->d->on_pause_arg = o->d;
	o->d->on_wait = commit_one_more;
	commit_one_more(o->d);
	o->d->on_pause = NULL;
	o->d->on_wait = NULL;
	assert_int_equal(crowd.begun, THREADS);
	assert_true(o->p->commit.ring.first_seq <= o->p->commit.durable_seq + 1);
	for (unsigned k = 0; k < THREADS; k++)
		assert_int_equal(crowd.rc[k], PERSEAS_EBLOCKED);
	for (unsigned m = 0; m < o->d->count; m++) {
		direct_start(o->d, m);
		owner_keep(o, m, PERSEAS_MIRROR_LIVE);
	}
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(owner_stat(o).resyncs, 0);
}

static void release_one_each(void *arg)
{
	struct owner *o = arg;

	for (unsigned m = 0; m < o->d->count; m++)
		direct_release(o->d, m, 1);
}

/* Mirrors complete one at a time, each just within the time of a commit: none is in doubt. */
TEST_WITH(test_one_behind_what_gets_on_is_not_in_doubt, setup_noted, owner_teardown,
          struct owner *o)
{
	struct perseas_token token;

	hold_all(o, DIRECT_HOLD_WRITES);
	post(o, 1);
	post(o, 2);
	owner_at_pause(o, release_one_each);
	assert_int_equal(post_with(o, 0, 0, 10, 3, &token), 0);
	o->d->on_pause = NULL;
	assert_int_equal(owner_stat(o).in_doubt, 0);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
	let_all_go(o);
}

static void release_all(void *arg)
{
	let_all_go(arg);
}

static int setup_bounded(void **state)
{
	struct owner *o = owner_new(3);

	o->options.flush_within_ms = 40;
	o->options.commit_timeout_ms = 1000;
	return owner_setup_of(state, o);
}

static int post_at(struct owner *o, uint64_t *at)
{
	struct perseas_token token;

	*at = o->d->now;
	return post_with(o, PERSEAS_NOWAIT | PERSEAS_NOBLOCK, 0, 10, 1, &token);
}

/* W mirrors keep up at first, and then complete less than is committed: no commit returns while one
 * is not held that is older than that, and none is refused more than an eighth before. */
TEST_WITH(test_what_may_be_lost_is_bounded_in_time, setup_bounded, owner_teardown, struct owner *o)
{
	const uint64_t most = 40 * 1000000, step = 2000000;
	uint64_t at[1000], refused = 0;

	for (unsigned i = 0, next = 0; i < 400; i++) {
		const uint64_t first = owner_stat(o).seq;
		int rc;

		hold_all(o, DIRECT_HOLD_WRITES);
		o->d->now += step;
		rc = post_at(o, &at[next]);
		if (rc == PERSEAS_EAGAIN) {
			const uint64_t oldest = first - o->p->commit.durable_seq;

			refused++;
			assert_true(oldest > 0);
			assert_true(o->d->now - at[next - oldest] + step > most * 7 / 8);
		} else {
			assert_int_equal(rc, 0);
			next++;
			for (uint64_t n = 1; n <= o->p->commit.seq - o->p->commit.durable_seq; n++)
				assert_true(at[next - 1] - at[next - n] < most);
		}
		for (unsigned m = 0; m < 2; m++)
			direct_release(o->d, m, i < 100 || i % 3);
		assert_true(i >= 100 || !refused);
	}
	assert_true(refused > 10);
	complete_all(o);
	assert_int_equal(owner_stat(o).in_doubt, 0);
}

/* Posts for a thread that waits; the books of unawaited commits do not have it. */
static void post_for_waiter(struct owner *o)
{
	const struct ps_unwaited before = o->p->commit.unwaited;
	uint64_t at;

	assert_int_equal(post_at(o, &at), 0);
	o->p->commit.unwaited = before;
}

/* Nothing was committed for long, and what was before is not held. */
TEST_WITH(test_the_bound_counts_for_the_first_after_a_pause, setup_bounded, owner_teardown,
          struct owner *o)
{
	uint64_t at;

	/* The mirrors hold the commit, and no thread has looked. */
	assert_int_equal(post_at(o, &at), 0);
	o->d->now += 500 * 1000000;
	assert_int_equal(post_at(o, &at), 0);
	hold_all(o, DIRECT_HOLD_WRITES);
	assert_int_equal(post_at(o, &at), 0);
	assert_int_equal(post_at(o, &at), 0);
	for (unsigned m = 0; m < 3; m++)
		direct_release(o->d, m, 1);
	o->d->now += 500 * 1000000;
	assert_int_equal(post_at(o, &at), PERSEAS_EAGAIN);
	owner_at_pause(o, release_all);
	assert_int_equal(post_with(o, PERSEAS_NOWAIT, 0, 10, 1, &(struct perseas_token){ 0, 0 }),
	                 0);
	o->d->on_pause = NULL;
	assert_int_equal(perseas_flush(o->p), 0);
}

/* A call that holds commits back breaks no mirror off while mirrors still complete some. */
TEST_WITH(test_a_long_drain_breaks_nobody, setup_noted, owner_teardown, struct owner *o)
{
	void *addr;

	hold_all(o, DIRECT_HOLD_WRITES);
	for (unsigned i = 0; i < 60; i++)
		post(o, (uint8_t)i);
	owner_at_pause(o, release_some);
	if (perseas_map(o->p, "more", 100, &addr))
		fail_msg("%s", perseas_message(o->p));
	o->d->on_pause = NULL;
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(owner_stat(o).reconnects, 0);
	let_all_go(o);
}

/* --- the end --- */

TEST_WITH(test_close_loses_nothing, setup_noted, owner_teardown, struct owner *o)
{
	hold_all(o, DIRECT_HOLD_WRITES);
	for (unsigned i = 0; i < 300; i++)
		post(o, (uint8_t)i);
	owner_at_pause(o, release_all);
	assert_int_equal(perseas_close(o->p), 0);
	o->d->on_pause = NULL;
	o->p = NULL;
	if (owner_open(o, 0))
		fail_msg("%s", o->error.text);
	owner_map(o);
	assert_int_equal(o->bytes[0], 299 & 255);
}

/* close says what W do not hold, and does not wait again for what is in doubt. */
TEST_WITH(test_close_says_what_it_could_not, setup_noted, owner_teardown, struct owner *o)
{
	uint64_t start;

	hold_all(o, DIRECT_HOLD_WRITES);
	post(o, 1);
	o->d->now += 100000000000u;
	direct_collect(o->p);
	assert_int_equal(owner_stat(o).in_doubt, 1);
	start = o->d->now;
	assert_int_equal(perseas_close(o->p), PERSEAS_EINDOUBT);
	assert_true(o->d->now - start < 1000000000u);
	assert_non_null(strstr(perseas_message(NULL), "is held by 0 of 3 mirrors"));
	hold_all(o, DIRECT_HOLD_NOTHING);
	o->p = NULL;
	if (owner_open(o, 0))
		fail_msg("%s", o->error.text);
	owner_map(o);
	assert_int_equal(o->bytes[0], 0);
	hold_all(o, DIRECT_HOLD_WRITES);
	post(o, 1);
	assert_int_equal(perseas_close(o->p), PERSEAS_EINDOUBT);
	hold_all(o, DIRECT_HOLD_NOTHING);
	o->p = NULL;
	if (owner_open(o, 0))
		fail_msg("%s", o->error.text);
}

/* Another thread waits for a transaction, and that one is not what the bound is about: neither
 * where it is the first since long, nor where one that nobody waited for came before it. */
TEST_WITH(test_the_bound_is_not_of_those_that_are_waited_for, setup_bounded, owner_teardown,
          struct owner *o)
{
	uint64_t at;

	for (unsigned before = 0; before < 2; before++) {
		hold_all(o, DIRECT_HOLD_WRITES);
		if (before) {
			assert_int_equal(post_at(o, &at), 0);
			o->d->now += 30 * 1000000;
		}
		post_for_waiter(o);
		assert_int_equal(post_at(o, &at), 0);
		for (unsigned m = 0; m < 3 && before; m++)
			direct_release(o->d, m, 1);
		o->d->now += 20 * 1000000;
		assert_int_equal(post_at(o, &at), 0);
		o->d->now += 20 * 1000000;
		assert_int_equal(post_at(o, &at), PERSEAS_EAGAIN);
		complete_all(o);
		o->d->now += 500 * 1000000;
	}
}

static struct perseas *closing;
static const struct ps_env_ops *usual;
static int closing_fd;

static void look_at_the_end(struct ps_env *env, enum ps_sleeper who)
{
	usual->join(env, who);
	if (who == PS_COLLECTOR) {
		assert_int_equal(closing->commit.unwaited.flag_fd, -1);
		assert_true(fcntl(closing_fd, F_GETFD) >= 0);
		return;
	}
	/* An application may break the rules and call this from an event's callback. */
	assert_int_equal(perseas_fd(closing), PERSEAS_EINVAL);
	assert_non_null(strstr(perseas_message(closing), "is being closed"));
	assert_false(closing->commit.unwaited.has_collector_thread);
}

/* The keeper outlives the collector: it must raise no closed descriptor and begin no collector. */
TEST_WITH(test_close_leaves_nothing_to_the_keeper, setup_noted, owner_teardown, struct owner *o)
{
	struct ps_env_ops ops = *o->p->env->ops;

	closing = o->p;
	usual = o->p->env->ops;
	closing_fd = perseas_fd(o->p);
	assert_true(closing_fd >= 0);
	ops.join = look_at_the_end;
	o->p->env->ops = &ops;
	assert_int_equal(perseas_close(o->p), 0);
	assert_int_equal(fcntl(closing_fd, F_GETFD), -1);
	o->p = NULL;
	if (owner_open(o, 0))
		fail_msg("%s", o->error.text);
}
