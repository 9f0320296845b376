/*
 * test_nowait.c - commits that nobody waits for: what they return, what tokens name, who is told of
 * them, and when they are in doubt. test_nowait_room.c has what they do to the ring, and the end.
 */
#include "../../client/core/quorum.h"
#include "nowait_rig.h"

struct unit_fixture unit_fixture = { setup_noted, owner_teardown };

/* --- posting, and waiting --- */

/* The call returns before any mirror answered, and a wait returns when W mirrors hold the commit,
 * not earlier. */
TEST(test_it_returns_when_it_is_posted, struct owner *o)
{
	struct perseas_token one, two;

	hold_all(o, DIRECT_HOLD_WRITES);
	one = post(o, 1);
	two = post(o, 2);
	assert_true(one.epoch == owner_stat(o).epoch && two.epoch == one.epoch);
	assert_true(two.seq == one.seq + 1 && two.seq == owner_stat(o).seq);
	assert_int_equal(perseas_wait(o->p, &one, 0), PERSEAS_ETIMEOUT);
	assert_says(o, "is held by 0 of 3 mirrors, and 2 must hold it");
	let_go(o, 0);
	assert_int_equal(perseas_wait(o->p, &one, 10), PERSEAS_ETIMEOUT);
	o->d->mirrors[1].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 1, 1);
	assert_int_equal(perseas_wait(o->p, &one, 0), 0);
	assert_int_equal(perseas_wait(o->p, &two, 0), PERSEAS_ETIMEOUT);
	let_all_go(o);
	assert_int_equal(perseas_wait(o->p, &two, -1), 0);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_true(owner_stat(o).commits == 2);
}

/* The plain commit takes the flag, too, and what was committed last can be asked for. */
TEST(test_the_last_token_can_be_had_afterwards, struct owner *o)
{
	struct perseas_token token;
	perseas_tx_t *tx;

	hold_all(o, DIRECT_HOLD_WRITES);
	tx = owner_begin_put(o, 0, 10, 3);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	assert_int_equal(perseas_posted(o->p, &token), 0);
	assert_true(token.seq == owner_stat(o).seq && token.epoch == owner_stat(o).epoch);
	assert_int_equal(perseas_wait(o->p, &token, 0), PERSEAS_ETIMEOUT);
	let_all_go(o);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
}

/* A transaction that only read gets the token of the last commit that it may have read. */
TEST(test_without_ranges_it_names_the_last_one, struct owner *o)
{
	struct perseas_token one, read;
	perseas_tx_t *tx;

	hold_all(o, DIRECT_HOLD_WRITES);
	one = post(o, 1);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_commit_token(tx, PERSEAS_NOWAIT, &read), 0);
	assert_true(read.seq == one.seq && read.epoch == one.epoch);
	let_all_go(o);
	assert_int_equal(perseas_wait(o->p, &read, 0), 0);
}

/* A commit that waits can be named as well; also when it is in doubt. */
TEST(test_one_that_waits_has_a_token, struct owner *o)
{
	struct perseas_token token = { 0, 0 };

	assert_int_equal(post_with(o, 0, 0, 10, 1, &token), 0);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
	hold_all(o, DIRECT_HOLD_WRITES);
	assert_int_equal(post_with(o, 0, 0, 10, 2, &token), PERSEAS_EINDOUBT);
	assert_true(token.seq == owner_stat(o).seq);
	assert_int_equal(perseas_wait(o->p, &token, 0), PERSEAS_ETIMEOUT);
	let_all_go(o);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
	assert_int_equal(owner_stat(o).in_doubt, 0);
}

/* An abort puts back its own bytes, whatever was posted before it. */
TEST(test_a_later_abort_disturbs_nothing, struct owner *o)
{
	perseas_tx_t *tx;

	hold_all(o, DIRECT_HOLD_WRITES);
	post(o, 1);
	tx = owner_begin_put(o, 0, 20, 9);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(o->bytes[0], 1);
	complete_all(o);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(memory_heap_piece(o->d->mirrors[i].memory, STORE, "segment-0.1",
		                                   NULL)[0],
		                 1);
}

TEST(test_what_names_nothing_is_refused, struct owner *o)
{
	struct perseas_token token = post(o, 1), next = { token.epoch, token.seq + 1 };
	struct perseas_token before = { token.epoch - 1, token.seq };
	struct perseas_token after = { token.epoch + 1, token.seq };
	perseas_tx_t *tx;

	assert_int_equal(perseas_wait(o->p, &next, 0), PERSEAS_EINVAL);
	assert_says(o, "no transaction");
	assert_int_equal(perseas_wait(o->p, &before, 0), PERSEAS_EEPOCH);
	assert_int_equal(perseas_wait(o->p, &after, 0), PERSEAS_EEPOCH);
	assert_int_equal(perseas_wait(o->p, NULL, 0), PERSEAS_EINVAL);
	assert_int_equal(perseas_wait(NULL, &token, 0), PERSEAS_EINVAL);
	assert_int_equal(perseas_posted(o->p, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_durable(NULL, &token), PERSEAS_EINVAL);
	assert_int_equal(perseas_fd(NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_commit_token(tx, PERSEAS_NOWAIT, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_commit_token(tx, PERSEAS_NOBLOCK, &token), PERSEAS_EINVAL);
	assert_int_equal(perseas_commit_token(tx, 4, &token), PERSEAS_EINVAL);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOBLOCK), PERSEAS_EINVAL);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(perseas_commit_token(tx, PERSEAS_NOWAIT, &token), PERSEAS_EENDED);
}

TEST(test_tokens_are_of_one_owner, struct owner *o)
{
	struct perseas_token old = post(o, 1), new;

	assert_int_equal(perseas_wait(o->p, &old, -1), 0);
	owner_reopen(o);
	assert_int_equal(perseas_wait(o->p, &old, -1), PERSEAS_EEPOCH);
	assert_int_equal(perseas_posted(o->p, &new), 0);
	assert_true(new.seq == old.seq &&new.epoch > old.epoch);
	assert_int_equal(perseas_wait(o->p, &new, 0), 0);
}

/* No thread, no such commit: the transaction is still open. */
TEST(test_without_a_collector_nothing_is_posted, struct owner *o)
{
	struct perseas_token token = { 7, 7 };
	perseas_tx_t *tx;

	o->d->no_threads = true;
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, o->bytes, 10), 0);
	assert_int_equal(perseas_commit_token(tx, PERSEAS_NOWAIT, &token), PERSEAS_ESYSTEM);
	assert_true(token.seq == 7 && token.epoch == 7);
	assert_int_equal(perseas_fd(o->p), PERSEAS_ESYSTEM);
	o->d->no_threads = false;
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
}

/* --- without a waiter --- */

/* The collector moves on what does not fit into a mirror's window, and takes what is completed. */
TEST(test_it_goes_on_though_nobody_waits, struct owner *o)
{
	hold_all(o, DIRECT_HOLD_WRITES);
	for (unsigned i = 0; i < 300; i++)
		post(o, (uint8_t)i);
	assert_true(o->p->mirrors[0].chains_in_flight == 128);
	for (unsigned rounds = 0; o->p->commit.unwaited.last_unawaited_seq; rounds++) {
		assert_true(rounds < 10);
		let_all_go(o);
		hold_all(o, DIRECT_HOLD_WRITES);
		direct_collect(o->p);
	}
	assert_true(o->p->commit.durable_seq == o->p->commit.seq);
	let_all_go(o);
}

/* Doubt is found without a waiter, for all that was posted; and it ends when W hold that. */
TEST(test_doubt_is_found_without_a_waiter, struct owner *o)
{
	struct perseas_token token;
	perseas_tx_t *tx;

	hold_all(o, DIRECT_HOLD_WRITES);
	post(o, 1);
	o->d->now += (uint64_t)o->p->options.commit_timeout_ms * 1000000 / 2;
	token = post(o, 2);
	direct_collect(o->p);
	assert_int_equal(owner_stat(o).in_doubt, 0);
	o->d->now += (uint64_t)o->p->options.commit_timeout_ms * 1000000 / 2;
	direct_collect(o->p);
	assert_int_equal(owner_stat(o).in_doubt, 1);
	direct_keep(o->d, o->p);
	assert_int_equal(doubts, 1);
	assert_true(doubtful == token.seq);
	assert_int_equal(perseas_begin(o->p, 0, &tx), PERSEAS_EBLOCKED);
	let_all_go(o);
	direct_collect(o->p);
	assert_int_equal(owner_stat(o).in_doubt, 0);
	direct_keep(o->d, o->p);
	assert_int_equal(settled, 1);
	assert_int_equal(owner_put(o, 0, 10, 3), 0);
}

/* While W mirrors make progress there is no doubt, however long the last commit takes. */
TEST(test_what_gets_on_is_not_in_doubt, struct owner *o)
{
	const uint64_t most = (uint64_t)o->p->options.commit_timeout_ms * 1000000;

	hold_all(o, DIRECT_HOLD_WRITES);
	for (unsigned i = 0; i < 10; i++)
		post(o, (uint8_t)i);
	for (unsigned i = 0; i < 9; i++) {
		o->d->now += most * 3 / 4;
		for (unsigned m = 0; m < 3; m++)
			direct_release(o->d, m, 1);
		direct_collect(o->p);
		assert_int_equal(owner_stat(o).in_doubt, 0);
	}
	o->d->now += most + 1;
	direct_collect(o->p);
	assert_int_equal(owner_stat(o).in_doubt, 1);
	let_all_go(o);
}

/* The process was stopped for longer than that, and the answers lie there. */
TEST(test_answers_are_looked_for_before_doubt, struct owner *o)
{
	hold_all(o, DIRECT_HOLD_WRITES);
	post(o, 1);
	o->d->now += 100000000000u;
	for (unsigned m = 0; m < 3; m++)
		direct_release(o->d, m, 1);
	post(o, 2);
	assert_int_equal(owner_stat(o).in_doubt, 0);
	let_all_go(o);
	direct_collect(o->p);
	assert_true(o->p->commit.unwaited.last_unawaited_seq == 0);
	o->d->now += 100000000000u;
	hold_all(o, DIRECT_HOLD_WRITES);
	post(o, 3);
	direct_collect(o->p);
	assert_int_equal(owner_stat(o).in_doubt, 0);
	/* A thread that posts checks, too, where the collector has no turn. */
	o->d->now += 100000000000u;
	post(o, 4);
	assert_int_equal(owner_stat(o).in_doubt, 1);
	assert_int_equal(post_with(o, PERSEAS_NOWAIT, 0, 1, 1, &(struct perseas_token){ 0, 0 }),
	                 PERSEAS_EBLOCKED);
	let_all_go(o);
}

/* W held it; then a holder loses what it has and is copied whole: what was durable stays so. */
TEST(test_the_mark_does_not_fall, struct owner *o)
{
	struct perseas_token token;

	o->d->mirrors[2].hold = DIRECT_HOLD_WRITES;
	token = post(o, 1);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
	owner_lose(o, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	assert_false(ps_w_mirrors_hold(o->p, token.seq));
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
	assert_true(owner_stat(o).durable_seq == token.seq);
	o->d->now += 100000000000u;
	direct_collect(o->p);
	assert_int_equal(owner_stat(o).in_doubt, 0);
	let_go(o, 2);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
}

/* The same when nobody had asked before the mirror was lost. */
TEST(test_the_mark_is_taken_before_a_holder_is_lost, struct owner *o)
{
	uint64_t seq;

	o->d->mirrors[2].hold = DIRECT_HOLD_WRITES;
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	seq = o->p->commit.seq;
	owner_lose(o, 1);
	for (unsigned rounds = 0; o->p->mirrors[1].state != PERSEAS_MIRROR_RESYNCING; rounds++) {
		assert_true(rounds < 1000);
		direct_keep(o->d, o->p);
	}
	assert_true(owner_stat(o).durable_seq == seq);
	let_go(o, 2);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
}

static void count_by(struct owner *o, uint32_t acks)
{
	pthread_mutex_lock(&o->p->lock);
	o->p->roster->acks = acks;
	ps_quorums_recompute(o->p);
	pthread_mutex_unlock(&o->p->lock);
}

/* One mirror of three was enough, until a roster with a larger W counts. */
TEST(test_the_mark_is_taken_before_a_roster_counts, struct owner *o)
{
	uint64_t seq;

	count_by(o, 1);
	o->d->mirrors[1].hold = o->d->mirrors[2].hold = DIRECT_HOLD_WRITES;
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	seq = o->p->commit.seq;
	count_by(o, 2);
	assert_false(ps_w_mirrors_hold(o->p, seq));
	assert_true(owner_stat(o).durable_seq == seq);
	complete_all(o);
}

/* --- the descriptor --- */

static bool is_readable(int fd)
{
	struct pollfd look = { .fd = fd, .events = POLLIN };

	return poll(&look, 1, 0) == 1;
}

/* The descriptor is readable when W mirrors hold more, until a thread has looked. */
TEST(test_the_descriptor_tells_of_more, struct owner *o)
{
	const int fd = perseas_fd(o->p);
	struct perseas_token one, token;

	assert_true(fd >= 0);
	assert_int_equal(perseas_fd(o->p), fd);
	assert_true(is_readable(fd));
	assert_int_equal(perseas_durable(o->p, &token), 0);
	assert_false(is_readable(fd));
	hold_all(o, DIRECT_HOLD_WRITES);
	one = post(o, 1);
	post(o, 2);
	direct_collect(o->p);
	assert_false(is_readable(fd));
	for (unsigned m = 0; m < 2; m++)
		direct_release(o->d, m, 1);
	direct_collect(o->p);
	assert_true(is_readable(fd));
	assert_int_equal(perseas_durable(o->p, &token), 0);
	assert_true(token.seq == one.seq && token.epoch == one.epoch);
	assert_false(is_readable(fd));
	let_all_go(o);
	direct_collect(o->p);
	assert_true(is_readable(fd));
	/* A commit that is waited for is told of, too. */
	assert_int_equal(perseas_durable(o->p, &token), 0);
	assert_int_equal(owner_put(o, 0, 10, 3), 0);
	assert_true(is_readable(fd));
}

/* A waiter for more learns that there will be no more. */
TEST(test_the_descriptor_tells_of_the_fence, struct owner *o)
{
	const int fd = perseas_fd(o->p);
	struct perseas_token posted, token;
	perseas_t *second;

	assert_int_equal(perseas_durable(o->p, &token), 0);
	hold_all(o, DIRECT_HOLD_WRITES);
	posted = post(o, 1);
	hold_all(o, DIRECT_HOLD_NOTHING);
	o->d->cut_code = PS_LINK_FENCED;
	second = owner_rival(o);
	assert_false(is_readable(fd));
	direct_collect(o->p);
	direct_keep(o->d, o->p);
	assert_true(is_readable(fd));
	assert_int_equal(perseas_durable(o->p, &token), PERSEAS_EFENCED);
	assert_true(token.seq == posted.seq - 1);
	assert_true(is_readable(fd));
	assert_int_equal(perseas_wait(o->p, &posted, -1), PERSEAS_EFENCED);
	/* Commits that were held before the fence stay held. */
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
	assert_int_equal(perseas_close(o->p), PERSEAS_EFENCED);
	o->p = second;
	owner_map(o);
	assert_int_equal(o->bytes[0], 0);
}
