/*
 * test_resync_states.c - a copy goes from state to state without waiting for anybody, and what
 * happens between any two of them does it no harm. What a round of the keeper waited for shows in
 * the clock: in these rounds nothing else lets time pass.
 */
#include "resync_rig.h"

#include "../../client/keeper/pending_answers.h"
#include "../../client/keeper/session.h"

struct unit_fixture unit_fixture = { setup_five, teardown };

/* The copy is in this state, and an answer that it needs is not there for long: another mirror's
 * session is taken up meanwhile, which hears from this owner then, and commits go on. */
static void assert_nothing_waits(struct fixture *f, enum ps_resync_state state)
{
	struct owner *o = f->o;

	reach(o, state);
	direct_cut(o->d, 4);
	round_of(o);
	reach_live(o, 4);
	for (unsigned i = 0; i < 40; i++) {
		round_of(o);
		assert_int_equal(put_big(f, 1000 * i, 900, (uint8_t)i), 0);
		assert_true(o->d->now - o->p->mirrors[4].pending_answers.oldest_asked_at <
		            600 * MS);
	}
	assert_int_equal(o->p->upkeep.resync.state, state);
	reach_live(o, 1);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_image(f, 1);
}

/* The mirror that lost its memory needs long to make it anew. */
TEST(test_nothing_waits_while_memory_is_made, struct fixture *f)
{
	owner_lose(f->o, 1);
	answer_slowly(f->o, 1, PERSEAS__REQUEST__BODY_REBUILD);
	assert_nothing_waits(f, PS_RESYNC_MAKING_ROOM);
}

TEST(test_nothing_waits_while_an_image_is_given_up, struct fixture *f)
{
	make_stale(f, 1);
	answer_slowly(f->o, 1, PERSEAS__REQUEST__BODY_JOINING);
	assert_nothing_waits(f, PS_RESYNC_MAKING_ROOM);
}

TEST(test_nothing_waits_while_the_data_path_comes_up, struct fixture *f)
{
	struct owner *o = f->o;

	slow_links_use(o, SLOW);
	owner_lose(o, 1);
	assert_nothing_waits(f, PS_RESYNC_ATTACHING);
}

TEST(test_nothing_waits_while_segments_are_added, struct fixture *f)
{
	void *addr;

	assert_int_equal(perseas_map(f->o->p, "waiting", 5000, &addr), 0);
	make_stale(f, 1);
	answer_slowly(f->o, 1, PERSEAS__REQUEST__BODY_ADD_SEGMENTS);
	assert_nothing_waits(f, PS_RESYNC_ADDING);
}

TEST(test_nothing_waits_while_the_copy_is_ended, struct fixture *f)
{
	make_stale(f, 1);
	answer_slowly(f->o, 1, PERSEAS__REQUEST__BODY_FINISH);
	assert_nothing_waits(f, PS_RESYNC_FINISHING);
}

/* The others, but one, need long to say whether the mirror may be made anew, and to record its id;
 * and at the end, whether it may vote. */
TEST(test_nothing_waits_while_others_are_asked, struct fixture *f)
{
	static const struct {
		int request;
		enum ps_resync_state state;
	} waits[] = {
		{ PERSEAS__REQUEST__BODY_CONFIRM, PS_RESYNC_ASKING },
		{ PERSEAS__REQUEST__BODY_ROSTER, PS_RESYNC_RECORDING },
		{ PERSEAS__REQUEST__BODY_CONFIRM, PS_RESYNC_CONFIRMING },
	};
	struct owner *o = f->o;

	for (unsigned n = 0; n < 3; n++) {
		owner_lose(o, 1);
		if (waits[n].state == PS_RESYNC_CONFIRMING)
			reach(o, PS_RESYNC_COPYING);
		for (unsigned i = 0; i < 4; i++)
			if (i != 1)
				answer_slowly(o, i, waits[n].request);
		reach(o, waits[n].state);
		for (unsigned i = 0; i < 20; i++) {
			round_of(o);
			assert_int_equal(put_big(f, 1000 * i, 900, (uint8_t)i), 0);
		}
		assert_int_equal(o->p->upkeep.resync.state, waits[n].state);
		reach_live(o, 1);
		for (unsigned i = 0; i < 4; i++)
			o->d->mirrors[i].slow_at = 0;
		assert_int_equal(perseas_flush(o->p), 0);
		assert_image(f, 1);
	}
}

/* A segment that is not mapped here is read from a slow mirror, and no thread waits. */
TEST_WITH(test_nothing_waits_for_what_is_read_elsewhere, setup, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	make_stale(f, 1);
	assert_int_equal(perseas_unmap(o->p, f->big), 0);
	answer_slowly(o, 0, PERSEAS__REQUEST__BODY_READ);
	reach_chunk_read(o);
	for (unsigned i = 0; i < 10; i++) {
		round_of(o);
		assert_int_equal(owner_put(o, 0, 100, (uint8_t)i), 0);
		memset(f->ledger->accounts, (int)i, 100);
	}
	assert_int_equal(o->p->upkeep.resync.state, PS_RESYNC_READING);
	reach_live(o, 1);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_image(f, 1);
}

/* A segment is mapped while a chunk of it is read elsewhere, and transactions change just that: the
 * mirror that is copied to got them already, so what was read must not come after them. */
TEST_WITH(test_what_was_read_is_not_newer_than_what_was_committed, setup, teardown,
          struct fixture *f)
{
	struct owner *o = f->o;

	for (unsigned again = 0; again < 2; again++) {
		make_stale(f, 1);
		assert_int_equal(perseas_unmap(o->p, f->big), 0);
		answer_slowly(o, 0, PERSEAS__REQUEST__BODY_READ);
		reach_chunk_read(o);
		map_big(f);
		assert_int_equal(put_big(f, 100, 3000, (uint8_t)(0xa5 + again)), 0);
		if (again)
			assert_int_equal(perseas_unmap(o->p, f->big), 0);
		o->d->mirrors[0].slow_ns = 0;
		reach_live(o, 1);
		assert_int_equal(perseas_flush(o->p), 0);
		assert_image(f, 1);
		if (again)
			map_big(f);
	}
}

/* The mirror to be copied falls silent: its time ends after 3 s, and the copy to another one
 * begins. */
TEST(test_a_silent_mirror_gives_its_turn_up, struct fixture *f)
{
	struct owner *o = f->o;

	make_stale(f, 1);
	answer_slowly(o, 1, PERSEAS__REQUEST__BODY_JOINING);
	o->d->mirrors[1].slow_ns = PS_NEVER / 2;
	reach(o, PS_RESYNC_MAKING_ROOM);
	owner_lose(o, 2);
	round_of(o);
	assert_int_not_equal(owner_state(o, 2), PERSEAS_MIRROR_LIVE);
	reach_live(o, 2);
	o->d->mirrors[1].slow_at = 0;
	reach_live(o, 1);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_image(f, 1);
	assert_image(f, 2);
}

/* The mirror falls silent when it must end the copy: its time ends, and it is copied again. */
TEST_WITH(test_a_copy_that_is_not_ended_begins_again, setup, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	make_stale(f, 1);
	answer_slowly(o, 1, PERSEAS__REQUEST__BODY_FINISH);
	o->d->mirrors[1].slow_ns = PS_NEVER / 2;
	reach(o, PS_RESYNC_FINISHING);
	reach(o, PS_RESYNC_NONE);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_DOWN);
	assert_int_equal(owner_stat(o).resyncs, 0);
	o->d->mirrors[1].slow_at = 0;
	reach_live(o, 1);
	assert_image(f, 1);
}

/* The mirror owes so many answers that it cannot be asked to end the copy: it is asked as soon as
 * they arrive. By then others have confirmed it. */
TEST_WITH(test_a_copy_ends_when_the_mirror_can_be_asked, setup, teardown, struct fixture *f)
{
	struct owner *o = f->o;
	struct ps_question questions[PS_PENDING_MAX] = { 0 };

	owner_lose(o, 1);
	answer_slowly(o, 1, PERSEAS__REQUEST__BODY_CONFIRM);
	reach(o, PS_RESYNC_COPYING);
	ps_admin_enter(o->p);
	for (unsigned i = 0; i < PS_PENDING_MAX; i++)
		ps_question_ask_claim_confirmations(o->p, &questions[i], 2);
	ps_admin_leave(o->p);
	for (unsigned rounds = 0; !o->p->upkeep.resync.others_confirmed_claim; rounds++) {
		assert_true(rounds < ROUNDS);
		round_of(o);
	}
	assert_int_equal(o->p->upkeep.resync.state, PS_RESYNC_COPYING);
	round_of(o);
	assert_int_equal(o->p->upkeep.resync.state, PS_RESYNC_COPYING);
	reach_live(o, 1);
	for (unsigned i = 0; i < PS_PENDING_MAX; i++)
		ps_question_forget(&questions[i]);
	assert_image(f, 1);
}

/* Another owner claims a mirror, and is gone at once. */
static void claim_and_die(struct owner *o, unsigned mirror)
{
	const struct ps_env_ops *ops = o->p->env->ops;
	uint8_t other[PS_ID_SIZE] = { 77, 1 };
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_control *control = ops->connect(o->p->env, &o->p->mirrors[mirror].address,
	                                          &o->error);
	Perseas__Reply *reply;
	unsigned count;

	assert_non_null(control);
	claim.store = o->p->store;
	claim.epoch = o->p->epoch + 1;
	claim.owner = (ProtobufCBinaryData){ PS_ID_SIZE, other };
	claim.takeover = true;
	request.body_case = PERSEAS__REQUEST__BODY_CLAIM;
	request.claim = &claim;
	assert_int_equal(ops->send(control, &request, &o->error), 0);
	assert_int_equal(ops->receive(control, PS_NEVER, &reply, NULL, &count, &o->error), 0);
	assert_int_equal(reply->status, PERSEAS__STATUS__STATUS_OK);
	perseas__reply__free_unpacked(reply, NULL);
	ops->disconnect(control);
}

/* The owner claims all mirrors again under a higher epoch, while one is made ready for a copy: what
 * was begun under the epoch before is given up, and begins again. */
TEST_WITH(test_a_renewal_ends_what_was_begun_before, setup, teardown, struct fixture *f)
{
	static const struct {
		int request;
		enum ps_resync_state state;
	} when[] = {
		{ PERSEAS__REQUEST__BODY_JOINING, PS_RESYNC_MAKING_ROOM },
		{ PERSEAS__REQUEST__BODY_ADD_SEGMENTS, PS_RESYNC_ADDING },
		{ PERSEAS__REQUEST__BODY_FINISH, PS_RESYNC_FINISHING },
	};
	struct owner *o = f->o;
	void *addr;

	assert_int_equal(perseas_map(o->p, "waiting", 5000, &addr), 0);
	for (unsigned n = 0; n < 3; n++) {
		make_stale(f, 1);
		answer_slowly(o, 1, when[n].request);
		reach(o, when[n].state);
		claim_and_die(o, 2);
		o->d->mirrors[1].slow_at = 0;
		for (unsigned rounds = 0; owner_stat(o).renewals <= n; rounds++) {
			assert_true(rounds < ROUNDS);
			direct_keep_after(o->d, o->p, ROUND);
		}
		owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
		owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
		assert_int_equal(put_big(f, 1000 * n, 900, (uint8_t)n), 0);
		assert_int_equal(perseas_flush(o->p), 0);
		assert_image(f, 1);
	}
	assert_carries(f, 0);
}

/* The mirror that is made ready leaves the roster: its copy ends, and another one can begin. */
TEST(test_a_mirror_that_leaves_takes_its_copy_along, struct fixture *f)
{
	const struct perseas_roster_change leaves = { PERSEAS_ROSTER_REMOVE, "sim://1", NULL, 0,
		                                      0 };
	struct owner *o = f->o;

	owner_lose(o, 1);
	answer_slowly(o, 1, PERSEAS__REQUEST__BODY_REBUILD);
	reach(o, PS_RESYNC_MAKING_ROOM);
	assert_int_equal(owner_change(o, &leaves), 0);
	for (unsigned rounds = 0; owner_state(o, 1) != PERSEAS_MIRROR_REMOVED; rounds++) {
		assert_true(rounds < 20);
		round_of(o);
	}
	assert_int_equal(o->p->upkeep.resync.state, PS_RESYNC_NONE);
	owner_lose(o, 2);
	reach(o, PS_RESYNC_COPYING);
	reach_live(o, 2);
	assert_image(f, 2);
}

/* Segments are published while the mirror makes its image, which has none of them in its table: the
 * copy begins again, with all of them. */
TEST_WITH(test_a_segment_that_is_born_meanwhile_is_not_left_out, setup, teardown, struct fixture *f)
{
	struct owner *o = f->o;
	void *born, *late;

	owner_lose(o, 1);
	answer_slowly(o, 1, PERSEAS__REQUEST__BODY_REBUILD);
	reach(o, PS_RESYNC_MAKING_ROOM);
	o->d->mirrors[1].slow_ns = 0;
	assert_int_equal(perseas_map(o->p, "born", 4000, &born), 0);
	memset(born, 1, 4000);
	assert_int_equal(perseas_publish(o->p), 0);
	o->d->mirrors[1].slow_at = 0;
	assert_int_equal(perseas_map(o->p, "late", 4000, &late), 0);
	reach_live(o, 1);
	assert_image(f, 1);
	assert_memory_equal(image_of(f, 1, "segment-2"), born, 4000);
	memset(late, 2, 4000);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	assert_memory_equal(image_of(f, 1, "segment-3"), late, 4000);
}

/* The same while the mirror makes unpublished segments: one goes, and another one with its id
 * comes, of another size. */
static void assert_adds_what_there_is(struct fixture *f)
{
	struct owner *o = f->o;
	void *addr;

	answer_slowly(o, 1, PERSEAS__REQUEST__BODY_ADD_SEGMENTS);
	for (unsigned rounds = 0; o->p->mirrors[1].session.state != PS_SESSION_PREPARING ||
	                          o->p->upkeep.resync.state == PS_RESYNC_MAKING_ROOM;
	     rounds++) {
		assert_true(rounds < ROUNDS);
		round_of(o);
	}
	round_of(o);
	addr = o->p->segments[o->p->segment_count - 1].base;
	assert_int_equal(perseas_unmap(o->p, addr), 0);
	assert_int_equal(perseas_map(o->p, "other", 9000, &addr), 0);
	assert_int_equal(o->p->mirrors[1].session.state, PS_SESSION_PREPARING);
	o->d->mirrors[1].slow_at = 0;
	reach_live(o, 1);
	memset(addr, 7, 9000);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	assert_memory_equal(image_of(f, 1, "segment-2"), addr, 9000);
}

TEST_WITH(test_segments_come_and_go_before_a_copy, setup, teardown, struct fixture *f)
{
	void *addr;

	assert_int_equal(perseas_map(f->o->p, "waiting", 5000, &addr), 0);
	make_stale(f, 1);
	assert_adds_what_there_is(f);
}

TEST_WITH(test_segments_come_and_go_before_a_replay, setup, teardown, struct fixture *f)
{
	void *addr;

	assert_int_equal(perseas_map(f->o->p, "waiting", 5000, &addr), 0);
	direct_cut(f->o->d, 1);
	assert_adds_what_there_is(f);
	assert_int_equal(owner_stat(f->o).resyncs, 0);
}

/* A mirror said that the other may be made anew, and was lost itself before enough of them had: its
 * word does not count (I9). W = 3 of 5: three others are needed. */
TEST(test_the_word_of_a_mirror_that_is_gone_does_not_count, struct fixture *f)
{
	struct owner *o = f->o;

	direct_crash(o->d, 4);
	owner_lose(o, 1);
	answer_slowly(o, 2, PERSEAS__REQUEST__BODY_CONFIRM);
	reach(o, PS_RESYNC_ASKING);
	assert_int_equal(o->p->upkeep.resync.question.granting_mirrors, 1 | 8);
	direct_crash(o->d, 3);
	for (unsigned i = 0; i < 200; i++) {
		round_of(o);
		assert_int_equal(memory_heap_pieces(o->d->mirrors[1].memory), 0);
	}
	o->d->mirrors[2].slow_at = 0;
	direct_start(o->d, 3);
	reach_live(o, 1);
	assert_image(f, 1);
}

/* The store is closed in each of the states. */
TEST_WITH(test_it_ends_in_any_state, setup, teardown, struct fixture *f)
{
	static const struct {
		unsigned slow; /* the mirror, or one of the others, and for what */
		int request;
		enum ps_resync_state state;
	} ends[] = {
		{ 0, PERSEAS__REQUEST__BODY_CONFIRM, PS_RESYNC_ASKING },
		{ 0, PERSEAS__REQUEST__BODY_ROSTER, PS_RESYNC_RECORDING },
		{ 1, PERSEAS__REQUEST__BODY_REBUILD, PS_RESYNC_MAKING_ROOM },
		{ 1, PERSEAS__REQUEST__BODY_ADD_SEGMENTS, PS_RESYNC_ADDING },
		{ 1, PERSEAS__REQUEST__BODY_FINISH, PS_RESYNC_FINISHING },
	};
	struct owner *o = f->o;
	void *addr;

	for (unsigned n = 0; n < sizeof(ends) / sizeof(ends[0]); n++) {
		assert_int_equal(perseas_map(o->p, "waiting", 5000, &addr), 0);
		owner_lose(o, 1);
		answer_slowly(o, ends[n].slow, ends[n].request);
		if (ends[n].slow != 1)
			answer_slowly(o, 2, ends[n].request);
		reach(o, ends[n].state);
		for (unsigned i = 0; i < 3; i++)
			o->d->mirrors[i].slow_at = 0;
		owner_reopen(o);
		map_big(f);
		owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
		assert_image(f, 1);
	}
	assert_carries(f, 0);
}
