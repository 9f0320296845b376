/*
 * test_grow_mirrors.c - perseas_segment_grow, when mirrors refuse, are away or answer late, and
 * when owners die: the segment has its old size or its new one, and what is new is zeros
 * everywhere.
 */
#include "grow_rig.h"

#include "../../client/open/map.h"
#include "../../client/open/placement.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

/* A mirror has no memory: it says so, nothing is larger anywhere, and the addresses stay kept. */
TEST(a_mirror_that_is_full_refuses_for_all, struct owner *o)
{
	struct memory *memory = o->d->mirrors[1].memory;
	uint8_t *table;
	void *addr;

	assert_int_equal(perseas_map_reserve(o->p, "table", PAGE, 8 * PAGE, &addr, NULL), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	table = addr;
	memory_heap_set_limit(memory, memory->ops->used(memory) + PAGE);
	assert_int_equal(grow(o, "table", 4), PERSEAS_EMIRRORMEM);
	assert_int_equal(size_of(o, "table"), PAGE);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(segments_on(o, i), 2);
	for (unsigned i = 1; i < 8; i++)
		assert_false(is_free(table + i * PAGE));
	memory_heap_set_limit(memory, 0);
	assert_int_equal(grow(o, "table", 8), 0);
	assert_bytes(table, 8 * PAGE, 0);
	assert_int_equal(put(o, table, 7 * PAGE, 1), 0);
	owner_reopen(o);
	assert_bytes(map(o, "table"), 7 * PAGE, 1);
}

TEST(too_few_mirrors_change_nothing, struct owner *o)
{
	uint8_t *table = make(o, "table", 1, 7);

	for (unsigned i = 0; i < 2; i++) {
		direct_crash(o->d, i);
		owner_keep(o, i, PERSEAS_MIRROR_DOWN);
	}
	assert_int_equal(grow(o, "table", 2), PERSEAS_EUNREACHABLE);
	assert_int_equal(size_of(o, "table"), PAGE);
	for (unsigned i = 0; i < 2; i++) {
		direct_start(o->d, i);
		owner_keep(o, i, PERSEAS_MIRROR_LIVE);
	}
	/* A mapped segment that was not published is not published by the growth. */
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(size_of(o, "table"), PAGE);
	assert_int_equal(grow(o, "table", 2), 0);
	assert_bytes(table + PAGE, PAGE, 0);
}

/* A growth that failed may leave a segment behind, which is nobody's and in nobody's way. */
TEST(what_was_not_born_is_no_part, struct owner *o)
{
	uint8_t *table = make(o, "table", 1, 7);
	struct ps_placement placement = { .where = PS_PLACE_BEHIND };
	perseas_tx_t *tx;
	uint64_t seq;
	void *addr;

	for (unsigned round = 0; round < 2; round++) {
		placement.head_id = ps_segment_by_name(o->p, "table")->id;
		assert_int_equal(ps_map_with_placement(o->p, "table.grown.1", PAGE, &placement,
		                                       &addr, NULL, NULL),
		                 0);
		assert_ptr_equal(addr, table + PAGE);
		assert_int_equal(size_of(o, "table"), PAGE);
		assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
		assert_int_equal(perseas_set_range(tx, table + PAGE - 4, 8), PERSEAS_EUNPUBLISHED);
		assert_int_equal(perseas_abort(tx), 0);
		seq = o->p->commit.seq;
		assert_int_equal(perseas_publish(o->p), 0);
		assert_int_equal(o->p->commit.seq, seq);
		assert_int_equal(segments_on(o, 1), 3);
		if (round)
			break;
		unmap(o, table);
		assert_int_equal(segments_on(o, 1), 2);
		assert_true(is_free(table + PAGE));
		table = map(o, "table");
	}
	assert_int_equal(grow(o, "table", 3), 0);
	assert_int_equal(segments_on(o, 1), 3);
	assert_int_equal(size_of(o, "table"), 3 * PAGE);
	assert_bytes(table + PAGE, 2 * PAGE, 0);
	assert_int_equal(put(o, table, 3 * PAGE, 1), 0);
}

/* A mirror is away, or being copied to, when it grows: each is right by itself afterwards. */
TEST(mirrors_that_missed_it_are_copied, struct owner *o)
{
	uint8_t *table = make(o, "table", 40, 7);

	direct_crash(o->d, 2);
	assert_int_equal(grow(o, "table", 60), 0);
	assert_int_equal(put(o, table + 39 * PAGE, 2 * PAGE, 1), 0);
	direct_start(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(grow(o, "table", 80), 0);
	assert_int_equal(put(o, table + 59 * PAGE, 2 * PAGE, 2), 0);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_stat(o).resyncs, 1);
	direct_crash(o->d, 0);
	owner_reopen(o);
	table = map(o, "table");
	assert_bytes(table, 39 * PAGE, 7);
	assert_bytes(table + 39 * PAGE, 2 * PAGE, 1);
	assert_bytes(table + 41 * PAGE, 18 * PAGE, 0);
	assert_bytes(table + 59 * PAGE, 2 * PAGE, 2);
	assert_bytes(table + 61 * PAGE, 19 * PAGE, 0);
}

/* W mirrors do not answer a growth in time: the next owner finds it or not, as mirrors do. */
TEST(a_growth_may_be_in_doubt, struct owner *o)
{
	uint8_t *table = make(o, "table", 1, 7);

	owner_hold(o, DIRECT_HOLD_COMPLETIONS);
	assert_int_equal(grow(o, "table", 2), PERSEAS_EINDOUBT);
	assert_int_equal(size_of(o, "table"), 2 * PAGE);
	assert_int_equal(put(o, table, 2 * PAGE, 1), PERSEAS_EBLOCKED);
	assert_int_equal(grow(o, "table", 2), PERSEAS_EBLOCKED);
	assert_int_equal(grow(o, "table", 3), PERSEAS_EBLOCKED);
	owner_hold(o, DIRECT_HOLD_NOTHING);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(put(o, table, 2 * PAGE, 1), 0);
	o->d->staged = true;
	owner_reopen(o);
	table = map(o, "table");
	owner_hold(o, DIRECT_HOLD_WRITES);
	assert_int_equal(grow(o, "table", 3), PERSEAS_EINDOUBT);
	direct_crash(o->d, 0);
	owner_next(o);
	table = map(o, "table");
	assert_int_equal(size_of(o, "table"), 2 * PAGE);
	assert_bytes(table, 2 * PAGE, 1);
	assert_int_equal(grow(o, "table", 3), 0);
	assert_bytes(table + 2 * PAGE, PAGE, 0);
}

static int grown_beside; /* what a growth to the same size returned */

static void grow_beside(void *arg)
{
	struct owner *o = arg;

	o->d->on_pause = NULL;
	direct_crash(o->d, 1);
	direct_crash(o->d, 2);
	grown_beside = grow(o, "table", 2);
}

/* Two threads grow it to the same size: neither call succeeds before W mirrors hold that. */
TEST(a_growth_of_another_thread_is_not_told_early, struct owner *o)
{
	make(o, "table", 1, 7);
	owner_hold(o, DIRECT_HOLD_COMPLETIONS);
	grown_beside = 1;
	owner_at_pause(o, grow_beside);
	assert_int_equal(grow(o, "table", 2), PERSEAS_EINDOUBT);
	assert_int_equal(grown_beside, PERSEAS_EINDOUBT);
	for (unsigned i = 1; i < 3; i++)
		o->d->mirrors[i].hold = DIRECT_HOLD_NOTHING;
}

static int published_beside; /* what a publish returned that found nothing to do */

static void publish_beside(void *arg)
{
	struct owner *o = arg;

	o->d->on_pause = NULL;
	direct_crash(o->d, 1);
	direct_crash(o->d, 2);
	published_beside = perseas_publish(o->p);
}

/* Two threads publish a segment while mirrors are lost: neither call succeeds. */
TEST(a_publish_of_another_thread_is_not_told_early, struct owner *o)
{
	void *addr;

	make(o, "table", 1, 7);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(perseas_map(o->p, "more", PAGE, &addr), 0);
	owner_hold(o, DIRECT_HOLD_COMPLETIONS);
	published_beside = 1;
	owner_at_pause(o, publish_beside);
	assert_int_equal(perseas_publish(o->p), PERSEAS_EINDOUBT);
	assert_int_equal(published_beside, PERSEAS_EINDOUBT);
	for (unsigned i = 1; i < 3; i++)
		o->d->mirrors[i].hold = DIRECT_HOLD_NOTHING;
}

/* Commits that W mirrors held once are reported as held even if those mirrors were copied anew
 * since. */
TEST(what_was_held_is_told_at_once, struct owner *o)
{
	uint64_t acked[3];

	make(o, "table", 1, 7);
	assert_int_equal(grow(o, "table", 2), 0);
	assert_int_equal(grow(o, "table", 2), 0);
	for (unsigned i = 0; i < 3; i++) {
		acked[i] = o->p->mirrors[i].acked_seq;
		o->p->mirrors[i].acked_seq = 0;
	}
	assert_int_equal(grow(o, "table", 2), 0);
	for (unsigned i = 0; i < 3; i++)
		o->p->mirrors[i].acked_seq = acked[i];
	assert_int_equal(grow(o, "table", 3), 0);
}

/* The owner dies after each write: the next one finds the old or the new size, and goes on. */
TEST(an_owner_dies_at_each_step, struct owner *o)
{
	unsigned pages = 1;
	uint8_t *table = make(o, "table", 1, 7);

	for (unsigned writes = 0; writes < 5; writes++)
		for (unsigned one = 0; one < 2; one++) {
			uint64_t whole;

			for (unsigned i = one; i < 3; i++)
				o->d->mirrors[i].writes_left = writes;
			(void)grow(o, "table", pages + 1);
			owner_next(o);
			whole = size_of(o, "table");
			assert_true(whole == pages * PAGE || whole == (pages + 1) * PAGE);
			pages = (unsigned)(whole / PAGE);
			table = map(o, "table");
			assert_bytes(table, PAGE, 7);
			assert_bytes(table + PAGE, (pages - 1) * PAGE, 0);
			owner_keep_all(o);
			assert_int_equal(segments_on(o, 1), 1 + pages);
		}
	assert_true(pages > 1);
}

TEST(requests_break, struct owner *o)
{
	static const int requests[] = { PERSEAS__REQUEST__BODY_ADD_SEGMENTS,
		                        PERSEAS__REQUEST__BODY_PUBLISH };
	uint8_t *table = make(o, "table", 1, 7);

	for (unsigned i = 0; i < 4; i++) {
		struct direct_mirror *m = &o->d->mirrors[1];

		m->break_at = requests[i / 2];
		m->reply_lost = i % 2;
		assert_int_equal(grow(o, "table", 2 + i), 0);
		assert_int_equal(m->break_at, 0);
		for (unsigned rounds = 0; rounds < 100; rounds++)
			direct_keep(o->d, o->p);
		owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
		assert_int_equal(segments_on(o, 1), 3 + i);
		direct_crash(o->d, 0);
		owner_reopen(o);
		table = map(o, "table");
		assert_bytes(table, PAGE, 7);
		assert_bytes(table + PAGE, (1 + i) * PAGE, 0);
		direct_start(o->d, 0);
		owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	}
}

/* Another owner has the store by then, which grows it otherwise. */
TEST(a_fenced_owner_grows_nothing, struct owner *o)
{
	perseas_t *second;
	uint8_t *table;
	void *addr;

	make(o, "table", 1, 7);
	second = owner_rival(o);
	assert_int_equal(perseas_map_at(second, "table", 0, NULL, &addr, NULL), 0);
	assert_int_equal(perseas_segment_grow(second, "table", 3 * PAGE), 0);
	/* The keeper's rounds are ten seconds apart. */
	o->p->options.connect_timeout_ms = 60000;
	owner_at_pause(o, owner_keep_unlocked);
	assert_int_equal(grow(o, "table", 2), PERSEAS_EFENCED);
	o->d->on_pause = NULL;
	owner_close(o);
	assert_int_equal(perseas_unmap(second, addr), 0);
	o->p = second;
	owner_map(o);
	table = map(o, "table");
	assert_int_equal(size_of(o, "table"), 3 * PAGE);
	assert_bytes(table, PAGE, 7);
	assert_bytes(table + PAGE, 2 * PAGE, 0);
}

/* All of it goes by one transaction, and its name is free for another size. */
TEST(it_is_destroyed_with_all_parts, struct owner *o)
{
	uint8_t *table = make(o, "table", 2, 7);
	uint64_t seq;

	assert_int_equal(grow(o, "table", 3), 0);
	assert_int_equal(grow(o, "table", 4), 0);
	assert_int_equal(perseas_segment_destroy(o->p, "table"), PERSEAS_ECONFLICT);
	unmap(o, table);
	seq = o->p->commit.seq;
	assert_int_equal(perseas_segment_destroy(o->p, "table"), 0);
	assert_int_equal(o->p->commit.seq, seq + 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(segments_on(o, i), 1);
	table = make(o, "table", 1, 3);
	assert_int_equal(grow(o, "table", 2), 0);
	owner_reopen(o);
	table = map(o, "table");
	assert_bytes(table, PAGE, 3);
	assert_bytes(table + PAGE, PAGE, 0);
}

/* An owner that dies while it is destroyed leaves all of it, or nothing. */
TEST(no_part_is_left_of_it, struct owner *o)
{
	struct perseas_segment_info info;
	uint8_t *table;

	for (unsigned writes = 0; writes < 4; writes++)
		for (unsigned one = 0; one < 2; one++) {
			if (perseas_segment(o->p, "table", &info))
				make(o, "table", 1, 7);
			table = map(o, "table");
			if (size_of(o, "table") == PAGE)
				assert_int_equal(grow(o, "table", 3), 0);
			unmap(o, table);
			for (unsigned i = one; i < 3; i++)
				o->d->mirrors[i].writes_left = writes;
			(void)perseas_segment_destroy(o->p, "table");
			owner_next(o);
			if (perseas_segment(o->p, "table", &info)) {
				assert_int_equal(segments_on(o, 1), 1);
				continue;
			}
			assert_int_equal(info.size, 3 * PAGE);
			assert_int_equal(segments_on(o, 1), 3);
			table = map(o, "table");
			assert_bytes(table, PAGE, 7);
			assert_bytes(table + PAGE, 2 * PAGE, 0);
		}
}
