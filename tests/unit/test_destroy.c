/*
 * test_destroy.c - perseas_segment_destroy: when it is refused, what is left of a segment that was
 * destroyed, and what becomes of mirrors that did not hear of it, or only of half of it.
 */
#include "owner.h"

#include "../../client/command/ask/ask.h"
#include "../../client/core/segment.h"
#include "../../client/demand/warm.h"
#include "../../server/store/store_private.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

/* A second segment of this size, published, with `value` in all of its bytes. */
static void make(struct owner *o, const char *name, unsigned size, uint8_t value)
{
	void *addr;

	assert_int_equal(perseas_map(o->p, name, size, &addr), 0);
	memset(addr, value, size);
	assert_int_equal(perseas_publish(o->p), 0);
}

static void unmap(struct owner *o, const char *name)
{
	struct perseas_segment_info info;

	assert_int_equal(perseas_segment(o->p, name, &info), 0);
	assert_int_equal(perseas_unmap(o->p, info.address), 0);
}

static void make_unmapped(struct owner *o, const char *name, unsigned size, uint8_t value)
{
	make(o, name, size, value);
	unmap(o, name);
}

/* The segment is there, with `value` in all of its `size` bytes. */
static void assert_there(struct owner *o, const char *name, unsigned size, uint8_t value)
{
	uint8_t *bytes;
	void *addr;

	assert_int_equal(perseas_map(o->p, name, size, &addr), 0);
	bytes = addr;
	for (unsigned i = 0; i < size; i++)
		assert_int_equal(bytes[i], value);
}

static void assert_gone(struct owner *o, const char *name)
{
	struct perseas_segment_info info;
	void *addr;

	assert_int_equal(perseas_segment(o->p, name, &info), PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_map(o->p, name, 0, &addr), PERSEAS_ENOSEGMENT);
}

static const Perseas__Header *header_on(struct owner *o, unsigned mirror)
{
	return store_find(o->d->mirrors[mirror].stores, STORE)->header;
}

/* None of the mirrors has memory of a segment of this name. */
static void assert_given_back(struct owner *o, const char *name)
{
	for (unsigned i = 0; i < o->d->count; i++)
		for (size_t k = 0; k < header_on(o, i)->n_segments; k++)
			assert_string_not_equal(header_on(o, i)->segments[k]->name, name);
}

/* The segment is gone here, on every mirror, and for the next owner; others remain. */
TEST(a_segment_that_is_destroyed_is_gone, struct owner *o)
{
	make_unmapped(o, "more", 5000, 9);
	assert_int_equal(perseas_segment_destroy(o->p, "more"), 0);
	assert_gone(o, "more");
	assert_given_back(o, "more");
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	owner_reopen(o);
	assert_gone(o, "more");
	assert_int_equal(o->bytes[0], 1);
	assert_int_equal(o->bytes[11], 77);
}

/* The name, and the number behind it, are free at once, for another size. */
TEST(its_name_can_be_used_again, struct owner *o)
{
	struct perseas_segment_info before, after;

	make(o, "more", 5000, 9);
	assert_int_equal(perseas_segment(o->p, "more", &before), 0);
	unmap(o, "more");
	assert_int_equal(perseas_segment_destroy(o->p, "more"), 0);
	make(o, "more", 90000, 4);
	assert_int_equal(perseas_segment(o->p, "more", &after), 0);
	assert_int_equal(after.size, 90000);
	assert_true(after.published);
	owner_reopen(o);
	assert_there(o, "more", 90000, 4);
	assert_int_equal(owner_stat(o).live, 3);
}

/* More than there can be at a time, one after the other. */
TEST(only_the_living_are_counted, struct owner *o)
{
	for (unsigned i = 0; i < PS_SEGMENTS_MAX + 3; i++) {
		make_unmapped(o, "more", 100 + i, (uint8_t)i);
		assert_int_equal(perseas_segment_destroy(o->p, "more"), 0);
	}
	for (unsigned i = 1; i < PS_SEGMENTS_MAX; i++) {
		char name[16];
		void *addr;

		snprintf(name, sizeof(name), "s%u", i);
		assert_int_equal(perseas_map(o->p, name, 1, &addr), 0);
	}
	assert_int_equal(perseas_publish(o->p), 0);
	owner_reopen(o);
	assert_int_equal(o->p->segment_count, PS_SEGMENTS_MAX);
}

/* Mapped, with an open transaction's ranges or without; no such segment, or one that is not
 * published; no name. Nothing changes, and each sentence says what to do. */
TEST(it_is_refused_where_the_segment_is_in_use, struct owner *o)
{
	perseas_tx_t *tx;
	void *addr;

	assert_int_equal(perseas_segment_destroy(o->p, "accounts"), PERSEAS_ECONFLICT);
	assert_says(o, "unmap it");
	tx = owner_tx(o);
	assert_int_equal(perseas_set_range(tx, o->bytes, 8), 0);
	assert_int_equal(perseas_unmap(o->p, o->bytes), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_segment_destroy(o->p, "accounts"), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(perseas_segment_destroy(o->p, "nothing"), PERSEAS_ENOSEGMENT);
	assert_says(o, "'nothing'");
	assert_int_equal(perseas_map(o->p, "new", 100, &addr), 0);
	assert_int_equal(perseas_segment_destroy(o->p, "new"), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_unmap(o->p, addr), 0);
	assert_int_equal(perseas_segment_destroy(o->p, "new"), PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_segment_destroy(o->p, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_segment_destroy(o->p, ".x"), PERSEAS_EINVAL);
	assert_int_equal(perseas_segment_destroy(NULL, "accounts"), PERSEAS_EINVAL);
	assert_int_equal(o->p->commit.seq, 1);
	owner_reopen(o);
	assert_int_equal(o->bytes[1], 7);
}

/* W mirrors do not answer in time: the segment is gone here, but the mirrors keep its memory, and
 * its name cannot be used again, until W of them hold the record. */
TEST(memory_goes_back_once_w_hold_it, struct owner *o)
{
	void *addr;

	make_unmapped(o, "more", 5000, 9);
	owner_hold(o, DIRECT_HOLD_COMPLETIONS);
	assert_int_equal(perseas_segment_destroy(o->p, "more"), PERSEAS_EINDOUBT);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(header_on(o, i)->n_segments, 2);
	assert_int_equal(perseas_map(o->p, "more", 10, &addr), PERSEAS_EBLOCKED);
	assert_int_equal(perseas_segment_destroy(o->p, "accounts"), PERSEAS_EBLOCKED);
	owner_hold(o, DIRECT_HOLD_NOTHING);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_gone(o, "more");
	make(o, "more", 10, 3);
	owner_reopen(o);
	assert_there(o, "more", 10, 3);
}

static void map_meanwhile(void *arg)
{
	struct owner *o = arg;
	void *addr;

	o->d->on_pause = NULL;
	assert_int_equal(perseas_map(o->p, "more", 10, &addr), PERSEAS_EBLOCKED);
	assert_says(o, "was destroyed");
}

/* Another thread wants the name while the first one waits, and nothing is in doubt yet. */
TEST(the_name_is_free_once_w_hold_it, struct owner *o)
{
	make_unmapped(o, "more", 5000, 9);
	owner_hold(o, DIRECT_HOLD_COMPLETIONS);
	o->d->on_pause = map_meanwhile;
	o->d->on_pause_arg = o;
	assert_int_equal(perseas_segment_destroy(o->p, "more"), PERSEAS_EINDOUBT);
	assert_null(o->d->on_pause);
	owner_hold(o, DIRECT_HOLD_NOTHING);
	owner_reopen(o);
	assert_gone(o, "more");
}

/* Too few mirrors are there: nothing is destroyed, and it can be tried again. */
TEST(too_few_mirrors_destroy_nothing, struct owner *o)
{
	make_unmapped(o, "more", 5000, 9);
	for (unsigned i = 0; i < 2; i++) {
		direct_crash(o->d, i);
		owner_keep(o, i, PERSEAS_MIRROR_DOWN);
	}
	assert_int_equal(perseas_segment_destroy(o->p, "more"), PERSEAS_EUNREACHABLE);
	for (unsigned i = 0; i < 2; i++) {
		direct_start(o->d, i);
		owner_keep(o, i, PERSEAS_MIRROR_LIVE);
	}
	assert_there(o, "more", 5000, 9);
	unmap(o, "more");
	assert_int_equal(perseas_segment_destroy(o->p, "more"), 0);
	assert_given_back(o, "more");
}

/* A mirror was away: it is copied whole, never sent the end of what it has; also where the segment
 * of the same number is another one by then, of the same size. */
TEST(a_mirror_that_was_away_is_copied, struct owner *o)
{
	for (unsigned again = 0; again < 2; again++) {
		make_unmapped(o, "more", 5000, 9);
		direct_crash(o->d, 2);
		assert_int_equal(perseas_segment_destroy(o->p, "more"), 0);
		if (again)
			make(o, "more", 5000, 4);
		assert_int_equal(owner_put(o, 0, 10, 1), 0);
		direct_start(o->d, 2);
		owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
		assert_int_equal(owner_stat(o).resyncs, again + 1);
		if (!again)
			assert_given_back(o, "more");
	}
	/* The mirror has the right state by itself. */
	o->options.acks = 2;
	direct_crash(o->d, 0);
	owner_reopen(o);
	assert_there(o, "more", 5000, 4);
}

/* A mirror is being copied to: the copy begins again, without the segment. */
TEST(a_copy_that_goes_on_begins_again, struct owner *o)
{
	make_unmapped(o, "more", 700000, 9);
	owner_lose(o, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(perseas_segment_destroy(o->p, "more"), 0);
	make(o, "less", 700000, 5);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_given_back(o, "more");
	direct_crash(o->d, 0);
	owner_reopen(o);
	assert_there(o, "less", 700000, 5);
	assert_gone(o, "more");
}

/* The copy of a mirror is what W mirrors are wanted for: a destroy that is refused until then, as
 * often as it is tried, leaves it as it is. */
TEST(one_that_is_refused_leaves_the_copy, struct owner *o)
{
	make_unmapped(o, "more", 700000, 9);
	direct_crash(o->d, 2);
	make(o, "other", 100, 1);
	direct_crash(o->d, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_DOWN);
	direct_start(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_RESYNCING);
	assert_int_equal(perseas_segment_destroy(o->p, "more"), PERSEAS_EUNREACHABLE);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_RESYNCING);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_segment_destroy(o->p, "more"), 0);
}

/* A chunk of the segment was asked of another mirror, and its answer comes when it is gone. */
TEST(a_chunk_that_was_read_is_of_nothing, struct owner *o)
{
	const struct ps_resync *r = &o->p->upkeep.resync;

	make_unmapped(o, "more", 3000, 9);
	for (unsigned i = 0; i < 2; i++) {
		o->d->mirrors[i].slow_at = PERSEAS__REQUEST__BODY_READ;
		o->d->mirrors[i].slow_ns = ps_ms(50);
	}
	owner_lose(o, 2);
	OWNER_KEEP_UNTIL(o, r->state == PS_RESYNC_READING && r->read_region != PS_REGION_LOG);
	assert_int_equal(perseas_segment_destroy(o->p, "more"), 0);
	assert_int_not_equal(owner_state(o, 2), PERSEAS_MIRROR_RESYNCING);
	make_unmapped(o, "less", 3000, 5);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	for (unsigned i = 0; i < 2; i++)
		o->d->mirrors[i].slow_at = 0;
	direct_crash(o->d, 0);
	owner_reopen(o);
	assert_there(o, "less", 3000, 5);
}

/* A mirror makes room for a copy when the segment goes: what it made is not gone on with. */
TEST(room_that_was_made_is_not_used, struct owner *o)
{
	const struct ps_resync *r = &o->p->upkeep.resync;

	make_unmapped(o, "more", 3000, 9);
	owner_lose(o, 2);
	o->d->mirrors[2].slow_at = PERSEAS__REQUEST__BODY_REBUILD;
	o->d->mirrors[2].slow_ns = ps_ms(50);
	OWNER_KEEP_UNTIL(o, r->state == PS_RESYNC_MAKING_ROOM);
	assert_int_equal(perseas_segment_destroy(o->p, "more"), 0);
	assert_int_equal(r->state, PS_RESYNC_MAKING_ROOM);
	o->d->mirrors[2].slow_at = 0;
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_given_back(o, "more");
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	direct_crash(o->d, 0);
	owner_reopen(o);
	assert_gone(o, "more");
}

/* The owner dies with the announcement alone, and after each write of the record and its slot, on
 * each mirror or on one: the next finds the segment whole, or gone, and its bytes are never
 * another transaction's to delete. */
TEST(an_owner_dies_at_each_step, struct owner *o)
{
	for (unsigned writes = 0; writes < 4; writes++)
		for (unsigned one = 0; one < 2; one++) {
			char name[16];
			struct perseas_segment_info info;

			snprintf(name, sizeof(name), "s%u.%u", writes, one);
			make_unmapped(o, name, 5000, 9);
			for (unsigned i = one; i < 3; i++)
				o->d->mirrors[i].writes_left = writes;
			(void)perseas_segment_destroy(o->p, name);
			owner_die(o);
			owner_reopen(o);
			owner_keep_all(o);
			if (!perseas_segment(o->p, name, &info))
				assert_there(o, name, 5000, 9);
			else
				assert_given_back(o, name);
			/* The seq that was announced is taken now, by one or more. */
			for (uint8_t i = 0; i < 3; i++)
				assert_int_equal(owner_put(o, 0, 10, i), 0);
			owner_die(o);
			owner_reopen(o);
			owner_keep_all(o);
			if (!writes && !one)
				assert_there(o, name, 5000, 9);
		}
}

/* The connections to mirrors break at each request of it. */
TEST(requests_break, struct owner *o)
{
	static const int requests[] = { PERSEAS__REQUEST__BODY_DESTROY,
		                        PERSEAS__REQUEST__BODY_DROP_SEGMENTS };

	for (unsigned i = 0; i < 4; i++) {
		struct direct_mirror *m = &o->d->mirrors[1];

		make_unmapped(o, "more", 5000, 9);
		m->break_at = requests[i / 2];
		m->reply_lost = i % 2;
		assert_int_equal(perseas_segment_destroy(o->p, "more"), 0);
		assert_int_equal(m->break_at, 0);
		/* Its session is taken up again. */
		for (unsigned rounds = 0; rounds < 100; rounds++)
			direct_keep(o->d, o->p);
		owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
		assert_given_back(o, "more");
		make(o, "more", 6000 + i, 8);
		owner_reopen(o);
		assert_int_equal(owner_stat(o).live, 3);
		assert_there(o, "more", 6000 + i, 8);
		unmap(o, "more");
		assert_int_equal(perseas_segment_destroy(o->p, "more"), 0);
	}
}

/* Another owner has the store by then. */
TEST(a_fenced_owner_destroys_nothing, struct owner *o)
{
	perseas_t *second;

	make_unmapped(o, "more", 5000, 9);
	second = owner_rival(o);
	o->d->on_pause = owner_keep_beside;
	o->d->on_pause_arg = o;
	assert_true(perseas_segment_destroy(o->p, "more") < 0);
	o->d->on_pause = NULL;
	owner_close(o);
	o->p = second;
	owner_map(o);
	assert_there(o, "more", 5000, 9);
}

/* What the command shows of a segment depends on the transactions that an image holds. */
TEST_WITH(it_lives_from_its_birth_to_its_death, NULL, NULL)
{
	Perseas__Segment segment = PERSEAS__SEGMENT__INIT;

	assert_false(ps_segment_exists_at(&segment, 5));
	segment.born = 5;
	assert_false(ps_segment_exists_at(&segment, 4));
	assert_true(ps_segment_exists_at(&segment, 5));
	segment.died = 7;
	assert_true(ps_segment_exists_at(&segment, 6));
	assert_false(ps_segment_exists_at(&segment, 7));
}

/* A standby's copy of the segment that has this key, proven. */
static void keep_copy(struct owner *o, struct ps_segment_key key, uint8_t value)
{
	static uint8_t bytes[16384];
	struct ps_range range;

	assert_true(key.size <= sizeof(bytes));
	memset(bytes, value, key.size);
	o->p->warm_copy = ps_warm_new(o->p->store_id);
	assert_true(ps_warm_add_segment(o->p->warm_copy, &key, o->p->commit.seq));
	while (ps_warm_next_to_read(o->p->warm_copy, o->p->commit.seq, 16, &range))
		assert_true(ps_warm_store_read(o->p->warm_copy, &range, bytes + range.offset));
}

/* A standby's copy of it, from which what is mapped is read first, and the next segment gets its
 * number. It was not mapped since the copy was proven. */
TEST(its_copy_is_nobody_elses, struct owner *o)
{
	const struct ps_segment *segment;
	const struct ps_warm_part *part;

	make_unmapped(o, "first", 8192, 0x11);
	segment = ps_segment_by_name(o->p, "first");
	keep_copy(o, ps_segment_key(segment), 0x11);
	part = ps_warm_part(o->p->warm_copy, segment->id);
	assert_int_equal(perseas_segment_destroy(o->p, "first"), 0);
	assert_true(part->left);
	make(o, "second", 8192, 0x22);
	assert_int_equal(ps_segment_by_name(o->p, "second")->id, part->segment);
	unmap(o, "second");
	assert_there(o, "second", 8192, 0x22);
}

/* A copy of the same id whose key differs in one field is another segment's. */
TEST(a_copy_of_another_segment_is_not_taken, struct owner *o)
{
	struct ps_segment_key key, others[4];

	make_unmapped(o, "first", 8192, 0x11);
	key = ps_segment_key(ps_segment_by_name(o->p, "first"));
	for (unsigned i = 0; i < 4; i++)
		others[i] = key;
	others[0].born--;
	others[1].size = 16384;
	others[2].address += 4096;
	strcpy(others[3].name, "second");
	for (unsigned i = 0; i < 4; i++) {
		keep_copy(o, others[i], 0x22);
		assert_there(o, "first", 8192, 0x11);
		unmap(o, "first");
		ps_warm_free(o->p->warm_copy);
		o->p->warm_copy = NULL;
	}
	keep_copy(o, key, 0x33);
	assert_there(o, "first", 8192, 0x33);
}
