/*
 * test_heard.c - signs of life. Those of an owner begin with the grant of a claim: an open then
 * still waits for other mirrors, and a mirror that gets no sign of life would soon give the store
 * to another owner. Those of a mirror are asked for as soon as commits count on it.
 */
#include "owner.h"

#include "../../client/core/event.h"
#include "../support/mirror.h"

#define MS ((uint64_t)1000000)

enum { MIRRORS = 3, TIMEOUT_MS = 100 };

/* When signs of life were asked for at each mirror first, and how often they are due. */
static struct {
	struct ps_env_ops ops;
	struct direct *d;
	struct perseas *p;
	bool locked; /* it was looked for silence under the lock */
	uint64_t at[MIRRORS], every[MIRRORS];
	uint64_t limit[MIRRORS];         /* how long each mirror may be silent */
	const struct ps_control *silent; /* the session of a mirror that is; NULL: none */
} signs;

static const struct ps_env_ops *real;
static struct ps_control *dialled[MIRRORS];

static struct ps_control *note_connect(struct ps_env *env, const struct ps_address *address,
                                       struct ps_error *error)
{
	/* The session before is over, and its memory may serve this one. */
	signs.silent = NULL;
	return dialled[atoi(address->port)] = real->connect(env, address, error);
}

static void note_beat(struct ps_control *control, uint64_t every_ns)
{
	for (unsigned i = 0; i < MIRRORS; i++) {
		if (dialled[i] != control)
			continue;
		signs.at[i] = signs.at[i] ? signs.at[i] : signs.d->now;
		signs.every[i] = every_ns;
	}
}

static void note_limit(struct ps_control *control, uint64_t limit_ns)
{
	for (unsigned i = 0; i < MIRRORS; i++)
		if (dialled[i] == control)
			signs.limit[i] = limit_ns;
}

/* A commit must never wait for what a look at a connection waits for. */
static bool is_silent(struct ps_control *control)
{
	if (pthread_mutex_trylock(&signs.p->lock))
		signs.locked = true;
	else
		pthread_mutex_unlock(&signs.p->lock);
	return signs.silent == control;
}

static bool is_over(struct ps_control *control)
{
	return signs.silent == control || signs.ops.silent(control) || real->ended(control);
}

static struct ps_env *listening_env(struct direct *d)
{
	struct ps_env *env = direct_env(d);

	memset(&signs, 0, sizeof(signs));
	signs.d = d;
	real = env->ops;
	signs.ops = *real;
	signs.ops.connect = note_connect;
	signs.ops.beat = note_beat;
	signs.ops.expect_heartbeats = note_limit;
	signs.ops.silent = is_silent;
	signs.ops.ended = is_over;
	env->ops = &signs.ops;
	return env;
}

static int setup_three(void **state)
{
	struct owner *o;

	if (owner_setup(state, MIRRORS, 2))
		return -1;
	o = *state;
	owner_close(o);
	for (unsigned i = 0; i < MIRRORS; i++)
		stores_set_owner_timeout(o->d->mirrors[i].stores, TIMEOUT_MS);
	return 0;
}

struct unit_fixture unit_fixture = { setup_three, owner_teardown };

static void open_slowly(struct owner *o, uint64_t slow_ns)
{
	o->d->mirrors[0].slow_at = PERSEAS__REQUEST__BODY_CLAIM;
	o->d->mirrors[0].slow_ns = slow_ns;
	if (ps_open(listening_env(o->d), STORE, direct_list(o->d), &o->options, &o->p, &o->error))
		fail_msg("%s", o->error.text);
	signs.p = o->p;
}

/* One mirror recovers its image, or takes it away from an owner, before it grants the claim. */
TEST(a_mirror_that_granted_hears_while_another_works, struct owner *o)
{
	const uint64_t start = o->d->now, slow = 2000 * MS;

	open_slowly(o, slow);
	assert_true(o->d->now - start >= slow);
	for (unsigned i = 1; i < MIRRORS; i++) {
		assert_in_range(signs.at[i] - start, 1, TIMEOUT_MS * MS / 4);
		assert_int_equal(signs.every[i], TIMEOUT_MS * MS / 4);
	}
	assert_in_range(signs.at[0] - start, slow, slow + TIMEOUT_MS * MS / 4);
}

/* Two mirrors that are needed both take long: the first to grant hears signs of life at once. */
TEST(the_first_of_two_that_work_long_hears_at_once, struct owner *o)
{
	const uint64_t slow = 5000 * MS, start = o->d->now;

	direct_crash(o->d, 2);
	o->d->mirrors[1].slow_at = PERSEAS__REQUEST__BODY_CLAIM;
	o->d->mirrors[1].slow_ns = 4000 * MS;
	open_slowly(o, slow);
	assert_true(o->d->now - start >= slow);
	assert_in_range(signs.at[1] - start, 4000 * MS, 4000 * MS + TIMEOUT_MS * MS / 4);
}

/* The same for a session that is taken up again. */
TEST(it_hears_when_its_session_is_taken_up_again, struct owner *o)
{
	open_slowly(o, 0);
	memset(signs.at, 0, sizeof(signs.at));
	direct_cut(o->d, 1);
	direct_keep(o->d, o->p);
	direct_keep(o->d, o->p);
	assert_true(signs.at[1] > 0);
	assert_int_equal(signs.every[1], TIMEOUT_MS * MS / 4);
}

/* --- of mirrors --- */

static void expect_limits(uint64_t limit_ns)
{
	for (unsigned i = 0; i < MIRRORS; i++)
		assert_int_equal(signs.limit[i], limit_ns);
}

TEST(a_mirror_may_be_silent_for_three_seconds, struct owner *o)
{
	open_slowly(o, 0);
	expect_limits(3000 * MS);
}

TEST(a_mirror_may_be_silent_as_long_as_is_said, struct owner *o)
{
	o->options.mirror_timeout_ms = 100;
	open_slowly(o, 0);
	expect_limits(100 * MS);
	memset(signs.limit, 0, sizeof(signs.limit));
	direct_cut(o->d, 1);
	direct_keep(o->d, o->p);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	assert_int_equal(signs.limit[1], 100 * MS);
	assert_int_equal(signs.limit[0], 0);
}

TEST(nobody_listens_where_that_is_switched_off, struct owner *o)
{
	o->options.mirror_timeout_ms = UINT32_MAX;
	open_slowly(o, 0);
	expect_limits(0);
}

TEST(less_than_a_busy_host_needs_is_refused, struct owner *o)
{
	o->options.mirror_timeout_ms = 99;
	assert_int_equal(ps_open(listening_env(o->d), STORE, direct_list(o->d), &o->options, &o->p,
	                         &o->error),
	                 PERSEAS_EINVAL);
	assert_error_says(o, "mirror_timeout_ms 99");
	o->p = NULL;
}

static char last_event[256];

static void note_event(void *arg, const struct perseas_event *event)
{
	(void)arg;
	if (event->kind == PERSEAS_EVENT_MIRROR_DOWN)
		snprintf(last_event, sizeof(last_event), "%s", event->text);
}

/* Its session is over, and taken up again from where it stands. */
TEST(a_silent_mirror_is_left_and_taken_up_again, struct owner *o)
{
	o->options.on_event = note_event;
	open_slowly(o, 0);
	owner_map(o);
	assert_int_equal(owner_put(o, 0, 8, 1), 0);
	signs.limit[1] = 0;
	signs.silent = dialled[1];
	direct_keep_after(o->d, o->p, 1);
	ps_events_deliver(o->p);
	assert_false(signs.locked);
	assert_non_null(strstr(last_event, "it has said nothing for 3000 ms"));
	assert_int_equal(o->p->commit.stat.reconnects, 1);
	assert_int_equal(owner_put(o, 0, 8, 2), 0);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	assert_int_equal(o->p->mirrors[1].acked_seq, o->p->commit.seq);
	assert_int_equal(signs.limit[1], 3000 * MS);
}

static uint64_t silent_from;

/* Words that arrived earlier and were not read count as just heard. */
static bool falls_silent(struct ps_control *control)
{
	return control == dialled[1] && signs.d->now >= silent_from && !real->answered(control);
}

/* A mirror that completes nothing is given up while a call waits that holds commits back. */
TEST(a_silent_mirror_holds_nobody_up_who_waits_for_it, struct owner *o)
{
	uint64_t start;
	void *addr;

	open_slowly(o, 0);
	owner_map(o);
	/* The mirror is asked whether it still knows this owner. */
	direct_keep(o->d, o->p);
	assert_true(real->answered(dialled[1]));
	o->d->mirrors[1].hold = DIRECT_HOLD_COMPLETIONS;
	assert_int_equal(owner_put(o, 0, 8, 1), 0);
	signs.ops.silent = falls_silent;
	start = o->d->now;
	silent_from = start + 200 * MS;
	assert_int_equal(perseas_map(o->p, "more", SIZE, &addr), 0);
	assert_in_range(o->d->now - start, 200 * MS, 300 * MS);
	assert_int_not_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	o->d->mirrors[1].hold = DIRECT_HOLD_NOTHING;
	signs.ops.silent = is_silent;
}
