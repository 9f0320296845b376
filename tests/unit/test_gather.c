/*
 * test_gather.c - commits that are held back and sent as one: what is sent, when, who does not wait
 * behind it, and what it counts as until then. test_gather_apart.c has what else transactions do.
 */
#include "gather_rig.h"

struct unit_fixture unit_fixture = { setup_gathering, owner_teardown };

/* --- one record --- */

/* Three become one transaction, with the first value before and the last one after of each byte. */
TEST(test_three_become_one, struct owner *o)
{
	const uint64_t before = owner_stat(o).seq;
	struct perseas_token one = put_held(o, 0, 10, 1), two, three;
	struct perseas_stat stat;

	two = put_held(o, 5, 10, 2);
	three = put_held(o, 100, 200, 3);
	assert_true(one.seq == before + 1 && two.seq == one.seq && three.seq == one.seq);
	assert_held(o, 0, 1);
	assert_held(o, 100, 3);
	assert_int_equal(perseas_wait(o->p, &three, 0), 0);
	assert_sent(o, 0, 1);
	assert_sent(o, 4, 1);
	assert_sent(o, 5, 2);
	assert_sent(o, 14, 2);
	assert_sent(o, 15, 15 * 7);
	assert_sent(o, 100, 3);
	assert_sent(o, 299, 3);
	stat = owner_stat(o);
	assert_true(stat.seq == before + 1 && stat.durable_seq == stat.seq);
	assert_true(stat.gathered == 3 && stat.groups == 1 && stat.commits == 3);
	assert_true(stat.saved_between == 5 && stat.range_bytes == 215);
	owner_next(o);
	assert_true(o->bytes[0] == 1 && o->bytes[5] == 2 && o->bytes[299] == 3);
}

/* Lets so many writes of the group reach each mirror, and then ends the owner. */
static void break_after(struct owner *o, long writes)
{
	for (unsigned i = 0; i < o->d->count; i++)
		o->d->mirrors[i].writes_left = writes;
	assert_int_equal(perseas_flush(o->p), PERSEAS_EINDOUBT);
	owner_die(o);
}

/* All mirrors have these bytes. */
static void assert_all_are(struct owner *o, const uint8_t *bytes)
{
	for (unsigned i = 0; i < o->d->count; i++)
		assert_memory_equal(memory_heap_piece(o->d->mirrors[i].memory, STORE, "segment-0.1",
		                                      NULL),
		                    bytes, SIZE);
}

/* Its slot is missing everywhere: all of it is rolled back, to what was before the first. */
TEST(test_all_of_it_is_rolled_back, struct owner *o)
{
	put_held(o, 0, 10, 1);
	put_held(o, 5, 10, 2);
	put_held(o, 8, 1, 3);
	break_after(o, 2);
	assert_int_equal(byte_of(o, 0, 8), 3);
	owner_reopen(o);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(o->bytes[i], (uint8_t)(i * 7));
}

/* Ranges of all sizes overlap in any order: mirrors end as memory is, a roll-back as it was. */
TEST(test_any_ranges_are_united, struct owner *o)
{
	static uint8_t was[SIZE];
	uint64_t chance = 12345;

	for (unsigned round = 0; round < 300; round++) {
		memcpy(was, o->bytes, SIZE);
		for (unsigned i = 0; i < 12; i++) {
			unsigned at, length;

			chance = chance * 6364136223846793005u + 1442695040888963407u;
			length = 1 + (unsigned)(chance >> 33) % (chance >> 60 ? 90 : 700);
			at = (unsigned)(chance >> 20) % (SIZE - length);
			put_held(o, at, length, (uint8_t)(round + i));
		}
		if (round % 3 == 2) {
			break_after(o, 1 + round % 7);
			owner_reopen(o);
			assert_memory_equal(o->bytes, was, SIZE);
		} else {
			assert_int_equal(perseas_flush(o->p), 0);
			assert_all_are(o, o->bytes);
		}
	}
}

/* Changes of a later, open transaction are neither sent with the group nor lost with an abort. */
TEST(test_what_is_open_is_not_sent, struct owner *o)
{
	perseas_tx_t *tx;

	put_held(o, 0, 10, 1);
	tx = owner_begin_put(o, 0, 20, 9);
	assert_held(o, 0, 1);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_sent(o, 0, 1);
	assert_sent(o, 10, 70);
	assert_int_equal(perseas_abort(tx), 0);
	assert_true(o->bytes[0] == 1 && o->bytes[10] == 70);
	put_held(o, 0, 10, 2);
	tx = owner_begin_put(o, 0, 20, 9);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(o->bytes[0], 2);
	assert_held(o, 0, 2);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_sent(o, 0, 2);
}

/* --- when it is posted --- */

/* A collector at work comes when the group is due, and is woken if it would come later. */
TEST(test_the_collector_comes_when_it_is_due, struct owner *o)
{
	const struct ps_unwaited *u;

	o->options.gather_us = 3000;
	owner_reopen(o);
	u = &o->p->commit.unwaited;
	put_held(o, 0, 10, 1);
	direct_collect(o->p);
	assert_true(o->p->commit.has_gathered &&
	            u->collector_wakes_at == o->p->commit.gather->must_post_at);
	o->d->now = u->collector_wakes_at;
	direct_collect(o->p);
	assert_false(o->p->commit.has_gathered || u->is_collector_idle);
	o->d->woken = 0;
	put_held(o, 0, 10, 2);
	assert_true(o->d->woken >> PS_COLLECTOR & 1);
	assert_true(u->collector_wakes_at == o->p->commit.gather->must_post_at);
}

TEST(test_the_collector_posts_it_in_time, struct owner *o)
{
	const uint64_t from = o->d->now;

	put_held(o, 0, 10, 1);
	assert_true(o->p->commit.unwaited.collector_wakes_at <= from + HOLD + 1000000);
	o->d->now = from + HOLD / 2;
	put_held(o, 100, 10, 2);
	direct_collect(o->p);
	assert_held(o, 0, 1);
	assert_held(o, 100, 2);
	o->d->now = from + HOLD - 100000;
	direct_collect(o->p);
	assert_held(o, 0, 1);
	o->d->now = from + HOLD + 1000000;
	direct_collect(o->p);
	assert_sent(o, 0, 1);
	assert_sent(o, 100, 2);
	assert_true(owner_stat(o).durable_seq == owner_stat(o).seq);
}

/* A commit that comes too late to be held posts the group, itself included. */
TEST(test_a_late_one_posts_it, struct owner *o)
{
	put_held(o, 0, 10, 1);
	o->d->now += HOLD + 1;
	put_held(o, 100, 10, 2);
	assert_sent(o, 0, 1);
	assert_sent(o, 100, 2);
	assert_int_equal(owner_stat(o).groups, 1);
}

static void wait_for_it(struct owner *o)
{
	struct perseas_token token;

	assert_int_equal(perseas_posted(o->p, &token), 0);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
}

static void flush(struct owner *o)
{
	assert_int_equal(perseas_flush(o->p), 0);
}

static void commit_another(struct owner *o)
{
	assert_int_equal(owner_put(o, 500, 10, 77), 0);
}

static void map_another(struct owner *o)
{
	void *addr;

	assert_int_equal(perseas_map(o->p, "another", 100, &addr), 0);
}

static void publish_another(struct owner *o)
{
	map_another(o);
	put_held(o, 200, 10, 5);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_sent(o, 200, 5);
}

static void unmap(struct owner *o)
{
	assert_int_equal(perseas_unmap(o->p, o->bytes), 0);
	owner_map(o);
}

static void read_apart(struct owner *o)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, PERSEAS_SERIAL, &tx), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

static void read_locked(struct owner *o)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_lock(tx, 1, PERSEAS_LOCK_SHARED), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* Posts a transaction that does not fit into the group, so that it is sent alone. */
static void post_much(struct owner *o)
{
	struct perseas_token token;

	assert_int_equal(post_with(o, PERSEAS_NOWAIT, 300, 2000, 6, &token), 0);
	assert_true(token.seq == owner_stat(o).seq && owner_stat(o).groups == 1);
	assert_sent(o, 300, 6);
}

/* A call that waits, or posts something itself, posts the group first. */
TEST(test_nobody_passes_it, struct owner *o)
{
	static void (*const ways[])(struct owner *
	                            o) = { wait_for_it, flush,      commit_another,  map_another,
		                           unmap,       read_apart, publish_another, read_locked };

	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		put_held(o, 0, 10, (uint8_t)(i + 1));
		assert_held(o, 0, (uint8_t)(i + 1));
		ways[i](o);
		assert_sent(o, 0, (uint8_t)(i + 1));
	}
}

TEST(test_what_does_not_fit_is_sent_alone, struct owner *o)
{
	o->options.gather_bytes = 1024;
	owner_reopen(o);
	put_held(o, 0, 10, 1);
	post_much(o);
	assert_sent(o, 0, 1);
}

TEST(test_close_posts_it, struct owner *o)
{
	put_held(o, 0, 10, 1);
	assert_int_equal(perseas_close(o->p), 0);
	o->p = NULL;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(byte_of(o, i, 0), 1);
	owner_reopen(o);
	assert_int_equal(o->bytes[0], 1);
}

/* A group is posted when the next transaction would make it more than it may be. */
TEST(test_a_group_is_bounded, struct owner *o)
{
	uint64_t sent;

	o->options.gather_bytes = 4096;
	owner_reopen(o);
	sent = owner_stat(o).bytes_sent;
	for (unsigned i = 0; i < 750; i++) {
		put_held(o, i % 375 * 8, 3, (uint8_t)i);
		/* Slot, record, and what it changes, on three mirrors. */
		assert_true(owner_stat(o).bytes_sent - sent <= 3 * 4096);
		sent = owner_stat(o).bytes_sent;
	}
	assert_in_range(owner_stat(o).groups, 5, 30);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_all_are(o, o->bytes);
}

/* --- what it counts as --- */

/* The commit is not called durable before it was posted, and the descriptor tells when it is. */
TEST(test_it_is_not_durable_before, struct owner *o)
{
	struct perseas_token token = put_held(o, 0, 10, 1), durable;

	assert_int_equal(perseas_durable(o->p, &durable), 0);
	assert_true(durable.seq == token.seq - 1);
	assert_true(owner_stat(o).durable_seq == token.seq - 1);
	o->d->now += HOLD + 1;
	direct_collect(o->p);
	assert_int_equal(perseas_durable(o->p, &durable), 0);
	assert_true(durable.seq == token.seq);
}

TEST(test_doubt_counts_from_the_commit, struct owner *o)
{
	const uint64_t timeout = (uint64_t)o->p->options.commit_timeout_ms * 1000000;
	const uint64_t from = o->d->now;
	struct perseas_token token;

	hold_all(o, DIRECT_HOLD_WRITES);
	token = put_held(o, 0, 10, 1);
	o->d->now = from + HOLD + 1000000;
	direct_collect(o->p);
	assert_false(o->p->commit.has_gathered);
	o->d->now = from + timeout - 1000000;
	direct_collect(o->p);
	assert_int_equal(doubts, 0);
	o->d->now = from + timeout + 1000000;
	direct_collect(o->p);
	assert_true(o->p->commit.in_doubt_seq == token.seq);
	complete_all(o);
	assert_int_equal(owner_stat(o).in_doubt, 0);
}

static void post_beside(void *arg)
{
	struct owner *o = arg;

	o->d->on_pause = NULL;
	put_held(o, 100, 10, 2);
	assert_true(o->p->commit.has_gathered);
}

/* While another commit is in doubt nothing is held: no commit can come behind it. */
TEST(test_a_doubt_posts_it, struct owner *o)
{
	hold_all(o, DIRECT_HOLD_WRITES);
	owner_at_pause(o, post_beside);
	assert_int_equal(owner_put(o, 0, 10, 1), PERSEAS_EINDOUBT);
	assert_false(o->p->commit.has_gathered);
	assert_int_equal(owner_put(o, 0, 10, 1), PERSEAS_EBLOCKED);
	let_all_go(o);
	assert_sent(o, 100, 2);
}

/* flush_within_ms bounds what can be lost, held back or not: a group is posted in time. */
TEST(test_the_bound_posts_it, struct owner *o)
{
	uint64_t from;

	o->options.flush_within_ms = 40;
	owner_reopen(o);
	from = o->d->now;
	put_held(o, 0, 10, 1);
	assert_true(ps_gather_due_at(o->p) <= from + 21 * 1000000);
	o->d->now = from + 41 * 1000000;
	put_held(o, 100, 10, 2);
	assert_int_equal(byte_of(o, 0, 0), 1);
}

/* Another owner has the store: the outcome of what was held is as unknown as if it was posted. */
TEST(test_the_fenced_learn_of_it, struct owner *o)
{
	struct perseas_token token = put_held(o, 0, 10, 1);
	perseas_t *first = o->p, *second = owner_rival(o);

	for (unsigned i = 0; i < 10; i++)
		direct_keep(o->d, first);
	assert_int_equal(perseas_wait(first, &token, 0), PERSEAS_EFENCED);
	assert_int_equal(perseas_close(first), PERSEAS_EFENCED);
	o->p = second;
	owner_map(o);
	assert_int_equal(o->bytes[0], 0);
}

TEST(test_what_cannot_be_is_refused, struct owner *o)
{
	o->options.gather_us = 1000001;
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), PERSEAS_EINVAL);
	assert_error_says(o, "gather_us");
	o->options.gather_us = 10;
	o->options.gather_bytes = 1023;
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), PERSEAS_EINVAL);
	assert_error_says(o, "gather_bytes");
}

/* Bytes that a transaction declares again are counted, once it is committed. */
TEST(test_what_is_declared_again_is_counted, struct owner *o)
{
	perseas_tx_t *tx;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
		assert_int_equal(perseas_set_range(tx, o->bytes, 10), 0);
		assert_int_equal(perseas_set_range(tx, o->bytes + 5, 10), 0);
		assert_int_equal(perseas_set_range(tx, o->bytes + 2, 3), 0);
		assert_int_equal(i ? perseas_commit(tx, 0) : perseas_abort(tx), 0);
	}
	assert_int_equal(owner_stat(o).saved_within, 8);
	assert_int_equal(owner_stat(o).saved_between, 0);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	assert_int_equal(owner_stat(o).saved_within, 8);
}
