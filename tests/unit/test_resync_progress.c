/*
 * test_resync_progress.c - what an owner tells about a copy: how much it has sent, at which rate,
 * how long the rest takes, and why everything is sent. Mirrors are told the same.
 */
#include "resync_rig.h"

#include "../../client/core/unsent_granules.h"

struct unit_fixture unit_fixture = { setup, teardown };

enum { RATE = 20000 /* bytes a second that the owner sends */ };

/* Keeps a copy to the mirror going until it has begun, and asserts why it is whole; "": it is
 * not. */
static void assert_mirror_whole(struct fixture *f, unsigned mirror, const char *name)
{
	owner_keep(f->o, mirror, PERSEAS_MIRROR_RESYNCING);
	assert_string_equal(stat_of(f, mirror).resync_whole, name);
	owner_keep(f->o, mirror, PERSEAS_MIRROR_LIVE);
	assert_string_equal(stat_of(f, mirror).resync_whole, "");
}

static void assert_whole(struct fixture *f, const char *name)
{
	assert_mirror_whole(f, 1, name);
}

TEST(what_changed_is_no_whole_copy, struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	direct_start(f->o->d, 1);
	assert_whole(f, "");
}

TEST(an_image_is_lost, struct fixture *f)
{
	direct_crash(f->o->d, 1);
	memory_heap_lose(f->o->d->mirrors[1].memory, NULL);
	direct_start(f->o->d, 1);
	assert_whole(f, "lost");
}

static int setup_two_of_three(void **state)
{
	struct owner *o = owner_new(3);

	o->options.acks = 1;
	strcpy(o->d->list, "sim://0,sim://1");
	return setup_owner(state, o);
}

TEST_WITH(a_mirror_joins, setup_two_of_three, teardown, struct fixture *f)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_ADD, NULL, "sim://2", 0, 0 };

	assert_int_equal(owner_change(f->o, &wanted), 0);
	assert_mirror_whole(f, 2, "joins");
}

/* Copies to other mirrors are no part of what the mirror that joined was sent. */
TEST_WITH(the_mirror_that_joined_was_sent_so_much, setup_two_of_three, teardown, struct fixture *f)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_ADD, NULL, "sim://2", 0, 0 };
	const struct ps_joining_copy *copy = &f->o->p->upkeep.change.copy;

	assert_int_equal(owner_change(f->o, &wanted), 0);
	owner_keep_stage(f->o, PS_CHANGE_NONE);
	assert_int_equal(copy->sent_bytes, SIZE + BIG);
	assert_string_equal(copy->whole_reason->name, "joins");
	direct_crash(f->o->d, 1);
	memory_heap_lose(f->o->d->mirrors[1].memory, NULL);
	direct_start(f->o->d, 1);
	assert_whole(f, "lost");
	assert_int_equal(copy->sent_bytes, SIZE + BIG);
	assert_string_equal(copy->whole_reason->name, "joins");
}

static void become_of_another_owner(struct fixture *f)
{
	miss_more_than_the_ring(f, 1);
	owner_die(f->o);
	owner_reopen(f->o);
	map_big(f);
	direct_start(f->o->d, 1);
}

TEST(digests_need_no_whole_copy, struct fixture *f)
{
	become_of_another_owner(f);
	assert_whole(f, "");
}

static int setup_before(void **state)
{
	struct owner *o = owner_new(3);

	o->options.acks = 2;
	o->d->mirrors[1].version = 8;
	return setup_owner(state, o);
}

TEST_WITH(the_daemon_gives_no_digests, setup_before, teardown, struct fixture *f)
{
	become_of_another_owner(f);
	assert_whole(f, "version");
}

/* Destroys the segment, and makes another one of this name and id. */
static void replace_big(struct fixture *f)
{
	void *addr;

	assert_int_equal(perseas_unmap(f->o->p, f->big), 0);
	assert_int_equal(perseas_segment_destroy(f->o->p, "big"), 0);
	assert_int_equal(perseas_map(f->o->p, "big", BIG, &addr), 0);
	assert_int_equal(perseas_publish(f->o->p), 0);
	f->big = addr;
}

TEST(the_segments_are_others, struct fixture *f)
{
	direct_crash(f->o->d, 1);
	replace_big(f);
	ps_ring_drop_all(&f->o->p->commit.ring, f->o->p->commit.seq + 1);
	direct_start(f->o->d, 1);
	assert_whole(f, "segments");
}

/* Too few other mirrors hold what the image does. */
TEST(the_image_is_needed, struct fixture *f)
{
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 0, 1, 5), 0);
	direct_crash(f->o->d, 2);
	ps_ring_drop_all(&f->o->p->commit.ring, f->o->p->commit.seq + 1);
	direct_start(f->o->d, 1);
	assert_whole(f, "needed");
}

static int setup_slow(void **state)
{
	struct owner *o = owner_new(3);

	o->options.acks = 2;
	o->options.resync_rate = RATE;
	o->d->staged = true;
	return setup_owner(state, o);
}

/* Returns what mirror 0 was told about mirror 1's copy. */
static Perseas__MirrorReport told(struct fixture *f)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	struct why why;

	direct_keep_after(f->o->d, f->o->p, SLOW);
	assert_int_equal(store_status(f->o->d->mirrors[0].stores, STORE, &status, &why), 0);
	assert_int_equal(status.n_mirrors, 3);
	return *status.mirrors[1];
}

/* The rest takes as long as it takes at the present rate, which the option limits. */
TEST_WITH(the_time_that_is_left_is_told, setup_slow, teardown, struct fixture *f)
{
	const uint64_t total = SIZE + BIG;
	struct perseas_mirror_stat stat;
	Perseas__MirrorReport report;

	make_stale(f, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_RESYNCING);
	for (unsigned i = 0; i < 10; i++)
		direct_keep_after(f->o->d, f->o->p, 1000 * MS);
	stat = stat_of(f, 1);
	assert_int_equal(stat.resync_total, total);
	assert_in_range(stat.resync_done, 1, total - 1);
	assert_in_range(stat.resync_rate, RATE / 2, 2 * RATE);
	assert_int_equal(stat.resync_ms, ((total - stat.resync_done) * 1000 + stat.resync_rate -
	                                  1) / stat.resync_rate);
	report = told(f);
	assert_int_equal(report.total, total);
	assert_in_range(report.resync->rate, RATE / 2, 2 * RATE);
	assert_in_range(report.resync->left_ms, 1, total * 1000 / RATE * 2);
	assert_int_equal(owner_stat(f->o).resync_bytes, stat_of(f, 1).resync_done);
	owner_keep(f->o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_stat(f->o).resync_bytes, total);
	assert_null(told(f).resync);
	stat = stat_of(f, 1);
	assert_int_equal(stat.resync_rate + stat.resync_ms, 0);
}

/* The rate is that of the last seconds, not of the whole copy: a copy that stands still takes
 * longer and longer. */
TEST_WITH(the_rate_is_the_present_one, setup_slow, teardown, struct fixture *f)
{
	struct ps_resync *r = &f->o->p->upkeep.resync;
	uint64_t before, begun;

	make_stale(f, 1);
	owner_keep(f->o, 1, PERSEAS_MIRROR_RESYNCING);
	begun = f->o->d->now;
	for (unsigned i = 0; i < 20; i++)
		direct_keep_after(f->o->d, f->o->p, 1000 * MS);
	before = stat_of(f, 1).resync_rate;
	assert_true(r->previous_mark.noted_at > begun + 5000 * MS);
	f->o->d->now += 15000 * MS;
	assert_in_range(stat_of(f, 1).resync_rate, 1, before / 2);
}
