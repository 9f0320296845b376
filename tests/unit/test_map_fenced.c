/*
 * test_map_fenced.c - segments are mapped and published while another owner takes the store over,
 * which cuts the sessions of the one before: it is told that it is fenced. Where mirrors are only
 * gone, it is told that.
 */
#include "owner.h"

struct fixture {
	struct owner *o;
	perseas_t *second; /* the owner that takes over; NULL: nobody did */
};

/* The keeper goes its rounds while the call waits, which has the lock again when it goes on. */
static void keep(void *arg)
{
	struct fixture *f = arg;

	f->o->d->on_pause = NULL;
	pthread_mutex_unlock(&f->o->p->lock);
	direct_keep(f->o->d, f->o->p);
	pthread_mutex_lock(&f->o->p->lock);
	f->o->d->on_pause = keep;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->o = owner_new(3);
	owner_begin(f->o);
	/* The keeper's rounds are ten seconds apart. */
	f->o->p->options.connect_timeout_ms = 60000;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->o->d->on_pause = NULL;
	perseas_close(f->second);
	owner_free(f->o);
	free(f);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void take_over(struct fixture *f)
{
	struct perseas_options options = f->o->options;

	options.flags |= PERSEAS_TAKEOVER;
	assert_int_equal(direct_open(f->o->d, STORE, &options, &f->second, &f->o->error), 0);
}

static void wait_with_keeper(struct fixture *f)
{
	f->o->d->on_pause_arg = f;
	f->o->d->on_pause = keep;
}

TEST(test_map, struct fixture *f)
{
	void *addr;

	take_over(f);
	wait_with_keeper(f);
	assert_int_equal(perseas_map(f->o->p, "more", SIZE, &addr), PERSEAS_EFENCED);
	assert_non_null(strstr(perseas_message(f->o->p), "another owner has taken"));
	assert_null(addr);
}

TEST(test_publish, struct fixture *f)
{
	void *addr;

	assert_int_equal(perseas_map(f->o->p, "more", SIZE, &addr), 0);
	take_over(f);
	wait_with_keeper(f);
	assert_int_equal(perseas_publish(f->o->p), PERSEAS_EFENCED);
}

/* Nor is the handle then of no more use. */
TEST(test_mirrors_that_are_gone_fence_nobody, struct fixture *f)
{
	void *addr;

	direct_crash(f->o->d, 0);
	direct_crash(f->o->d, 1);
	wait_with_keeper(f);
	assert_int_equal(perseas_map(f->o->p, "more", SIZE, &addr), PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(perseas_message(f->o->p), "only 1 of 3 mirrors"));
	direct_start(f->o->d, 0);
	owner_keep(f->o, 0, PERSEAS_MIRROR_LIVE);
	f->o->d->on_pause = NULL;
	assert_int_equal(perseas_map(f->o->p, "more", SIZE, &addr), 0);
}
