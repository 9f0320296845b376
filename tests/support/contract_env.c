/*
 * contract_env.c - the clauses of the env's contract. test_contract_env.c runs each on the real
 * env and on the simulator's. No clause may use what is not in client/core/env.h.
 */
#include "contract_env.h"

#include "../../client/host/asked.h"

#include <stdatomic.h>
#include <string.h>

#define FAR 20000000000ULL /* ns: longer than anything here takes */

static uint64_t now(struct stage *s)
{
	return s->env->ops->now(s->env);
}

static struct ps_control *dial(struct stage *s)
{
	return s->env->ops->connect(s->env, &s->mirror, NULL);
}

static int ask(struct stage *s, struct ps_control *control)
{
	struct ps_error error = { 0 };
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	int rc;

	status.store = (char *)(uintptr_t) "none";
	request.body_case = PERSEAS__REQUEST__BODY_STATUS;
	request.status = &status;
	rc = s->env->ops->send(control, &request, &error);
	return rc == error.code && !rc == !error.text[0] ? rc : -1;
}

/* The id of the refusal that comes, or a code. */
static int64_t take(struct stage *s, struct ps_control *control, uint64_t until_ns)
{
	struct ps_error error = { 0 };
	int fds[PS_REGIONS_MAX];
	Perseas__Reply *reply;
	unsigned count = 1;
	int64_t id;
	int rc = s->env->ops->receive(control, until_ns, &reply, fds, &count, &error);

	if (rc)
		return rc == error.code && error.text[0] && !reply ? rc : 0;
	id = count || reply->status == PERSEAS__STATUS__STATUS_OK ? 0 : (int64_t)reply->id;
	perseas__reply__free_unpacked(reply, NULL);
	return id;
}

/* Returns true if the connection refuses with this code however often it is tried. */
static bool is_shut(struct stage *s, struct ps_control *control, int code)
{
	for (unsigned i = 0; i <= 2 * PS_ASKED_MAX; i++)
		if (ask(s, control) != code)
			return false;
	return take(s, control, now(s) + FAR) == code && s->env->ops->ended(control);
}

/* Sleeps for `ns` in as many pauses as it takes: each may end early. */
static void rest(struct stage *s, enum ps_sleeper who, uint64_t ns)
{
	const uint64_t until = now(s) + ns;

	while (now(s) < until)
		s->env->ops->pause(s->env, who, NULL, 0, until);
}

static void answers_come_in_order(struct stage *s)
{
	struct ps_control *control = dial(s);

	CHECK(control);
	for (unsigned i = 0; i < 3; i++)
		CHECK(!ask(s, control));
	for (int64_t id = 1; id <= 3; id++)
		CHECK(take(s, control, now(s) + FAR) == id);
	CHECK(!s->env->ops->ended(control));
	CHECK(!ask(s, control));
	CHECK(take(s, control, now(s) + FAR) == 4);
	s->env->ops->disconnect(control);
	s->env->ops->disconnect(NULL);
}

static void what_came_in_time_counts_later(struct stage *s)
{
	struct ps_control *control = dial(s);
	const uint64_t until = now(s) + FAR;

	CHECK(!ask(s, control));
	while (!s->env->ops->answered(control) && now(s) < until)
		rest(s, PS_KEEPER, s->short_ns / 100);
	CHECK(s->env->ops->answered(control));
	CHECK(take(s, control, now(s) - 1) == 1);
	s->env->ops->disconnect(control);
}

static void a_late_answer_answers_nothing(struct stage *s)
{
	struct ps_control *control = dial(s);
	const uint64_t until = now(s) + s->short_ns;

	s->hold(s);
	CHECK(!ask(s, control));
	CHECK(!s->env->ops->answered(control));
	CHECK(!s->env->ops->ended(control));
	CHECK(take(s, control, until) == PERSEAS_EUNREACHABLE);
	CHECK(now(s) >= until);
	CHECK(s->env->ops->ended(control));
	s->let_go(s, 1);
	CHECK(s->env->ops->answered(control));
	CHECK(take(s, control, now(s) + s->short_ns) == PERSEAS_EUNREACHABLE);
	/* Nor is it taken for the answer to the next request. */
	CHECK(is_shut(s, control, PERSEAS_EUNREACHABLE));
	s->env->ops->disconnect(control);
}

/* Runs next to the thread that waits: each sign of progress comes in time, and the answer long
 * after the limit. */
static void work_slowly(void *arg)
{
	struct stage *s = arg;

	/* Often enough that a host with other work on it does not make one late. */
	for (uint64_t done = 1; done <= 10; done++) {
		rest(s, PS_COMMITTER, s->short_ns / 5);
		s->sign(s, done);
	}
	rest(s, PS_COMMITTER, s->short_ns / 5);
	s->let_go(s, 1);
}

static void signs_of_progress_give_it_as_long_again(struct stage *s)
{
	struct ps_control *control = dial(s);
	uint64_t begun;

	s->hold(s);
	CHECK(!ask(s, control));
	begun = now(s);
	CHECK(!s->env->ops->spawn(s->env, PS_COLLECTOR, work_slowly, s));
	CHECK(take(s, control, begun + s->short_ns) == 1);
	CHECK(now(s) >= begun + 2 * s->short_ns);
	s->env->ops->join(s->env, PS_COLLECTOR);
	CHECK(!s->env->ops->ended(control));
	s->env->ops->disconnect(control);
}

static void a_sign_is_no_answer(struct stage *s)
{
	struct ps_control *control = dial(s);

	s->hold(s);
	CHECK(!ask(s, control));
	s->sign(s, 1);
	CHECK(!s->env->ops->answered(control));
	CHECK(!s->env->ops->ended(control));
	CHECK(take(s, control, now(s) + s->short_ns) == PERSEAS_EUNREACHABLE);
	s->let_go(s, 1);
	s->env->ops->disconnect(control);
}

static void a_sign_without_progress_ends_it(struct stage *s)
{
	struct ps_control *control = dial(s);

	s->hold(s);
	CHECK(!ask(s, control));
	s->sign(s, 5);
	s->sign(s, 5);
	CHECK(take(s, control, now(s) + FAR) == PERSEAS_EPROTOCOL);
	CHECK(is_shut(s, control, PERSEAS_EPROTOCOL));
	s->env->ops->disconnect(control);
}

static void what_nobody_asked_ends_it(struct stage *s)
{
	struct ps_control *control = dial(s);

	CHECK(!ask(s, control));
	CHECK(take(s, control, now(s) + FAR) == 1);
	CHECK(!s->env->ops->ended(control));
	s->stray(s);
	CHECK(s->env->ops->ended(control));
	s->env->ops->disconnect(control);

	control = dial(s);
	s->hold(s);
	CHECK(!ask(s, control));
	s->stray(s);
	CHECK(take(s, control, now(s) + FAR) == PERSEAS_EPROTOCOL);
	CHECK(is_shut(s, control, PERSEAS_EPROTOCOL));
	s->env->ops->disconnect(control);
}

static void the_end_is_noticed(struct stage *s)
{
	struct ps_control *control = dial(s);
	struct pollfd fd = { .events = POLLIN };
	const uint64_t until = now(s) + FAR;

	CHECK(!ask(s, control));
	CHECK(take(s, control, now(s) + FAR) == 1);
	fd.fd = s->env->ops->control_fd(control);
	CHECK(fd.fd >= 0);
	s->end(s);
	s->env->ops->pause(s->env, PS_KEEPER, &fd, 1, until);
	CHECK(now(s) < until);
	CHECK(s->env->ops->ended(control));
	if (!ask(s, control))
		CHECK(take(s, control, now(s) + FAR) == PERSEAS_EUNREACHABLE);
	CHECK(s->env->ops->ended(control));
	s->env->ops->disconnect(control);
}

/* A busy owner that goes on asking must not fill the requests in flight. */
static void what_is_over_takes_no_request(struct stage *s)
{
	struct ps_control *control = dial(s);

	CHECK(!ask(s, control));
	CHECK(take(s, control, now(s) + FAR) == 1);
	s->end(s);
	if (!ask(s, control))
		CHECK(take(s, control, now(s) + FAR) == PERSEAS_EUNREACHABLE);
	CHECK(is_shut(s, control, PERSEAS_EUNREACHABLE));
	s->env->ops->disconnect(control);
}

static void nobody_there_is_told_by_send_or_receive(struct stage *s)
{
	struct ps_control *control = s->env->ops->connect(s->env, &s->nobody, NULL);

	CHECK(control);
	if (!ask(s, control))
		CHECK(take(s, control, now(s) + FAR) == PERSEAS_EUNREACHABLE);
	CHECK(is_shut(s, control, PERSEAS_EUNREACHABLE));
	s->env->ops->disconnect(control);
}

static void a_wake_before_the_pause_is_not_lost(struct stage *s)
{
	const uint64_t until = now(s) + FAR;

	s->env->ops->wake(s->env, PS_KEEPER);
	s->env->ops->pause(s->env, PS_KEEPER, NULL, 0, until);
	CHECK(now(s) < until);
	s->env->ops->pause(s->env, PS_KEEPER, NULL, 0, 0);
	rest(s, PS_KEEPER, s->short_ns / 100);
}

struct sleeping {
	struct stage *stage;
	uint64_t until;
	atomic_bool told;
};

static void sleep_until_told(void *arg)
{
	struct sleeping *sleeping = arg;
	struct stage *s = sleeping->stage;

	while (!atomic_load(&sleeping->told) && now(s) < sleeping->until)
		s->env->ops->pause(s->env, PS_COMMITTER, NULL, 0, sleeping->until);
}

/* The keeper waits for answers while a commit sleeps. */
static void who_is_woken_by_nobody_takes_no_wake(struct stage *s)
{
	struct sleeping sleeping = { .stage = s, .until = now(s) + FAR };

	CHECK(!s->env->ops->spawn(s->env, PS_COLLECTOR, sleep_until_told, &sleeping));
	rest(s, PS_UNWOKEN, s->short_ns / 100);
	rest(s, PS_UNWOKEN, s->short_ns / 100);
	atomic_store(&sleeping.told, true);
	s->env->ops->wake(s->env, PS_COMMITTER);
	s->env->ops->join(s->env, PS_COLLECTOR);
	CHECK(now(s) < sleeping.until);
}

struct beside {
	struct stage *stage;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool told, returned;
};

static void tell(void *arg)
{
	struct beside *b = arg;
	struct stage *s = b->stage;

	rest(s, PS_COMMITTER, s->short_ns / 100);
	pthread_mutex_lock(&b->lock);
	b->told = true;
	s->env->ops->broadcast(s->env, &b->cond);
	pthread_mutex_unlock(&b->lock);
	rest(s, PS_COMMITTER, s->short_ns / 100);
	b->returned = true;
}

static void who_waits_is_told_and_join_waits(struct stage *s)
{
	struct beside b = { .stage = s, .lock = PTHREAD_MUTEX_INITIALIZER };
	const uint64_t until = now(s) + FAR;
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&b.cond, &monotonic);
	CHECK(!s->env->ops->spawn(s->env, PS_COLLECTOR, tell, &b));
	pthread_mutex_lock(&b.lock);
	while (!b.told && now(s) < until)
		s->env->ops->wait(s->env, &b.cond, &b.lock, until);
	pthread_mutex_unlock(&b.lock);
	CHECK(b.told && now(s) < until);
	s->env->ops->join(s->env, PS_COLLECTOR);
	CHECK(b.returned);
	CHECK(s->env->ops->barrier(s->env) || true);
	pthread_mutex_lock(&b.lock);
	s->env->ops->wait(s->env, &b.cond, &b.lock, now(s) + s->short_ns / 100);
	pthread_mutex_unlock(&b.lock);
	pthread_cond_destroy(&b.cond);
}

static void random_bytes_differ(struct stage *s)
{
	uint8_t a[PS_ID_SIZE] = { 0 }, b[PS_ID_SIZE + 2] = { 0 };

	s->env->ops->random(s->env, a, sizeof(a));
	s->env->ops->random(s->env, b + 1, PS_ID_SIZE);
	CHECK(memcmp(a, b + 1, PS_ID_SIZE) != 0);
	CHECK(b[0] + b[PS_ID_SIZE + 1] == 0);
	CHECK(s->env->ops->clock(s->env) <= s->env->ops->clock(s->env));
}

#define CLAUSE(name)        \
	{                   \
#name, name \
	}

/* The mirror gives signs of life for longer than it may be silent, and then stops. */
static void silence_ends_it_and_nothing_else_does(struct stage *s)
{
	struct ps_control *control = dial(s);
	const uint64_t limit = 3 * s->short_ns; /* longer than a busy host needs */
	uint64_t until;

	CHECK(!ask(s, control));
	CHECK(take(s, control, now(s) + FAR) == 1);
	s->env->ops->expect_heartbeats(control, limit);
	until = now(s) + 3 * limit / 2;
	while (now(s) < until && !s->env->ops->ended(control))
		rest(s, PS_KEEPER, s->short_ns / 4);
	CHECK(!s->env->ops->ended(control));
	CHECK(!s->env->ops->silent(control));
	s->stop(s);
	until = now(s) + FAR;
	while (now(s) < until && !s->env->ops->ended(control))
		rest(s, PS_KEEPER, s->short_ns / 4);
	CHECK(s->env->ops->ended(control));
	CHECK(s->env->ops->silent(control));
	CHECK(ask(s, control) == PERSEAS_EUNREACHABLE);
	s->env->ops->disconnect(control);
}

static void note_thread(void *arg)
{
	struct stage *s = ((void **)arg)[0];

	*(uintptr_t *)((void **)arg)[1] = s->env->ops->thread(s->env);
}

/* A thread keeps its number, and another thread has another one. */
static void threads_have_numbers(struct stage *s)
{
	uintptr_t other = 0;
	void *arg[] = { s, &other };

	if (!s->env->ops->thread)
		return;
	CHECK(s->env->ops->spawn(s->env, PS_COLLECTOR, note_thread, arg) == 0);
	s->env->ops->join(s->env, PS_COLLECTOR);
	CHECK(other != s->env->ops->thread(s->env));
	CHECK(s->env->ops->thread(s->env) == s->env->ops->thread(s->env));
}

const struct clause env_clauses[] = {
	CLAUSE(answers_come_in_order),
	CLAUSE(what_came_in_time_counts_later),
	CLAUSE(a_late_answer_answers_nothing),
	CLAUSE(signs_of_progress_give_it_as_long_again),
	CLAUSE(a_sign_is_no_answer),
	CLAUSE(a_sign_without_progress_ends_it),
	CLAUSE(silence_ends_it_and_nothing_else_does),
	CLAUSE(what_nobody_asked_ends_it),
	CLAUSE(the_end_is_noticed),
	CLAUSE(what_is_over_takes_no_request),
	CLAUSE(nobody_there_is_told_by_send_or_receive),
	CLAUSE(a_wake_before_the_pause_is_not_lost),
	CLAUSE(who_is_woken_by_nobody_takes_no_wake),
	CLAUSE(who_waits_is_told_and_join_waits),
	CLAUSE(threads_have_numbers),
	CLAUSE(random_bytes_differ),
};
const unsigned env_clause_count = sizeof(env_clauses) / sizeof(env_clauses[0]);
