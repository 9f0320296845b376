/*
 * test_gather_counts.c - what is held back as others see it: its segments, its bounds, and what it
 * counts as in events, in lists and in a doubt. test_gather.c has what is sent, and when.
 */
#include "gather_rig.h"

struct unit_fixture unit_fixture = { setup_gathering, owner_teardown };

/* --- segments --- */

/* Ids whose lines come close in the index: at the least distance one is right behind the other. */
enum { IDS_APART = 61, LINES = 250, OTHER = LINES * PS_GATHER_LINE };

/* Maps segments with ids up to IDS_APART + 1; the first and the last are large. */
static void map_many(struct owner *o, uint8_t **low, uint8_t **high)
{
	char name[8];
	void *addr;

	for (unsigned id = 1; id <= IDS_APART + 1; id++) {
		const bool is_large = id == 1 || id == IDS_APART + 1;

		snprintf(name, sizeof(name), "s%u", id);
		assert_int_equal(perseas_map(o->p, name, is_large ? OTHER : 64, &addr), 0);
		assert_int_equal(ps_segment_by_name(o->p, name)->id, id);
		if (id == 1)
			*low = addr;
		*high = addr;
	}
	if (!o->p->segments[1].born)
		assert_int_equal(perseas_publish(o->p), 0);
}

static void hold_at(struct owner *o, uint8_t *at, unsigned length, uint8_t value)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, at, length), 0);
	memset(at, value, length);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
}

/* Equal lines of two segments are kept apart, also where one goes on at the end of the other. */
TEST(test_segments_are_kept_apart, struct owner *o)
{
	static uint8_t was_low[OTHER], was_high[OTHER];
	uint8_t *low, *high;

	map_many(o, &low, &high);
	for (unsigned n = IDS_APART; n < LINES; n++) {
		hold_at(o, high + (n - IDS_APART) * PS_GATHER_LINE, 1, (uint8_t)(n + 1));
		hold_at(o, high + n * PS_GATHER_LINE, 1, (uint8_t)(n + 2));
		hold_at(o, low + n * PS_GATHER_LINE, 1, (uint8_t)(n + 3));
		assert_int_equal(perseas_flush(o->p), 0);
	}
	hold_at(o, low, PS_GATHER_LINE, 1);
	hold_at(o, high + PS_GATHER_LINE, PS_GATHER_LINE, 2);
	memcpy(was_low, low, OTHER);
	memcpy(was_high, high, OTHER);
	assert_int_equal(perseas_flush(o->p), 0);
	owner_next(o);
	map_many(o, &low, &high);
	assert_memory_equal(low, was_low, OTHER);
	assert_memory_equal(high, was_high, OTHER);
}

/* --- bounds --- */

/* Its record is no longer than any may be: a mirror must be able to keep two. */
TEST_WITH(test_its_record_is_bounded, NULL, NULL)
{
	struct owner *o = gathering_owner(3);

	o->options.log_size = 4096;
	owner_begin(o);
	for (unsigned i = 0; i < 58; i++) {
		put_held(o, i % 29 * 100, 100, (uint8_t)i);
		assert_true(o->p->commit.next_position - o->p->commit.last_position <=
		            ps_record_limit(4096));
	}
	assert_in_range(owner_stat(o).groups, 2, 57);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_true(o->p->commit.next_position - o->p->commit.last_position <=
	            ps_record_limit(4096));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(byte_of(o, i, 2800), 57);
	owner_free(o);
}

/* A commit timeout that is short bounds how long it is held: half of it is left to mirrors. */
TEST(test_the_timeout_posts_it, struct owner *o)
{
	uint64_t from;

	o->options.commit_timeout_ms = 100;
	owner_reopen(o);
	from = o->d->now;
	put_held(o, 0, 10, 1);
	assert_in_range(ps_gather_due_at(o->p), from + 50 * 1000000, from + 51 * 1000000);
}

/* --- what it counts as --- */

/* Posted commits are in doubt, and so is the whole group that is held back at that time. */
TEST(test_doubt_has_what_is_held, struct owner *o)
{
	const uint64_t timeout = (uint64_t)o->p->options.commit_timeout_ms * 1000000;
	const uint64_t from = o->d->now;
	struct perseas_token posted, held;

	hold_all(o, DIRECT_HOLD_WRITES);
	posted = put_held(o, 0, 10, 1);
	o->d->now = from + HOLD + 1000000;
	direct_collect(o->p);
	o->d->now = from + timeout - HOLD / 2;
	held = put_held(o, 100, 10, 2);
	assert_true(o->p->commit.has_gathered && held.seq == posted.seq + 1);
	o->d->now = from + timeout + 1000000;
	direct_collect(o->p);
	assert_false(o->p->commit.has_gathered);
	assert_true(o->p->commit.in_doubt_seq == held.seq);
	complete_all(o);
	assert_int_equal(owner_stat(o).in_doubt, 0);
}

static uint64_t told;

static void note_down(void *arg, const struct perseas_event *event)
{
	(void)arg;
	if (event->kind == PERSEAS_EVENT_MIRROR_DOWN)
		told = event->seq;
}

/* A held transaction is committed for later events, and not before one that is open. */
TEST(test_it_is_committed_for_events, struct owner *o)
{
	struct perseas_transaction open;
	struct perseas_token token;
	perseas_tx_t *tx;
	size_t count;

	o->options.on_event = note_down;
	told = 0;
	owner_reopen(o);
	token = put_held(o, 0, 10, 1);
	direct_crash(o->d, 1);
	for (unsigned i = 0; i < 10 && !told; i++)
		direct_keep(o->d, o->p);
	assert_true(o->p->commit.has_gathered);
	assert_true(told == token.seq);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_open_transactions(o->p, &open, 1, &count), 0);
	assert_true(open.since == token.seq - 1 && owner_stat(o).seq == token.seq);
	assert_int_equal(perseas_abort(tx), 0);
}
