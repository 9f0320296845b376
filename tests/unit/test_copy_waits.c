/*
 * test_copy_waits.c - commits wait for a copy after two broke in a row, so that a load above the
 * link of its mirror lets it end. The link of mirror 1 takes a time for each byte.
 */
#include "resync_rig.h"

#include "../../client/core/pace.h"
#include "../../server/store/store.h"

#define SECOND (1000 * MS)

enum {
	BYTE_NS = 4000,    /* 250 kB/s: a chunk takes 0.5 s */
	LENGTH = 3000,     /* each transaction sends about twice as much */
	EVERY = 16,        /* ms from one to the next: 375 kB/s */
	LONG = 200000,     /* transactions: more than any copy needs */
	ON_ITS_WAY = 4096, /* chains of one link */
};

/* Completions of mirror 1 are told when its link has carried their bytes. */
static struct {
	struct direct *d;
	struct ps_env_ops ops;
	struct ps_fabric fabric;
	const struct ps_fabric *real;
	const struct ps_link *link;        /* the latest one */
	uint64_t due[ON_ITS_WAY], free_at; /* of each chain; when the link is free */
	unsigned first, last;
	bool stuck; /* it carries nothing */
} slow_link;

static uint64_t bytes_of(const struct ps_chain *chain)
{
	uint64_t bytes = chain->slot.length;

	for (unsigned i = 0; i < chain->write_count; i++)
		bytes += chain->writes[i].length;
	return bytes;
}

static struct ps_link *slow_attach(struct ps_env *env, const struct ps_address *address,
                                   const Perseas__Grant *grant, const int *fds, uint64_t epoch,
                                   uint64_t until_ns, struct ps_error *error)
{
	struct ps_link *link = slow_link.real->attach(env, address, grant, fds, epoch, until_ns,
	                                              error);

	if (!strcmp(address->port, "1")) {
		slow_link.link = link;
		slow_link.first = slow_link.last = 0;
		slow_link.free_at = 0;
	}
	return link;
}

static int slow_post(struct ps_link *link, const struct ps_chain *chain)
{
	if (link == slow_link.link) {
		if (slow_link.free_at < slow_link.d->now)
			slow_link.free_at = slow_link.d->now;
		slow_link.free_at += bytes_of(chain) * BYTE_NS;
		assert_true(slow_link.last - slow_link.first < ON_ITS_WAY);
		slow_link.due[slow_link.last++ % ON_ITS_WAY] = slow_link.free_at;
	}
	return slow_link.real->post(link, chain);
}

static int slow_poll(struct ps_link *link)
{
	int done = slow_link.real->poll(link), told = 0;

	if (link != slow_link.link || done < 0)
		return done;
	while (!slow_link.stuck && slow_link.first != slow_link.last &&
	       slow_link.due[slow_link.first % ON_ITS_WAY] <= slow_link.d->now) {
		slow_link.first++;
		told++;
	}
	return told;
}

static const struct ps_fabric *slow_fabric(struct ps_env *env, const struct ps_address *address,
                                           const Perseas__Grant *grant, unsigned tried)
{
	(void)env;
	(void)address;
	(void)grant;
	return tried ? NULL : &slow_link.fabric;
}

static int setup_paced(void **state, uint32_t pace_ms, uint64_t ring_size)
{
	struct fixture *f;
	struct owner *o;

	setup_lone_acks(state);
	f = *state;
	o = f->o;
	o->options.pace_ms = pace_ms;
	o->options.ring_size = ring_size;
	owner_reopen(o);
	map_big(f);
	memset(&slow_link, 0, sizeof(slow_link));
	slow_link.d = o->d;
	slow_link.real = o->p->mirrors[1].fabric;
	slow_link.fabric = *slow_link.real;
	slow_link.fabric.attach = slow_attach;
	slow_link.fabric.post = slow_post;
	slow_link.fabric.poll = slow_poll;
	slow_link.ops = *o->p->env->ops;
	slow_link.ops.fabric = slow_fabric;
	o->p->env->ops = &slow_link.ops;
	direct_crash(o->d, 1);
	for (unsigned i = 0; ps_ring_can_replay(&o->p->commit.ring, o->p->mirrors[1].acked_seq + 1,
	                                        o->p->commit.seq);
	     i++)
		assert_int_equal(put_big(f, 5000 + i % 1000, LENGTH, (uint8_t)i), 0);
	direct_start(o->d, 1);
	return 0;
}

static int setup_default(void **state)
{
	return setup_paced(state, 0, 1 << 20);
}

static int setup_off(void **state)
{
	return setup_paced(state, UINT32_MAX, 1 << 20);
}

/* A load far above the link does not fill it before commits have waited for some seconds. */
static int setup_large_ring(void **state)
{
	return setup_paced(state, 0, 16 << 20);
}

struct unit_fixture unit_fixture = { setup_default, teardown };

/* Runs the keeper's rounds for some time. While no copy goes on, everything changes: each copy
 * sends as much as the one before. */
static void keep_on(struct owner *o, uint64_t ns)
{
	if (owner_state(o, 1) == PERSEAS_MIRROR_DOWN)
		change_all(o->p);
	direct_keep_after(o->d, o->p, ns);
}

/* A transaction each EVERY ms, and the keeper's rounds. Returns how long it took. */
static uint64_t work(struct fixture *f, unsigned i)
{
	struct owner *o = f->o;
	const uint64_t start = o->d->now;
	uint64_t took;

	assert_int_equal(put_big(f, i * 100 % (BIG - LENGTH), LENGTH, (uint8_t)i), 0);
	took = o->d->now - start;
	keep_on(o, EVERY * MS);
	return took;
}

static const struct ps_broken_copies *broken(const struct fixture *f)
{
	return &f->o->p->mirrors[1].broken_copies;
}

/* Transactions until so many copies in a row broke. */
static void work_until_broken(struct fixture *f, unsigned count)
{
	for (unsigned i = 0; broken(f)->broken_copy_count < count; i++) {
		assert_true(i < LONG);
		work(f, i);
	}
}

TEST(test_a_copy_ends_although_the_load_is_above_the_link, struct fixture *f)
{
	const uint64_t most = f->o->p->options.pace_ms * MS;
	uint64_t start, waited = 0, counted = 0;

	work_until_broken(f, 2);
	assert_int_equal(broken(f)->waited_commit_count, 0);
	start = f->o->d->now;
	for (unsigned i = 0; owner_state(f->o, 1) != PERSEAS_MIRROR_LIVE; i++) {
		const uint64_t took = work(f, i);

		assert_true(i < LONG && took < most + most / 8);
		assert_int_equal(broken(f)->broken_copy_count,
		                 owner_state(f->o, 1) == PERSEAS_MIRROR_LIVE ? 0 : 2);
		if (took > MS)
			waited += took;
		if (broken(f)->waited_commit_count)
			counted = broken(f)->waited_commit_count;
	}
	assert_true(waited && waited <= (f->o->d->now - start) / 2);
	assert_true(counted);
	assert_int_equal(owner_stat(f->o).resyncs, 1);
	assert_catches_up(f, 1);
}

/* Copies break, and no commit waits. */
TEST_WITH(test_without_pacing_no_commit_waits, setup_off, teardown, struct fixture *f)
{
	for (unsigned i = 0; broken(f)->broken_copy_count < 4; i++) {
		assert_true(i < LONG);
		assert_true(work(f, i) < MS);
	}
	assert_int_equal(broken(f)->waited_commit_count, 0);
	assert_int_equal(owner_stat(f->o).paced, 0);
	owner_die(f->o);
}

/* Commits as fast as one thread can, for `time`. Returns how long the commits waited. */
static uint64_t hurry(struct fixture *f, uint64_t time)
{
	const uint64_t until = f->o->d->now + time;
	uint64_t waited = 0;

	while (f->o->d->now < until) {
		const uint64_t start = f->o->d->now;

		assert_int_equal(put_big(f, 0, LENGTH, 1), 0);
		if (f->o->d->now - start > MS)
			waited += f->o->d->now - start;
		keep_on(f->o, 3 * MS);
	}
	return waited;
}

/* The copy that goes on after two that broke, once commits wait for it. */
static void work_until_waited(struct fixture *f)
{
	work_until_broken(f, 2);
	for (unsigned i = 0; !broken(f)->waited_commit_count; i++) {
		assert_true(i < LONG);
		work(f, i);
	}
}

/* The third copy makes no progress from the beginning. */
TEST(test_no_commit_waits_for_a_copy_that_never_moves, struct fixture *f)
{
	work_until_broken(f, 2);
	slow_link.stuck = true;
	work_until_broken(f, 3);
	assert_int_equal(broken(f)->waited_commit_count, 0);
	slow_link.stuck = false;
	assert_catches_up(f, 1);
}

/* The copy pauses for an hour after its first chunk, as resync_rate has it, while the mirror lags
 * more and more. */
TEST(test_no_commit_waits_for_a_copy_that_pauses, struct fixture *f)
{
	work_until_broken(f, 2);
	f->o->p->options.resync_rate = 36;
	for (unsigned i = 0; !ps_pace_copy_lags(f->o->p, &f->o->p->mirrors[1]); i++) {
		assert_true(i < LONG);
		work(f, i);
	}
	for (unsigned i = 0; i < 20; i++)
		work(f, i);
	assert_int_equal(broken(f)->waited_commit_count, 0);
	assert_true(ps_pace_copy_lags(f->o->p, &f->o->p->mirrors[1]));
	owner_die(f->o);
}

/* The link carries nothing any more: commits may have begun to wait before, and wait once more
 * until the mirror is dropped. */
TEST(test_commits_do_not_wait_for_a_copy_that_is_stuck, struct fixture *f)
{
	const uint64_t most = f->o->p->options.pace_ms * MS;
	uint64_t waited = 0;

	work_until_waited(f);
	slow_link.stuck = true;
	for (unsigned i = 0; broken(f)->broken_copy_count < 3; i++) {
		const uint64_t took = work(f, i);

		assert_true(i < LONG);
		waited += took > MS ? took : 0;
	}
	assert_true(waited <= 2 * most + most / 8);
	assert_int_equal(owner_stat(f->o).dropped, 3);
	slow_link.stuck = false;
	assert_catches_up(f, 1);
}

/* For status and metrics. */
TEST(test_mirrors_are_told_how_many_commits_waited, struct fixture *f)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	struct why why;

	work_until_waited(f);
	keep_on(f->o, SECOND);
	assert_int_equal(store_status(f->o->d->mirrors[0].stores, STORE, &status, &why), 0);
	assert_non_null(status.mirrors[1]->broken);
	assert_int_equal(status.mirrors[1]->broken->waited, broken(f)->waited_commit_count);
	owner_die(f->o);
}

static int put_without_blocking(struct fixture *f)
{
	perseas_tx_t *tx;
	int rc;

	assert_int_equal(perseas_begin(f->o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, f->big, 1), 0);
	rc = perseas_commit(tx, PERSEAS_NOWAIT | PERSEAS_NOBLOCK);
	if (rc)
		perseas_abort(tx);
	return rc;
}

/* Others wait for the copy at the same time. */
TEST(test_a_commit_that_must_not_block_does_not_wait, struct fixture *f)
{
	uint64_t waited, start;

	work_until_waited(f);
	while (!ps_pace_copy_lags(f->o->p, &f->o->p->mirrors[1]) ||
	       f->o->d->now < broken(f)->commit_pauses.commits_run_until)
		work(f, 0);
	waited = broken(f)->waited_commit_count;
	start = f->o->d->now;
	assert_int_equal(put_without_blocking(f), 0);
	assert_true(f->o->d->now - start < MS);
	assert_int_equal(broken(f)->waited_commit_count, waited);
	work(f, 0);
	assert_int_equal(broken(f)->waited_commit_count, waited + 1);
	owner_die(f->o);
}

static void hurry_until_waited(struct fixture *f)
{
	for (unsigned i = 0; !broken(f)->waited_commit_count; i++) {
		assert_true(i < LONG);
		hurry(f, 20 * MS);
	}
}

/* All that the link lacks cannot be had by waiting for half of the time: no more is waited. */
TEST_WITH(test_commits_wait_for_half_of_the_time, setup_large_ring, teardown, struct fixture *f)
{
	const uint64_t most = f->o->p->options.pace_ms * MS;
	uint64_t waited;

	hurry_until_waited(f);
	waited = hurry(f, 2 * SECOND);
	assert_int_equal(owner_state(f->o, 1), PERSEAS_MIRROR_RESYNCING);
	assert_true(waited >= SECOND / 2 && waited <= SECOND + most);
	owner_die(f->o);
}

static unsigned slept;

/* A sleeping committer wakes a second late, and the copy goes on meanwhile. */
static void oversleep(void *arg)
{
	struct owner *o = arg;

	slept++;
	o->d->on_pause = NULL;
	keep_on(o, SECOND);
	o->d->on_pause = oversleep;
}

/* Commits wait again by then. */
TEST_WITH(test_a_commit_that_wakes_late_does_not_wait_again, setup_large_ring, teardown,
          struct fixture *f)
{
	hurry_until_waited(f);
	hurry(f, SECOND);
	f->o->d->on_pause_arg = f->o;
	for (slept = 0; !slept;) {
		keep_on(f->o, 3 * MS);
		f->o->d->on_pause = oversleep;
		assert_int_equal(put_big(f, 0, LENGTH, 1), 0);
		f->o->d->on_pause = NULL;
	}
	assert_int_equal(slept, 1);
	assert_true(ps_pace_copy_lags(f->o->p, &f->o->p->mirrors[1]));
	owner_die(f->o);
}
