/*
 * test_doubt.c - mirrors that are slow, break, or promise another owner, while a store is open:
 * commits in doubt, fenced owners, and sessions that are taken up again.
 */
#include "owner.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

static void hold(struct owner *o, unsigned mirror, enum direct_hold how)
{
	o->d->mirrors[mirror].hold = how;
}

static void let_go(struct owner *o, unsigned mirror)
{
	o->d->mirrors[mirror].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, mirror, 1000);
}

/* The mirror's bytes of the segment. */
static uint8_t *mirrored(struct owner *o, unsigned mirror)
{
	struct memory *memory = o->d->mirrors[mirror].memory;
	uint8_t *bytes = memory_heap_piece(memory, STORE, "segment-0.1", NULL);

	assert_non_null(bytes);
	return bytes;
}

static void assert_mirrored(struct owner *o, unsigned mirror)
{
	assert_memory_equal(mirrored(o, mirror), o->bytes, SIZE);
}

/* Two of three mirrors do not answer in time: the commit is in doubt, nothing else begins, what
 * is open can only be aborted; when the answers come, all goes on. */
TEST(test_in_doubt_until_the_answers_come, struct owner *o)
{
	perseas_tx_t *tx, *other = owner_tx(o);
	void *addr;

	assert_int_equal(perseas_set_range(other, o->bytes + 100, 10), 0);
	o->bytes[100] = 99;
	owner_hold(o, DIRECT_HOLD_COMPLETIONS);
	assert_int_equal(owner_put(o, 0, 10, 5), PERSEAS_EINDOUBT);
	assert_says(o, "is held by 1 of 3 mirrors, and 2 must hold it: perseas_flush");
	assert_int_equal(o->bytes[0], 5);
	assert_int_equal(owner_stat(o).in_doubt, 1);
	assert_true(owner_stat(o).durable_seq == owner_stat(o).seq - 1);
	assert_int_equal(perseas_begin(o->p, 0, &tx), PERSEAS_EBLOCKED);
	assert_null(tx);
	assert_int_equal(perseas_set_range(other, o->bytes + 120, 10), 0);
	assert_int_equal(perseas_commit(other, 0), PERSEAS_EBLOCKED);
	assert_int_equal(perseas_set_range(other, o->bytes + 140, 10), 0);
	assert_int_equal(perseas_abort(other), 0);
	assert_int_equal(o->bytes[100], (uint8_t)(100 * 7));
	assert_int_equal(perseas_flush(o->p), PERSEAS_EINDOUBT);
	let_go(o, 1);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(owner_stat(o).in_doubt, 0);
	assert_int_equal(owner_put(o, 0, 10, 6), 0);
	let_go(o, 2);
	assert_int_equal(perseas_map(o->p, "new", 100, &addr), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_mirrored(o, i);
}

/* A queue pair takes so many writes and no more: to a mirror that completes nothing, no more
 * transactions than that are sent, however many are committed on the others. */
TEST(test_a_mirror_that_completes_nothing_is_sent_so_many, struct owner *o)
{
	hold(o, 2, DIRECT_HOLD_COMPLETIONS);
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(owner_put(o, 0, 1, (uint8_t)i), 0);
	assert_int_equal(o->p->mirrors[2].chains_in_flight, 128);
	let_go(o, 2);
}

/* Mirror 0 gets the only copy of a commit, and loses its memory. Mirror 1 can have it next. */
static void lose_only_copy(struct owner *o)
{
	direct_crash(o->d, 2);
	hold(o, 1, DIRECT_HOLD_WRITES);
	assert_int_equal(owner_put(o, 0, 10, 5), PERSEAS_EINDOUBT);
	owner_lose(o, 0);
	owner_keep(o, 0, PERSEAS_MIRROR_LOST);
}

/* The next mirror that gets the commit has the only copy of it, and W = 2 must have one. */
TEST(test_a_lost_copy_does_not_end_the_doubt, struct owner *o)
{
	lose_only_copy(o);
	let_go(o, 1);
	assert_int_equal(perseas_flush(o->p), PERSEAS_EINDOUBT);
	assert_says(o, "is held by 1 of 3 mirrors, and 2 must hold it");
	direct_start(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_mirrored(o, 1);
	assert_mirrored(o, 2);
}

/* The owner does not call a mirror lost while it prepares a new copy to it. What the mirror had
 * must not count even so. */
TEST(test_a_lost_copy_does_not_count_while_another_one_is_prepared, struct owner *o)
{
	hold(o, 1, DIRECT_HOLD_WRITES);
	hold(o, 2, DIRECT_HOLD_WRITES);
	assert_int_equal(owner_put(o, 0, 10, 5), PERSEAS_EINDOUBT);
	direct_hang(o->d, 2);
	owner_lose(o, 0);
	OWNER_KEEP_UNTIL(o, o->p->upkeep.resync.target);
	assert_int_equal(o->p->mirrors[0].state, PERSEAS_MIRROR_DOWN);
	let_go(o, 1);
	assert_int_equal(perseas_flush(o->p), PERSEAS_EINDOUBT);
	direct_unhang(o->d, 2);
	let_go(o, 2);
	OWNER_KEEP_UNTIL(o, !o->p->commit.in_doubt_seq);
	assert_int_equal(perseas_flush(o->p), 0);
}

/* A lost mirror that then goes out of reach does not get its copy back by that. */
TEST(test_a_lost_copy_stays_lost_while_its_mirror_is_away, struct owner *o)
{
	lose_only_copy(o);
	direct_crash(o->d, 0);
	owner_keep(o, 0, PERSEAS_MIRROR_DOWN);
	let_go(o, 1);
	assert_int_equal(perseas_flush(o->p), PERSEAS_EINDOUBT);
}

/* Mapping and publishing are refused too while a commit is in doubt. */
TEST(test_in_doubt_blocks_segments, struct owner *o)
{
	void *addr;

	assert_int_equal(perseas_map(o->p, "new", 100, &addr), 0);
	owner_hold(o, DIRECT_HOLD_WRITES);
	assert_int_equal(owner_put(o, 0, 10, 5), PERSEAS_EINDOUBT);
	assert_int_equal(perseas_map(o->p, "other", 100, &addr), PERSEAS_EBLOCKED);
	assert_int_equal(perseas_publish(o->p), PERSEAS_EBLOCKED);
	owner_hold(o, DIRECT_HOLD_NOTHING);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(owner_stat(o).live, 3);
}

static void release_one(void *arg)
{
	struct owner *o = arg;

	direct_release(o->d, 1, 1);
	direct_release(o->d, 2, 1);
}

/* The answers come while the commit sleeps: it is not in doubt. */
TEST(test_commit_waits_for_slow_mirrors, struct owner *o)
{
	owner_hold(o, DIRECT_HOLD_WRITES);
	o->d->on_pause = release_one;
	o->d->on_pause_arg = o;
	for (int i = 0; i < 10; i++)
		assert_int_equal(owner_put(o, 0, 10, (uint8_t)i), 0);
	o->d->on_pause = NULL;
	owner_hold(o, DIRECT_HOLD_NOTHING);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_mirrored(o, 1);
}

/* A publishing can be in doubt like a commit, and is whole when it is not any more. */
TEST(test_publish_in_doubt, struct owner *o)
{
	struct perseas_segment_info info;
	void *addr;

	assert_int_equal(perseas_map(o->p, "new", 100, &addr), 0);
	memset(addr, 3, 100);
	owner_hold(o, DIRECT_HOLD_COMPLETIONS);
	assert_int_equal(perseas_publish(o->p), PERSEAS_EINDOUBT);
	owner_hold(o, DIRECT_HOLD_NOTHING);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(perseas_segment(o->p, "new", &info), 0);
	assert_true(info.published);
	owner_reopen(o);
	assert_int_equal(perseas_map(o->p, "new", 0, &addr), 0);
	assert_int_equal(*(uint8_t *)addr, 3);
}

/* Too few mirrors take the contents: nothing is published, and it can be tried again. */
TEST(test_publish_with_too_few_mirrors, struct owner *o)
{
	struct perseas_segment_info info;
	void *addr;

	assert_int_equal(perseas_map(o->p, "new", 100, &addr), 0);
	for (unsigned i = 0; i < 2; i++)
		direct_crash(o->d, i);
	assert_int_equal(perseas_publish(o->p), PERSEAS_EUNREACHABLE);
	assert_int_equal(perseas_map(o->p, "other", 100, &addr), PERSEAS_EUNREACHABLE);
	assert_int_equal(perseas_segment(o->p, "other", &info), PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_segment(o->p, "new", &info), 0);
	assert_false(info.published);
	direct_start(o->d, 0);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_publish(o->p), 0);
	/* The third missed the publishing, which cannot be replayed. */
	direct_start(o->d, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_stat(o).resyncs, 1);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(perseas_map(o->p, "new", 100, &addr), 0);
}

/* A segment is read for mapping, and no mirror is left. */
TEST(test_map_without_mirrors, struct owner *o)
{
	void *addr;

	assert_int_equal(perseas_unmap(o->p, o->bytes), 0);
	for (unsigned i = 0; i < 3; i++)
		direct_crash(o->d, i);
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), PERSEAS_EUNREACHABLE);
	assert_null(addr);
	direct_start(o->d, 2);
	direct_keep(o->d, o->p);
	assert_int_equal(perseas_map(o->p, "accounts", 0, &addr), 0);
	assert_int_equal(((uint8_t *)addr)[1], 7);
}

/* Another owner takes the store; the mirrors say so at once, or only when asked again. */
static void fence(struct owner *o, int cut_code)
{
	perseas_t *second;
	perseas_tx_t *tx, *open;

	o->d->cut_code = cut_code;
	open = owner_tx(o);
	assert_int_equal(perseas_set_range(open, o->bytes, 10), 0);
	o->bytes[0] = 200;
	second = owner_rival(o);
	if (cut_code == PS_LINK_BROKEN) {
		assert_int_equal(perseas_commit(open, 0), PERSEAS_EINDOUBT);
		direct_keep(o->d, o->p);
	} else {
		o->d->on_pause = owner_keep_beside;
		o->d->on_pause_arg = o;
		assert_int_equal(perseas_commit(open, 0), PERSEAS_EFENCED);
		o->d->on_pause = NULL;
	}
	assert_int_equal(perseas_flush(o->p), PERSEAS_EFENCED);
	assert_says(o, "close this handle");
	assert_int_equal(perseas_commit(open, 0), PERSEAS_EENDED);
	assert_int_equal(perseas_begin(o->p, 0, &tx), PERSEAS_EFENCED);
	assert_int_equal(perseas_publish(o->p), PERSEAS_EFENCED);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(owner_state(o, i), PERSEAS_MIRROR_FENCED);
	owner_close(o);
	/* Nothing of it came through; the second one is sound. */
	o->p = second;
	owner_map(o);
	assert_int_equal(o->bytes[0], 0);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
}

TEST(test_takeover_fences, struct owner *o)
{
	fence(o, PS_LINK_FENCED);
}

TEST(test_takeover_is_found_out_by_asking, struct owner *o)
{
	fence(o, PS_LINK_BROKEN);
}

/* The fence is known before the commit: it is not sent, and the memory is as it was. */
TEST(test_commit_after_a_fence_is_put_back, struct owner *o)
{
	perseas_t *second;
	perseas_tx_t *tx, *other;

	tx = owner_tx(o);
	other = owner_tx(o);
	assert_int_equal(perseas_set_range(tx, o->bytes, 10), 0);
	assert_int_equal(perseas_set_range(other, o->bytes + 20, 10), 0);
	memset(o->bytes, 55, 30);
	second = owner_rival(o);
	assert_int_equal(owner_put(o, 50, 1, 1), PERSEAS_EINDOUBT);
	direct_keep(o->d, o->p);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EFENCED);
	assert_int_equal(o->bytes[1], 7);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EENDED);
	assert_int_equal(perseas_abort(other), 0);
	assert_int_equal(o->bytes[20], 140);
	assert_int_equal(perseas_close(second), 0);
}

/* Somebody else who was given one mirror of three tries to take the store over; the others, which
 * that one's roster names, break at this kind of request. */
static void try_to_take_over(struct owner *o, int request)
{
	struct perseas_options options = o->options;
	perseas_t *second;

	options.flags = PERSEAS_TAKEOVER;
	for (unsigned i = 1; i < 3; i++)
		o->d->mirrors[i].break_at = request;
	assert_int_equal(ps_open(direct_env(o->d), STORE, "sim://0", &options, &second, &o->error),
	                 PERSEAS_EQUORUM);
}

static void fail_to_take_over(struct owner *o, int request)
{
	try_to_take_over(o, request);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	direct_keep(o->d, o->p);
}

/* The open sees that the one mirror that it reaches is not enough, and does not even claim that
 * one. */
TEST(test_too_few_are_not_claimed, struct owner *o)
{
	fail_to_take_over(o, PERSEAS__REQUEST__BODY_STATUS);
	assert_error_says(o, "the newest state seen is 1:");
	assert_int_equal(owner_stat(o).live, 3);
}

/* One of three mirrors has promised the other owner, which got no further. Two are enough to go on,
 * and after the keeper noticed that the other owner is gone it has three again. */
TEST(test_one_fenced_mirror_stops_nobody, struct owner *o)
{
	o->d->cut_code = PS_LINK_FENCED;
	try_to_take_over(o, PERSEAS__REQUEST__BODY_CLAIM);
	o->d->cut_code = PS_LINK_BROKEN;
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_FENCED);
	assert_int_equal(owner_put(o, 0, 10, 2), 0);
	assert_int_equal(owner_stat(o).live, 2);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_stat(o).live, 3);
	assert_mirrored(o, 0);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(o->bytes[0], 2);
}

/* In one commit the only mirror that needs the ring is fenced, and then another one breaks, which
 * will: the transaction that is being sent stays there, for that one and for those after it. */
TEST(test_ring_is_needed_again_within_a_commit, struct owner *o)
{
	o->d->staged = false;
	owner_reopen(o);
	o->d->staged = true;
	direct_cut(o->d, 0);
	direct_keep(o->d, o->p);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	o->d->cut_code = PS_LINK_FENCED;
	try_to_take_over(o, PERSEAS__REQUEST__BODY_CLAIM);
	o->d->mirrors[1].writes_left = 0;
	assert_int_equal(owner_put(o, 0, 10, 7), PERSEAS_EINDOUBT);
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_FENCED);
	assert_mirrored(o, 2);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(owner_stat(o).resyncs, 0);
	assert_mirrored(o, 1);
}

/* A mirror's data path breaks after any number of writes, with any part of the next: commits go
 * on with the others, and the mirror is brought up from the ring. */
TEST(test_broken_session_is_replayed, struct owner *o)
{
	struct perseas_stat before, after;

	for (unsigned writes = 0; writes < 12; writes++) {
		struct direct_mirror *m = &o->d->mirrors[writes % 3];

		before = owner_stat(o);
		m->writes_left = (long)writes;
		m->torn = 3 * writes;
		for (unsigned i = 0; i < 6; i++)
			assert_int_equal(owner_put(o, i * 100, 50, (uint8_t)(writes + i)), 0);
		assert_int_equal(m->writes_left, -1);
		assert_int_equal(owner_stat(o).live, 2);
		direct_keep(o->d, o->p);
		after = owner_stat(o);
		assert_int_equal(after.live, 3);
		assert_true(after.reconnects == before.reconnects + 1);
		assert_true(after.replayed == before.replayed + 6 - writes / 3);
		assert_mirrored(o, writes % 3);
	}
}

/* All mirrors break within the same commit: it stays in doubt until they are back, and flush
 * has nothing to do but to wait. */
TEST(test_all_sessions_break, struct owner *o)
{
	for (unsigned i = 0; i < 3; i++)
		o->d->mirrors[i].writes_left = (long)i;
	assert_int_equal(owner_put(o, 0, 100, 9), PERSEAS_EINDOUBT);
	assert_int_equal(owner_stat(o).live, 0);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(owner_stat(o).in_doubt, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_mirrored(o, i);
	assert_int_equal(owner_put(o, 0, 100, 10), 0);
}

/* A daemon crashes and comes back with its memory; the keeper finds out by the control connection
 * that it went. */
TEST(test_daemon_that_comes_back, struct owner *o)
{
	struct perseas_mirror_stat stat;

	direct_crash(o->d, 1);
	direct_keep(o->d, o->p);
	assert_int_equal(perseas_mirror_stat(o->p, 1, &stat), 0);
	assert_int_equal(stat.state, PERSEAS_MIRROR_DOWN);
	assert_string_not_equal(stat.trouble, "");
	for (int i = 0; i < 20; i++)
		assert_int_equal(owner_put(o, (unsigned)i, 100, (uint8_t)i), 0);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_DOWN);
	direct_start(o->d, 1);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_mirror_stat(o->p, 1, &stat), 0);
	assert_string_equal(stat.trouble, "");
	assert_mirrored(o, 1);
}

/* A mirror takes nothing for so long that half of the ring waits for it. */
TEST(test_mirror_that_lags_is_dropped, struct owner *o)
{
	hold(o, 2, DIRECT_HOLD_WRITES);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(owner_put(o, 0, SIZE, (uint8_t)i), 0);
		/* Entries that the mirror still needs are not overwritten before the mirror is
		 * dropped. */
		if (owner_stat(o).dropped)
			break;
	}
	assert_true(owner_stat(o).dropped == 1);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_DOWN);
	hold(o, 2, DIRECT_HOLD_NOTHING);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_LIVE);
	assert_mirrored(o, 2);
}

/* A session breaks while a segment is mapped and not yet published: the mirror gets it again. */
TEST(test_unpublished_segments_survive_a_break, struct owner *o)
{
	void *addr;

	assert_int_equal(perseas_map(o->p, "new", 5000, &addr), 0);
	memset(addr, 9, 5000);
	direct_cut(o->d, 0);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(perseas_publish(o->p), 0);
	direct_crash(o->d, 2);
	owner_reopen(o);
	assert_int_equal(perseas_map(o->p, "new", 0, &addr), 0);
	assert_int_equal(((uint8_t *)addr)[4999], 9);
}

/* A mirror breaks in the middle of each step of mapping and publishing. */
TEST(test_breaks_while_segments_are_made, struct owner *o)
{
	static const int requests[] = {
		PERSEAS__REQUEST__BODY_ADD_SEGMENTS,
		PERSEAS__REQUEST__BODY_PUBLISH,
	};
	char name[16];
	void *addr;

	for (unsigned i = 0; i < 2 * 2 * 3; i++) {
		struct direct_mirror *m = &o->d->mirrors[i % 3];

		m->break_at = requests[i / 3 % 2];
		m->reply_lost = i / 6;
		snprintf(name, sizeof(name), "s%u", i);
		assert_int_equal(perseas_map(o->p, name, 100, &addr), 0);
		memset(addr, (int)i, 100);
		assert_int_equal(perseas_publish(o->p), 0);
		assert_int_equal(m->break_at, 0);
		assert_int_equal(owner_put(o, 0, 10, (uint8_t)i), 0);
		owner_reopen(o);
		owner_keep_all(o);
		assert_int_equal(perseas_map(o->p, name, 100, &addr), 0);
		assert_int_equal(*(uint8_t *)addr, i);
	}
}
