/*
 * test_resync.c - a mirror is copied whole while transactions go on. The copying is one chunk a
 * round of the keeper, so that a test can put anything between any two of them.
 */
#include "resync_rig.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* Transactions all over the image between any two chunks, also ones that are open all the while:
 * the image ends as the committed state. */
TEST(test_transactions_go_on, struct fixture *f)
{
	struct owner *o = f->o;
	perseas_tx_t *kept, *dropped;
	struct perseas_mirror_stat stat;
	unsigned rounds = 0;

	make_stale(f, 1);
	assert_int_equal(perseas_begin(o->p, 0, &dropped), 0);
	assert_int_equal(perseas_set_range(dropped, f->big + 131000, 300), 0);
	memset(f->big + 131000, 0xee, 300);
	assert_int_equal(perseas_begin(o->p, 0, &kept), 0);
	assert_int_equal(perseas_set_range(kept, f->big + 400000, 20), 0);
	memset(f->big + 400000, 0xdd, 20);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	while (owner_state(o, 1) == PERSEAS_MIRROR_RESYNCING) {
		assert_int_equal(perseas_mirror_stat(o->p, 1, &stat), 0);
		assert_int_equal(stat.resync_total, SIZE + BIG);
		assert_true(stat.resync_done <= stat.resync_total);
		put_all_over(f, (uint8_t)(10 + rounds));
		/* A range that is declared while the copying goes on. */
		if (rounds == 2) {
			assert_int_equal(perseas_set_range(kept, f->big + 690000, 40), 0);
			memset(f->big + 690000, 0xcc, 40);
		}
		direct_keep(o->d, o->p);
		assert_true(++rounds < ROUNDS);
	}
	assert_true(rounds >= 6);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_stat(o).resyncs, 1);
	assert_image(f, 1);
	assert_int_equal(perseas_abort(dropped), 0);
	assert_int_equal(perseas_commit(kept, 0), 0);
	memset(f->ledger->big + 400000, 0xdd, 20);
	memset(f->ledger->big + 690000, 0xcc, 40);
	assert_image(f, 1);
	assert_carries(f, 0);
}
TEST_ALSO(test_transactions_go_on, setup_direct, teardown);

/* Two of three mirrors are behind at once: the third cannot acknowledge alone, and they are copied
 * one after the other. The first copy is made next to the old image, because only one mirror has a
 * whole image (I8). */
TEST(test_one_after_the_other, struct fixture *f)
{
	struct owner *o = f->o;

	make_stale(f, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	direct_crash(o->d, 2);
	assert_int_equal(put_big(f, 9, 9, 9), PERSEAS_EINDOUBT);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_flush(o->p), 0);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(put_big(f, 50000 + i, 3000, (uint8_t)i), 0);
	direct_start(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_stat(o).resyncs, 2);
	assert_image(f, 1);
	assert_image(f, 2);
	assert_carries(f, 0);
}

static uint64_t generation(struct fixture *f, unsigned mirror)
{
	Perseas__Header *header = header_of(f, mirror);
	uint64_t is = header->generation;

	perseas__header__free_unpacked(header, NULL);
	return is;
}

/* A copy is made in place if W others hold everything, and else next to the old image, which may be
 * needed (I8). */
TEST(test_in_place_only_where_it_harms_nobody, struct fixture *f)
{
	uint64_t before = generation(f, 1);
	Perseas__Header *header;

	make_stale(f, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_RESYNCING);
	header = header_of(f, 1);
	assert_int_equal(header->state, PERSEAS__STATE__STATE_JOINING);
	assert_true(header->harmless);
	perseas__header__free_unpacked(header, NULL);
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(generation(f, 1), before);
}

/* Checks that the copy is made next to the old image, which claims find until the copy is whole. */
static void assert_beside(struct fixture *f, unsigned mirror)
{
	const uint64_t before = generation(f, mirror);
	Perseas__Header *header;

	owner_keep(f->o, mirror, PERSEAS_MIRROR_RESYNCING);
	header = header_of(f, mirror);
	assert_int_equal(header->state, PERSEAS__STATE__STATE_CONSISTENT);
	assert_int_equal(header->generation, before);
	perseas__header__free_unpacked(header, NULL);
}

TEST_WITH(test_beside_where_it_may_be_needed, setup_two, teardown, struct fixture *f)
{
	struct owner *o = f->o;
	uint64_t before = generation(f, 1);

	/* W = 2 of 2: what mirror 1 missed is in doubt, and the ring forgets it. */
	direct_crash(o->d, 1);
	assert_int_equal(put_big(f, 77, 7, 7), PERSEAS_EINDOUBT);
	come_back_late(f, 1);
	assert_beside(f, 1);
	assert_catches_up(f, 1);
	assert_int_equal(generation(f, 1), before + 1);
}

/* W = 2 of 3: two have all that mirror 1 has, but one of them is down and may have lost it (I8). */
TEST(test_beside_while_one_that_held_it_is_down, struct fixture *f)
{
	struct owner *o = f->o;

	direct_crash(o->d, 1);
	direct_crash(o->d, 2);
	assert_int_equal(put_big(f, 77, 7, 7), PERSEAS_EINDOUBT);
	come_back_late(f, 1);
	assert_beside(f, 1);
	assert_catches_up(f, 1);
}

/* W = 1 of 2: the other mirror is connected and whole, but what this one alone acknowledged has not
 * reached it (I8). */
TEST_WITH(test_beside_while_the_other_lags, setup_lone_acks, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	o->d->mirrors[0].hold = DIRECT_HOLD_WRITES;
	assert_int_equal(put_big(f, 77, 7, 7), 0);
	direct_crash(o->d, 1);
	assert_int_equal(put_big(f, 177, 8, 8), PERSEAS_EINDOUBT);
	come_back_late(f, 1);
	assert_beside(f, 1);
	o->d->mirrors[0].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 0, 1000);
	assert_catches_up(f, 1);
	assert_image(f, 0);
}

/* The memory is lost: the mirror is made anew, under an id that the others know (I9). */
TEST(test_lost_memory_is_made_anew, struct fixture *f)
{
	struct owner *o = f->o;
	Perseas__Header *before = header_of(f, 1), *after, *other;

	owner_lose(o, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	put_all_over(f, 3);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_image(f, 1);
	after = header_of(f, 1);
	other = header_of(f, 0);
	assert_false(ps_id_equal(before->image_id, after->image_id.data));
	assert_true(ps_id_equal(other->roster->members[1]->image_id, after->image_id.data));
	assert_int_equal(other->roster->epoch, o->p->epoch);
	/* An owner that sees both rosters knows which one is newer. */
	assert_true(other->roster->version > before->roster->version);
	perseas__header__free_unpacked(before, NULL);
	perseas__header__free_unpacked(after, NULL);
	perseas__header__free_unpacked(other, NULL);
	assert_carries(f, 2);
}
TEST_ALSO(test_lost_memory_is_made_anew, setup_direct, teardown);

/* With too few others no image is made anew (I9): a fenced owner might commit through it. */
TEST(test_not_made_anew_with_too_few_others, struct fixture *f)
{
	struct owner *o = f->o;

	direct_crash(o->d, 1);
	direct_crash(o->d, 2);
	memory_heap_lose(o->d->mirrors[1].memory, NULL);
	direct_start(o->d, 1);
	for (unsigned i = 0; i < 5; i++)
		direct_keep(o->d, o->p);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LOST);
	assert_int_equal(memory_heap_pieces(o->d->mirrors[1].memory), 0);
	direct_start(o->d, 2);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_image(f, 1);
}

/* The only mirror lost its memory: nobody else can tell whether this owner was fenced there. */
TEST_WITH(test_the_only_mirror_is_not_made_anew, setup_one, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	owner_lose(o, 0);
	for (unsigned i = 0; i < 5; i++)
		direct_keep(o->d, o->p);
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_LOST);
	assert_int_equal(put_big(f, 0, 1, 1), PERSEAS_EINDOUBT);
}

/* Segments come, are published and go while a mirror is copied. */
TEST(test_segments_come_and_go, struct fixture *f)
{
	struct owner *o = f->o;
	void *waiting, *born, *addr;
	perseas_tx_t *tx;

	assert_int_equal(perseas_map(o->p, "waiting", 5000, &waiting), 0);
	make_stale(f, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(perseas_map(o->p, "brief", 100, &addr), 0);
	assert_int_equal(perseas_unmap(o->p, addr), 0);
	direct_keep(o->d, o->p);
	assert_int_equal(perseas_map(o->p, "born", 4000, &born), 0);
	memset(born, 1, 4000);
	memset(waiting, 2, 5000);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, born, 50), 0);
	memset(born, 3, 50);
	assert_int_equal(perseas_commit(tx, 0), 0);
	/* A segment that is not mapped here is read from another mirror. */
	assert_int_equal(perseas_unmap(o->p, f->big), 0);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_stat(o).resyncs, 1);
	assert_image(f, 1);
	owner_die(o);
	direct_crash(o->d, 0);
	owner_reopen(o);
	map_big(f);
	assert_memory_equal(f->big, f->ledger->big, BIG);
	assert_int_equal(perseas_map(o->p, "born", 0, &born), 0);
	assert_int_equal(perseas_map(o->p, "waiting", 0, &waiting), 0);
	assert_int_equal(((uint8_t *)born)[49], 3);
	assert_int_equal(((uint8_t *)born)[50], 1);
	assert_int_equal(((uint8_t *)waiting)[4999], 2);
	assert_int_equal(perseas_map(o->p, "brief", 0, &addr), PERSEAS_ENOSEGMENT);
}
TEST_ALSO(test_segments_come_and_go, setup_direct, teardown);

/* A segment is mapped again while the mirror that is asked first is being copied: it is read from
 * one that has all of it. */
TEST(test_nobody_reads_what_is_not_whole, struct fixture *f)
{
	struct owner *o = f->o;

	make_stale(f, 0);
	owner_keep(o, 0, PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(perseas_unmap(o->p, f->big), 0);
	map_big(f);
	assert_memory_equal(f->big, f->ledger->big, BIG);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	assert_image(f, 0);
}

/* Another owner takes over all mirrors except the one that is being copied, and writes all over the
 * segment. */
static void take_over_the_others(struct fixture *f, unsigned but, uint8_t value)
{
	struct owner *o = f->o;
	struct perseas_options options = o->options;
	perseas_t *second;
	perseas_tx_t *tx;
	void *addr;

	options.flags = PERSEAS_TAKEOVER;
	o->d->mirrors[but].break_at = PERSEAS__REQUEST__BODY_CLAIM;
	assert_int_equal(direct_open(o->d, STORE, &options, &second, &o->error), 0);
	assert_int_equal(o->d->mirrors[but].break_at, 0);
	assert_int_equal(perseas_map(second, "big", 0, &addr), 0);
	assert_int_equal(perseas_begin(second, 0, &tx), 0);
	for (unsigned at = 0; at < BIG; at += BIG / 100) {
		assert_int_equal(perseas_set_range(tx, (uint8_t *)addr + at, MARK), 0);
		memset((uint8_t *)addr + at, value, MARK);
	}
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(perseas_close(second), 0);
}

/* A segment that is not mapped here is read from mirrors that another owner has taken meanwhile:
 * what that one wrote does not come into an image with this one's slot. */
TEST(test_nothing_of_the_next_owner_is_copied, struct fixture *f)
{
	struct owner *o = f->o;
	uint8_t mark[MARK];
	unsigned rounds = 0;

	memset(mark, 0xee, MARK);
	make_stale(f, 1);
	assert_int_equal(perseas_unmap(o->p, f->big), 0);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	direct_keep(o->d, o->p);
	take_over_the_others(f, 1, 0xee);
	assert_non_null(memmem(big_of(f, 0), BIG, mark, MARK));
	while (owner_state(o, 1) == PERSEAS_MIRROR_RESYNCING) {
		direct_keep(o->d, o->p);
		assert_null(memmem(big_of(f, 1), BIG, mark, MARK));
		assert_true(++rounds < ROUNDS);
	}
	assert_int_not_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
}
TEST_ALSO(test_nothing_of_the_next_owner_is_copied, setup_direct, teardown);

/* The mirror's data path breaks at every write of a resync, and the resync begins again. */
TEST(test_breaks_at_every_write, struct fixture *f)
{
	struct owner *o = f->o;

	for (long writes = 0; writes < 40; writes += 1 + writes / 8) {
		struct direct_mirror *m = &o->d->mirrors[1];
		unsigned rounds = 0;

		make_stale(f, 1);
		owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
		m->writes_left = writes;
		m->torn = (uint32_t)(writes * 5);
		while (owner_state(o, 1) != PERSEAS_MIRROR_LIVE) {
			assert_int_equal(put_big(f, rounds * 1000, 700, (uint8_t)writes), 0);
			direct_keep(o->d, o->p);
			assert_true(++rounds < ROUNDS);
		}
		m->writes_left = -1;
		assert_image(f, 1);
	}
	assert_carries(f, 2);
}
TEST_ALSO(test_breaks_at_every_write, setup_direct, teardown);

/* Every request of making a mirror anew, or copying it, breaks the connection in turn; the answer
 * alone is lost, or the request was never heard. */
TEST(test_breaks_at_every_request, struct fixture *f)
{
	static const int kinds[] = {
		PERSEAS__REQUEST__BODY_CLAIM,   PERSEAS__REQUEST__BODY_REBUILD,
		PERSEAS__REQUEST__BODY_JOINING, PERSEAS__REQUEST__BODY_FINISH,
		PERSEAS__REQUEST__BODY_ROSTER,  PERSEAS__REQUEST__BODY_CONFIRM,
	};
	struct owner *o = f->o;

	for (unsigned i = 0; i < 4 * sizeof(kinds) / sizeof(*kinds); i++) {
		const unsigned hit = i & 2 ? 1 : 0; /* the mirror itself, or another */
		struct direct_mirror *m = &o->d->mirrors[hit];

		m->break_at = kinds[i / 4];
		m->break_skip = 0;
		m->reply_lost = i & 1;
		direct_crash(o->d, 1);
		if (i % 3)
			memory_heap_lose(o->d->mirrors[1].memory, NULL);
		for (unsigned n = 0; n < 200; n++)
			assert_int_equal(put_big(f, 5000 + n, 3000, (uint8_t)(n + i)), 0);
		direct_start(o->d, 1);
		owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
		owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
		m->break_at = 0;
		assert_int_equal(put_big(f, i * 1000, 900, (uint8_t)i), 0);
		assert_image(f, 1);
		assert_image(f, 0);
	}
	assert_carries(f, 2);
}

/* The owner dies at any moment of a resync: the half-made image is never the state. */
TEST(test_owner_dies_at_any_moment, struct fixture *f)
{
	struct owner *o = f->o;

	for (unsigned rounds = 0; rounds < 12; rounds++) {
		make_stale(f, 1);
		owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
		for (unsigned i = 0; i < rounds && owner_state(o, 1) != PERSEAS_MIRROR_LIVE; i++) {
			put_all_over(f, (uint8_t)(rounds + i));
			direct_keep(o->d, o->p);
		}
		/* The mirror that was being copied counts to R with nothing (I6). */
		assert_carries(f, rounds % 2 ? 0 : 2);
		direct_start(o->d, rounds % 2 ? 0 : 2);
		owner_keep(o, rounds % 2 ? 0 : 2, PERSEAS_MIRROR_LIVE);
		assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
		assert_image(f, 1);
	}
}
TEST_ALSO(test_owner_dies_at_any_moment, setup_direct, teardown);

/* The last chunk is there, but not a transaction that it may hold bytes of: the image is no state
 * of the store yet. */
TEST(test_transactions_of_the_last_chunk_are_waited_for, struct fixture *f)
{
	struct owner *o = f->o;
	struct perseas_mirror_stat stat;

	make_stale(f, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	do {
		direct_keep(o->d, o->p);
		assert_int_equal(perseas_mirror_stat(o->p, 1, &stat), 0);
	} while (stat.resync_done + (128 << 10) < stat.resync_total);
	/* More than may be under way at once: the chunk goes before the last of them. */
	o->d->mirrors[1].hold = DIRECT_HOLD_WRITES;
	for (unsigned i = 0; i < 140; i++)
		assert_int_equal(put_big(f, BIG - 500 + i, 40, (uint8_t)i), 0);
	direct_keep(o->d, o->p);
	direct_release(o->d, 1, 129);
	for (unsigned i = 0; i < 5; i++)
		direct_keep(o->d, o->p);
	assert_int_equal(perseas_mirror_stat(o->p, 1, &stat), 0);
	assert_int_equal(stat.state, PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(stat.resync_done, stat.resync_total);
	o->d->mirrors[1].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 1, 1000);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_image(f, 1);
}

/* A rate: no chunk is copied before its time. */
TEST(test_a_rate_is_kept, struct fixture *f)
{
	struct owner *o = f->o;
	uint64_t start;

	o->options.resync_rate = 10000;
	owner_reopen(o);
	map_big(f);
	make_stale(f, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	start = o->d->now;
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	/* The last chunk need not be waited for. */
	assert_true(o->d->now - start >= (BIG - (128 << 10)) / 10000 * 1000000000ull);
	assert_image(f, 1);
}

/* The copy must be made next to the old image, and has no memory: the mirror stays behind, and says
 * why. */
TEST_WITH(test_no_memory_beside, setup_two, teardown, struct fixture *f)
{
	struct owner *o = f->o;
	struct perseas_mirror_stat stat;

	direct_crash(o->d, 1);
	assert_int_equal(put_big(f, 77, 7, 7), PERSEAS_EINDOUBT);
	memory_heap_set_limit(o->d->mirrors[1].memory, 1000000);
	come_back_late(f, 1);
	for (unsigned i = 0; i < 4; i++)
		direct_keep(o->d, o->p);
	assert_int_equal(perseas_mirror_stat(o->p, 1, &stat), 0);
	assert_int_equal(stat.state, PERSEAS_MIRROR_STALE);
	assert_non_null(strstr(stat.trouble, "memory"));
	memory_heap_set_limit(o->d->mirrors[1].memory, 0);
	assert_catches_up(f, 1);
}

static unsigned wakes;

static void count_wakes(struct ps_env *env, enum ps_sleeper who)
{
	(void)env;
	wakes += who == PS_COMMITTER;
}

/* A thread that waits for a commit sleeps on the busy links for all other threads and for the
 * keeper: otherwise nobody would see a chunk or transaction complete on another link. */
TEST(test_who_sleeps_learns_of_another_link, struct fixture *f)
{
	struct owner *o = f->o;
	const struct ps_env_ops *real = o->p->env->ops;
	struct ps_env_ops counting = *real;
	uint64_t done;

	counting.wake = count_wakes;
	direct_crash(o->d, 1);
	assert_int_equal(put_big(f, 77, 7, 7), 0);
	come_back_late(f, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	perseas_flush(o->p);
	done = o->p->upkeep.resync.sent_bytes;
	o->p->env->ops = &counting;
	o->p->commit.wait_line.has_leader = true;
	wakes = 0;
	for (unsigned i = 0; i < ROUNDS && o->p->upkeep.resync.sent_bytes == done; i++)
		direct_keep(o->d, o->p);
	assert_true(o->p->upkeep.resync.sent_bytes > done);
	assert_true(wakes > 0);
	wakes = 0;
	pthread_mutex_lock(&o->p->lock);
	while (o->p->mirrors[0].chains_in_flight)
		ps_mirrors_poll(o->p);
	pthread_mutex_unlock(&o->p->lock);
	o->d->mirrors[0].hold = DIRECT_HOLD_COMPLETIONS;
	put_big(f, 99, 7, 7);
	assert_true(wakes > 0);
	o->d->mirrors[0].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 0, 1000);
	o->p->commit.wait_line.has_leader = false;
	o->p->env->ops = real;
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_image(f, 1);
}
