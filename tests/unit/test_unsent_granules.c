/*
 * test_unsent_granules.c - a mirror that was away for longer than the ring reaches is sent what
 * changed meanwhile, and nothing else: in each way in which memory changes, and whatever breaks.
 * Every test compares the image with the ledger, byte for byte.
 */
#include "../../client/core/change_map.h"

#include "resync_rig.h"

#include "../../client/core/unsent_granules.h"

struct unit_fixture unit_fixture = { setup, teardown };

enum { LAST = BIG % GRANULE /* bytes of the last granule of "big" */ };

#define CHANGED "being sent what changed: it missed more than the ring holds"

TEST(test_only_what_changed_is_sent, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	assert_int_equal(put_big(f, BIG - 1, 1, 99), 0);
	direct_start(f->o->d, 1);
	assert_being_sent(f, 1, CHANGED, GRANULE + LAST);
	assert_catches_up(f, 1);
	assert_carries(f, 0);
}
TEST_ALSO(test_only_what_changed_is_sent, setup_direct, teardown);

/* Sets up an owner whose transactions may be larger than a granule. */
static int setup_large(void **state)
{
	struct owner *o = owner_new(3);

	o->options.acks = 2;
	o->options.log_size = 4 << 20;
	o->options.ring_size = 8 << 20;
	o->d->staged = true;
	return setup_owner(state, o);
}

/* A range touches each granule that has a byte of it. */
TEST_WITH(test_a_range_across_granules_changes_all, setup_large, teardown, struct fixture *f)
{
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 3 * GRANULE - 1, 2, 7), 0);
	assert_int_equal(put_big(f, 5 * GRANULE, GRANULE, 8), 0);
	assert_int_equal(put_big(f, 7 * GRANULE - 3, 2 * GRANULE + 3, 9), 0);
	come_back(f, 1);
	assert_being_sent(f, 1, CHANGED, (2 + 1 + 3) * GRANULE);
	assert_catches_up(f, 1);
}

/* One map serves mirrors that were away at different times. */
TEST_WITH(test_each_mirror_is_sent_what_it_missed, setup_five, teardown, struct fixture *f)
{
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 0, 1, 7), 0);
	direct_crash(f->o->d, 2);
	assert_int_equal(put_big(f, 4 * GRANULE, 1, 8), 0);
	come_back(f, 1);
	assert_being_sent(f, 1, CHANGED, 2 * GRANULE);
	assert_catches_up(f, 1);
	come_back(f, 2);
	assert_being_sent(f, 2, CHANGED, GRANULE);
	assert_catches_up(f, 2);
	assert_image(f, 1);
}

/* Transactions go on meanwhile, in what was sent already and elsewhere. */
TEST(test_transactions_go_on, struct fixture *f)
{
	unsigned rounds = 0;

	miss_more_than_the_ring(f, 1);
	for (unsigned i = 0; i < 10; i += 2)
		assert_int_equal(put_big(f, i * GRANULE, 9, 11), 0);
	direct_start(f->o->d, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_RESYNCING);
	while (owner_state(f->o, 1) == PERSEAS_MIRROR_RESYNCING) {
		put_all_over(f, (uint8_t)(10 + rounds));
		direct_keep(f->o->d, f->o->p);
		assert_true(++rounds < ROUNDS);
	}
	assert_true(rounds >= 4);
	assert_image(f, 1);
	assert_carries(f, 0);
}
TEST_ALSO(test_transactions_go_on, setup_direct, teardown);

/* What changed is not mapped here any more: it is read from another mirror. */
TEST(test_what_is_unmapped_is_read_elsewhere, struct fixture *f)
{
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 6 * GRANULE, 9, 3), 0);
	assert_int_equal(perseas_unmap(f->o->p, f->big), 0);
	come_back(f, 1);
	assert_being_sent(f, 1, CHANGED, GRANULE);
	assert_catches_up(f, 1);
	direct_crash(f->o->d, 1);
	map_big(f);
	assert_int_equal(put_big(f, 2 * GRANULE, 9, 4), 0);
	come_back(f, 1);
	assert_being_sent(f, 1, CHANGED, GRANULE);
	assert_catches_up(f, 1);
}

/* A copy breaks at every write. The next one sends what is left, and what changed since: also what
 * the mirror had already. */
TEST(test_a_broken_copy_goes_on, struct fixture *f)
{
	struct owner *o = f->o;

	for (long writes = 0; writes < 40; writes += 1 + writes / 8) {
		struct direct_mirror *m = &o->d->mirrors[1];
		unsigned rounds = 0;

		miss_more_than_the_ring(f, 1);
		for (unsigned i = 1; i < 10; i += 2)
			assert_int_equal(put_big(f, i * GRANULE, 9, (uint8_t)writes), 0);
		direct_start(o->d, 1);
		owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
		m->writes_left = writes;
		m->torn = (uint32_t)(writes * 5);
		while (owner_state(o, 1) != PERSEAS_MIRROR_LIVE) {
			assert_int_equal(put_big(f, rounds % 9 * GRANULE, 700, (uint8_t)writes), 0);
			ps_ring_drop_all(&o->p->commit.ring, o->p->commit.seq + 1);
			direct_keep(o->d, o->p);
			assert_true(++rounds < ROUNDS);
		}
		m->writes_left = -1;
		assert_image(f, 1);
	}
	assert_carries(f, 2);
}
TEST_ALSO(test_a_broken_copy_goes_on, setup_direct, teardown);

/* Runs rounds until so many bytes were sent. */
static void send_bytes(struct fixture *f, unsigned mirror, uint64_t bytes)
{
	owner_keep(f->o, mirror, PERSEAS_MIRROR_RESYNCING);
	for (unsigned i = 0; stat_of(f, mirror).resync_done < bytes; i++) {
		assert_true(i < ROUNDS);
		direct_keep(f->o->d, f->o->p);
	}
}

/* A chunk was posted, and the link breaks before it arrives. */
TEST(test_a_posted_chunk_is_due_until_it_is_there, struct fixture *f)
{
	struct direct_mirror *m = &f->o->d->mirrors[1];

	miss_more_than_the_ring(f, 1);
	for (unsigned i = 0; i < 10; i += 2)
		assert_int_equal(put_big(f, i * GRANULE, 9, 11), 0);
	direct_start(f->o->d, 1);
	/* The first chunk brings a slot; another one is held behind a transaction. */
	send_bytes(f, 1, GRANULE);
	m->hold = DIRECT_HOLD_WRITES;
	assert_int_equal(put_big(f, 9 * GRANULE, 1, 5), 0);
	send_bytes(f, 1, 2 * GRANULE);
	for (unsigned i = 0; i < 5; i++)
		direct_keep(f->o->d, f->o->p);
	direct_crash(f->o->d, 1);
	m->hold = DIRECT_HOLD_NOTHING;
	assert_int_equal(put_big(f, 9 * GRANULE, 1, 77), 0);
	come_back(f, 1);
	assert_catches_up(f, 1);
}

/* Half of a whole copy is there when the link breaks: the other half is sent. */
TEST(test_a_whole_copy_goes_on, struct fixture *f)
{
	struct perseas_mirror_stat stat;

	direct_crash(f->o->d, 1);
	memory_heap_lose(f->o->d->mirrors[1].memory, NULL);
	direct_start(f->o->d, 1);
	send_bytes(f, 1, BIG / 2);
	assert_non_null(strstr(stat_of(f, 1).trouble, "being copied whole: "));
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 0, 1, 77), 0);
	come_back(f, 1);
	send_bytes(f, 1, 1);
	stat = stat_of(f, 1);
	assert_non_null(strstr(stat.trouble, "being sent what is left of a copy that broke"));
	assert_true(stat.resync_total < SIZE + BIG * 3 / 4);
	assert_catches_up(f, 1);
}

/* The image is put back as it was before its last granules came: nothing of the copy counts. */
TEST(test_what_was_sent_does_not_count_for_an_older_image, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	for (unsigned i = 0; i < 10; i += 2)
		assert_int_equal(put_big(f, i * GRANULE, 9, 11), 0);
	direct_start(f->o->d, 1);
	send_bytes(f, 1, 2 * GRANULE);
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 0, 1, 77), 0);
	assert_non_null(f->o->p->mirrors[1].unsent_granules);
	f->o->p->mirrors[1].unsent_granules->slot_seq_at_removal = f->o->p->commit.seq + 1;
	come_back(f, 1);
	/* The rest is known by digests. */
	assert_being_sent(f, 1, "being sent what differs by digests: a copy to it did not end",
	                  4 * GRANULE);
	assert_catches_up(f, 1);
}

/* The map outlives a renewal. */
TEST(test_what_changed_is_known_after_a_renewal, struct fixture *f)
{
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 0, 1, 5), 0);
	renew_claims(f);
	assert_int_equal(put_big(f, GRANULE, 1, 6), 0);
	renew_claims(f);
	direct_start(f->o->d, 1);
	assert_being_sent(
		f, 1, "being sent what changed: the owner's claim was renewed while it was away",
		2 * GRANULE);
	assert_catches_up(f, 1);
	assert_carries(f, 0);
}

/* What was left of a copy does not: another owner may have had the image meanwhile. */
TEST(test_a_renewal_ends_what_is_left_of_a_copy, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	for (unsigned i = 2; i < 10; i += 2)
		assert_int_equal(put_big(f, i * GRANULE, 9, 11), 0);
	direct_start(f->o->d, 1);
	send_bytes(f, 1, 1);
	direct_crash(f->o->d, 1);
	renew_claims(f);
	direct_start(f->o->d, 1);
	assert_being_sent(f, 1, "being sent what differs by digests: a copy to it did not end",
	                  4 * GRANULE);
	assert_catches_up(f, 1);
}

/* A segment was destroyed and made anew under its id, with another size. */
TEST(test_another_segment_of_the_id_is_copied, struct fixture *f)
{
	perseas_tx_t *tx;
	void *addr;

	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 0, 1, 5), 0);
	assert_int_equal(perseas_unmap(f->o->p, f->big), 0);
	assert_int_equal(perseas_segment_destroy(f->o->p, "big"), 0);
	assert_null(f->o->p->commit.change_maps[1]);
	assert_int_equal(perseas_map(f->o->p, "big", 3 * (uint64_t)BIG, &addr), 0);
	assert_int_equal(perseas_publish(f->o->p), 0);
	assert_int_equal(f->o->p->segments[1].id, 1);
	/* Its last granule lies beyond the map of the segment before. */
	f->big = addr;
	assert_int_equal(perseas_begin(f->o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, f->big + 3 * BIG - 1, 1), 0);
	f->big[3 * BIG - 1] = 1;
	assert_int_equal(perseas_commit(tx, 0), 0);
	come_back(f, 1);
	assert_being_sent(
		f, 1,
		"being copied whole: it missed more than the ring holds, and its segments are "
		"not those of the store",
		SIZE + 3 * (uint64_t)BIG);
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
	assert_memory_equal(big_of(f, 1), f->big, 3 * (uint64_t)BIG);
}

/* W others do not hold what the mirror has, so its image stays as it is (I8). */
TEST_WITH(test_why_it_is_copied_beside, setup_lone_acks, teardown, struct fixture *f)
{
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 0, 1, 5), 0);
	come_back(f, 1);
	assert_being_sent(f, 1, CHANGED, GRANULE);
	assert_catches_up(f, 1);
}

/* --- the map and the sets themselves --- */

TEST(test_each_granule_of_a_part_is_marked, struct fixture *f)
{
	static const uint64_t expected[] = { 7, 7, 8, 10, 10, 10, 0 };
	struct perseas *p = f->o->p;
	uint64_t map[7] = { 0 };

	p->commit.change_maps[5] = map;
	ps_change_map_mark(p, 5, GRANULE - 1, 2, 7);
	ps_change_map_mark(p, 5, 2 * GRANULE, GRANULE, 8);
	ps_change_map_mark(p, 5, 3 * GRANULE, 1, 9);
	ps_change_map_mark(p, 5, 4 * GRANULE - 1, 2 * GRANULE + 1, 10);
	p->commit.change_maps[5] = NULL;
	assert_memory_equal(map, expected, sizeof(map));
	assert_int_equal(ps_change_granules(1), 1);
	assert_int_equal(ps_change_granules(GRANULE), 1);
	assert_int_equal(ps_change_granules(GRANULE + 1), 2);
}

/* More granules than are compared at once: transactions go on in between, and no granule is passed
 * over. */
TEST(test_no_granule_is_passed_over, struct fixture *f)
{
	enum { COUNT = 40002 };
	struct perseas *p = f->o->p;
	struct ps_mirror *m = &p->mirrors[1];
	struct ps_segment *s = &p->segments[1];
	const uint64_t size = s->size;
	Perseas__Slot slot = PERSEAS__SLOT__INIT;
	Perseas__ClaimReply claim = PERSEAS__CLAIM_REPLY__INIT;
	uint64_t *map = calloc(COUNT, sizeof(*map)), *own = p->commit.change_maps[1];
	uint64_t bytes, sum = 0, at = 0;
	unsigned calls = 1;

	assert_non_null(map);
	p->commit.change_maps[1] = map;
	s->size = (uint64_t)COUNT * GRANULE - 5;
	for (unsigned i = 0; i < COUNT; i += 7)
		map[i] = 11;
	map[COUNT - 1] = 11;
	map[3] = 10;
	slot.seq = 10;
	claim.slot = &slot;
	p->is_admin_taken = true;
	assert_int_equal(ps_unsent_make_set(p, m, PS_UNSENT_CHANGED, &claim, m->image_id), 0);
	pthread_mutex_lock(&p->lock);
	for (; ps_unsent_add_changed(p, m, &bytes); calls++)
		sum += bytes;
	pthread_mutex_unlock(&p->lock);
	sum += bytes;
	assert_int_equal(calls, 3);
	assert_int_equal(sum, (uint64_t)((COUNT + 6) / 7 + 1) * GRANULE - 5);
	for (unsigned i = 0; i < COUNT; i += 7, at += GRANULE) {
		at = ps_unsent_next_part(m, s, at);
		assert_int_equal(at, (uint64_t)i * GRANULE);
		assert_int_equal(ps_unsent_part_end(m, s, at, 2 * GRANULE), at + GRANULE);
	}
	at = ps_unsent_next_part(m, s, at);
	assert_int_equal(at, (uint64_t)(COUNT - 1) * GRANULE);
	assert_int_equal(ps_unsent_part_end(m, s, at, 2 * GRANULE), s->size);
	assert_int_equal(ps_unsent_part_end(m, s, at + 16384, 16384), at + 32768);
	/* A granule is due until its last byte is there. */
	ps_unsent_remove_sent_part(m, s, at, at + 16384, 12);
	assert_int_equal(ps_unsent_next_part(m, s, at), at);
	ps_unsent_remove_sent_part(m, s, at + 16384, s->size, 12);
	assert_int_equal(ps_unsent_next_part(m, s, at), s->size);
	ps_unsent_free(m);
	p->is_admin_taken = false;
	s->size = size;
	p->commit.change_maps[1] = own;
	free(map);
}

/* A copy breaks before the owner has compared all granules. The next one compares from the slot
 * with which that one began: the link may have brought later slots, but not what is due. */
TEST(test_a_broken_comparison_begins_again, struct fixture *f)
{
	struct perseas *p = f->o->p;
	struct ps_mirror *m = &p->mirrors[1];
	struct ps_segment *s = &p->segments[1];
	Perseas__Slot slot = PERSEAS__SLOT__INIT;
	Perseas__ClaimReply claim = PERSEAS__CLAIM_REPLY__INIT;
	uint64_t bytes;

	p->commit.change_maps[1][2] = 15;
	claim.slot = &slot;
	slot.seq = 10;
	p->is_admin_taken = true;
	assert_int_equal(ps_unsent_make_set(p, m, PS_UNSENT_CHANGED, &claim, m->image_id), 0);
	slot.seq = 20;
	assert_int_equal(ps_unsent_make_set(p, m, PS_UNSENT_REST, &claim, m->image_id), 0);
	pthread_mutex_lock(&p->lock);
	assert_false(ps_unsent_add_changed(p, m, &bytes));
	assert_int_equal(bytes, GRANULE);
	assert_int_equal(ps_unsent_next_part(m, s, 0), 2 * GRANULE);
	/* The comparison ended: what changed up to the next slot is due, or there. */
	ps_unsent_remove_sent_part(m, s, 2 * GRANULE, 3 * GRANULE, 20);
	p->commit.change_maps[1][3] = 18;
	p->commit.change_maps[1][4] = 21;
	assert_int_equal(ps_unsent_make_set(p, m, PS_UNSENT_REST, &claim, m->image_id), 0);
	assert_false(ps_unsent_add_changed(p, m, &bytes));
	assert_int_equal(ps_unsent_next_part(m, s, 0), 4 * GRANULE);
	pthread_mutex_unlock(&p->lock);
	ps_unsent_free(m);
	p->is_admin_taken = false;
}
