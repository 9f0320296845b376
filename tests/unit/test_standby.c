/*
 * test_standby.c - a standby inside a process waits for owners that are other processes, on mirrors
 * that are processes, too, and that come and go.
 */
#include "standby_rig.h"

struct unit_fixture unit_fixture = { setup_tcp, teardown_standby };

/* --- waiting --- */

TEST(a_store_without_an_owner_is_opened, struct rig *rig)
{
	perseas_standby_t *s = begin(rig);

	become_owner(rig, s);
	assert_int_equal(rig_wrong(rig), 0);
	assert_int_equal(rig_put(rig, 100, 8, 1), 0);
	close_standby();
	assert_int_equal(rig_put(rig, 100, 8, 2), 0);
}

/* Killed, it leaves what it committed. */
TEST(who_dies_is_followed_by_the_standby, struct rig *rig)
{
	perseas_standby_t *s = begin_behind_owner(rig);
	struct perseas_standby_stat stat;

	assert_int_equal(perseas_standby_stat(s, &stat), 0);
	assert_int_equal(stat.epoch, 2);
	assert_true(*stat.owner && strstr(stat.text, "its owner lives"));
	assert_int_equal(stat.mirrors, MIRRORS);
	assert_int_equal(stat.reached, MIRRORS);
	assert_string_equal(stat.warning, "");
	assert_false(can_read(s, 0));
	take_over(rig, s);
	assert_int_equal(rig->bytes[0], 42);
	assert_int_equal(rig_put(rig, 0, 8, 43), 0);
	assert_int_equal(perseas_standby_stat(s, &stat), 0);
	assert_int_equal(stat.state, PERSEAS_STANDBY_IDLE);
}
TEST_ALSO(who_dies_is_followed_by_the_standby, setup_shared, teardown_standby);

/* Nothing of it is opened again: the mirrors have one session of this process each. */
TEST(connections_are_those_of_before, struct rig *rig)
{
	perseas_standby_t *s = begin_behind_owner(rig);

	kill_owner();
	await_state(s, PERSEAS_STANDBY_DUE);
	for (unsigned i = 0; i < MIRRORS; i++) {
		pthread_mutex_lock(&s->lock);
		assert_non_null(s->follow.status_peers.controls[i]);
		pthread_mutex_unlock(&s->lock);
	}
	become_owner(rig, s);
	for (unsigned i = 0; i < MIRRORS; i++)
		assert_false(rig->p->mirrors[i].was_left_connected);
}

TEST(time_ends_a_wait, struct rig *rig)
{
	perseas_standby_t *s;

	start_owner(rig, own);
	s = begin(rig);
	wait_in_vain(rig, s, 0);
	assert_null(rig->p);
	wait_in_vain(rig, s, SHORT_MS);
	assert_non_null(strstr(perseas_message(NULL), "in time"));
	take_over(rig, s);
}

/* The standby is due, so even the shortest wait is long enough. */
TEST(what_is_due_needs_no_time, struct rig *rig)
{
	perseas_standby_t *s = begin(rig);

	assert_true(can_read(s, 20000));
	await_state(s, PERSEAS_STANDBY_DUE);
	assert_int_equal(perseas_standby_wait(s, 0, &rig->p), 0);
	assert_false(can_read(s, 0));
}

struct wait_elsewhere {
	perseas_standby_t *s;
	perseas_t *p;
};

static void *wait_for_ever(void *arg)
{
	struct wait_elsewhere *wait = arg;

	return (void *)(intptr_t)perseas_standby_wait(wait->s, -1, &wait->p);
}

static bool is_waited_for(perseas_standby_t *s)
{
	bool waits;

	pthread_mutex_lock(&s->lock);
	waits = s->can_hand_over;
	pthread_mutex_unlock(&s->lock);
	return waits;
}

/* Another thread cancels the wait. A cancel before a wait ends that wait, and no other one. */
TEST(whoever_waits_can_be_called_off, struct rig *rig)
{
	struct wait_elsewhere wait = { .s = begin_behind_owner(rig) };
	pthread_t thread;
	void *rc;

	assert_int_equal(perseas_standby_cancel(wait.s), 0);
	assert_true(can_read(wait.s, 0));
	assert_int_equal(perseas_standby_wait(wait.s, SHORT_MS, &rig->p), PERSEAS_ECANCELLED);
	assert_false(can_read(wait.s, 0));
	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &wait), 0);
	RIG_UNTIL(is_waited_for(wait.s));
	assert_int_equal(perseas_standby_wait(wait.s, -1, &rig->p), PERSEAS_EINVAL);
	assert_non_null(strstr(perseas_message(NULL), "another thread"));
	assert_int_equal(perseas_standby_cancel(wait.s), 0);
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, PERSEAS_ECANCELLED);
	assert_null(wait.p);
	wait_in_vain(rig, wait.s, SHORT_MS);
	take_over(rig, wait.s);
}

/* The store was handed to a wait that was called off: the standby goes on all the same. */
TEST(a_turn_that_is_called_off_comes_again, struct rig *rig)
{
	perseas_standby_t *s = begin(rig);

	hand_to_nobody(s);
	call_off(rig, s);
	await_state(s, PERSEAS_STANDBY_DUE);
	assert_int_equal(stat_of(s).opens, 0);
	become_owner(rig, s);
	assert_int_equal(stat_of(s).opens, 1);
}

/* Records what perseas_standby_wait returns in another thread while the previous one leaves: at the
 * end of the following thread, and at the start of the next one. */
static struct {
	perseas_standby_t *s;
	struct ps_env_ops ops;
	const struct ps_env_ops *real;
	unsigned asked;
	int said[2];
} leaving;

static void enter_meanwhile(void)
{
	struct wait_elsewhere wait = { .s = leaving.s };
	pthread_t thread;
	void *rc;

	if (leaving.asked == sizeof(leaving.said) / sizeof(leaving.said[0]))
		return;
	leaving.asked++;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &wait), 0);
	pthread_join(thread, &rc);
	leaving.said[leaving.asked - 1] = (int)(intptr_t)rc;
}

static void leaving_join(struct ps_env *env, enum ps_sleeper who)
{
	enter_meanwhile();
	leaving.real->join(env, who);
}

static int leaving_spawn(struct ps_env *env, enum ps_sleeper who, void (*fn)(void *arg), void *arg)
{
	enter_meanwhile();
	return leaving.real->spawn(env, who, fn, arg);
}

/* The store was handed to a wait that was called off, and that takes down what it was handed. */
TEST(nobody_enters_before_the_one_before_left, struct rig *rig)
{
	perseas_standby_t *s = begin(rig);

	leaving.s = s;
	leaving.asked = 0;
	hand_to_nobody(s);
	leaving.real = s->env->ops;
	leaving.ops = *leaving.real;
	leaving.ops.join = leaving_join;
	leaving.ops.spawn = leaving_spawn;
	s->env->ops = &leaving.ops;
	call_off(rig, s);
	s->env->ops = leaving.real;
	assert_int_equal(leaving.asked, 2);
	assert_int_equal(leaving.said[0], PERSEAS_EINVAL);
	assert_int_equal(leaving.said[1], PERSEAS_EINVAL);
	become_owner(rig, s);
}

/* Two threads wait again and again, while a third one calls them off. */
struct rivals {
	perseas_standby_t *s;
	atomic_bool over;
	_Atomic unsigned opened, cancelled, refused, other;
};

static void *wait_again_and_again(void *arg)
{
	struct rivals *rivals = arg;

	while (!atomic_load(&rivals->over)) {
		perseas_t *p;
		const int rc = perseas_standby_wait(rivals->s, 1000, &p);

		if (!rc)
			perseas_close(p);
		rivals->opened += rc == 0;
		rivals->cancelled += rc == PERSEAS_ECANCELLED || rc == PERSEAS_ETIMEOUT;
		rivals->refused += rc == PERSEAS_EINVAL;
		rivals->other += rc != 0 && rc != PERSEAS_ECANCELLED && rc != PERSEAS_ETIMEOUT &&
		                 rc != PERSEAS_EINVAL;
	}
	return NULL;
}

TEST(rivals_do_each_other_no_harm, struct rig *rig)
{
	struct rivals rivals = { .s = begin(rig) };
	pthread_t threads[2];
	unsigned seed = 1;

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_again_and_again, &rivals),
		                 0);
	for (unsigned i = 0; i < 400; i++) {
		poll(NULL, 0, (int)(rand_r(&seed) % 4));
		assert_int_equal(perseas_standby_cancel(rivals.s), 0);
	}
	atomic_store(&rivals.over, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_true(rivals.opened + rivals.cancelled > 0);
	assert_int_equal(rivals.other, 0);
}

/* Once the store is closed again, or lost. */
TEST(a_standby_can_be_used_again, struct rig *rig)
{
	perseas_standby_t *s = begin(rig);

	for (unsigned i = 0; i < 3; i++) {
		become_owner(rig, s);
		assert_int_equal(rig_put(rig, 0, 8, (uint8_t)i), 0);
		end_owner(rig);
	}
	start_owner(rig, own);
	wait_in_vain(rig, s, SHORT_MS);
	take_over(rig, s);
	assert_int_equal(rig->bytes[0], 42);
}

TEST(those_of_a_higher_order_wait_longer, struct rig *rig)
{
	struct perseas_options options = standby_options();
	perseas_standby_t *s;

	options.order = 1000;
	s = begin_with(STORE, rig->list, &options);
	await_state(s, PERSEAS_STANDBY_FREE);
	wait_in_vain(rig, s, SHORT_MS);
}

/* --- others who want it --- */

/* Both are at it when the owner dies. Each has the store once, and no change is lost. */
TEST(of_two_standbys_one_waits_on, struct rig *rig)
{
	for (unsigned i = 0; i < 3; i++) {
		pid_t both[2];

		start_owner(rig, own);
		both[0] = start_process(rig, own_in_turn);
		both[1] = start_process(rig, own_in_turn);
		kill_owner();
		assert_int_equal(status_of_process(both[0]), 0);
		assert_int_equal(status_of_process(both[1]), 0);
		assert_int_equal(rig_open(rig, 0, 0), 0);
		assert_int_equal(rig_map(rig), 0);
		assert_int_equal(rig->bytes[0], 44);
		end_owner(rig);
	}
}
TEST_ALSO(of_two_standbys_one_waits_on, setup_shared, teardown_standby);

/* The standby wrongly believes that the owner is gone. The mirrors know better: nobody is fenced,
 * and the standby waits until the owner is really gone. */
TEST(whoever_is_wrong_is_refused, struct rig *rig)
{
	struct wait_elsewhere wait = { 0 };
	perseas_standby_t *s;
	pthread_t thread;
	void *rc;

	assert_int_equal(rig_open(rig, 0, 0), 0);
	assert_int_equal(rig_map(rig), 0);
	wait.s = s = begin(rig);
	await_state(s, PERSEAS_STANDBY_OWNED);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &wait), 0);
	RIG_UNTIL(is_waited_for(s));
	pthread_mutex_lock(&s->lock);
	s->stat.state = PERSEAS_STANDBY_DUE;
	pthread_mutex_unlock(&s->lock);
	s->env->ops->wake(s->env, PS_KEEPER);
	RIG_UNTIL(stat_of(s).opens == 1);
	await_state(s, PERSEAS_STANDBY_OWNED);
	assert_int_equal(rig_put(rig, 0, 8, 7), 0);
	end_owner(rig);
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, 0);
	rig->p = wait.p;
	assert_int_equal(rig_map(rig), 0);
	assert_int_equal(rig->bytes[0], 7);
}

/* A standby whose mirrors answer each claim with BUSY: they have no live owner, and rest on
 * something that no look shows. Its handle is another one for each open. */
static struct {
	perseas_standby_t *s;
	struct ps_env_ops own, opens; /* of the standby, and of its handles */
	const struct ps_env_ops *own_real, *opens_real;
} busy;

static int busy_receive(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply,
                        int *fds, unsigned *count, struct ps_error *error)
{
	const int rc = busy.opens_real->receive(control, until_ns, reply, fds, count, error);

	if (!rc && (*reply)->body_case == PERSEAS__REPLY__BODY_CLAIM)
		(*reply)->status = PERSEAS__STATUS__STATUS_BUSY;
	return rc;
}

static int busy_spawn(struct ps_env *env, enum ps_sleeper who, void (*fn)(void *arg), void *arg)
{
	struct ps_env *opens = busy.s->p->env;

	busy.opens_real = opens->ops;
	busy.opens = *busy.opens_real;
	busy.opens.receive = busy_receive;
	opens->ops = &busy.opens;
	return busy.own_real->spawn(env, who, fn, arg);
}

/* Each open raises the epoch of every mirror: they are few, however it fails. */
TEST(who_is_refused_again_and_again_rests, struct rig *rig)
{
	perseas_standby_t *s = busy.s = begin(rig);

	busy.own_real = s->env->ops;
	busy.own = *busy.own_real;
	busy.own.spawn = busy_spawn;
	s->env->ops = &busy.own;
	/* Its first handle is taken down; those that follow are refused. */
	hand_to_nobody(s);
	call_off(rig, s);
	wait_in_vain(rig, s, 1000);
	assert_in_range(stat_of(s).opens, 1, 5);
	/* However slow the host is, it goes on. */
	while (stat_of(s).opens < 2)
		wait_in_vain(rig, s, 1000);
	s->env->ops = busy.own_real;
	ps_standby_thread_end(s);
	become_owner(rig, s);
}

/* --- planned handovers --- */

/* A standby of perseas run, as the mirrors see it. */
static void stand_by_as_beta(struct rig *rig, struct asker *as)
{
	static uint8_t mark[PS_OWNER_MARK] = { 7 };
	Perseas__WatchRequest ask = PERSEAS__WATCH_REQUEST__INIT;
	Perseas__Standby beta = PERSEAS__STANDBY__INIT;
	const Perseas__Request request = PS_REQUEST(watch, WATCH, &ask);

	beta.name = (char *)(uintptr_t) "beta";
	beta.mark = (ProtobufCBinaryData){ sizeof(mark), mark };
	ask.store = (char *)(uintptr_t)STORE;
	ask.epoch = rig->p->epoch;
	ask.live = true;
	ask.standby = &beta;
	asker_begin(as, rig);
	for (unsigned i = 0; i < MIRRORS; i++)
		assert_true(ps_peers_send(&as->peers, i, &request));
}

/* Moves the store to standby beta as perseas move does. */
static void move_to_beta(struct rig *rig)
{
	struct asker asker;

	asker_begin(&asker, rig);
	RIG_UNTIL(is_told_of(&asker, "beta"));
	move_to(&asker, "beta");
	asker_end(&asker);
}

/* The process is the COMMAND of the named standby, which the mirrors still show. */
TEST(who_is_started_by_the_one_that_is_named_goes, struct rig *rig)
{
	struct asker beta;
	perseas_standby_t *s;

	assert_int_equal(rig_open(rig, 0, 0), 0);
	stand_by_as_beta(rig, &beta);
	move_to_beta(rig);
	setenv(PS_INHERITED_VARIABLE, "mark 07000000\n", 1);
	s = begin(rig);
	await_state(s, PERSEAS_STANDBY_OWNED);
	end_owner(rig);
	assert_int_equal(perseas_standby_wait(s, PS_TURN_YIELD_MS - PS_TURN_YIELD_LOOK_MS, &rig->p),
	                 0);
	unsetenv(PS_INHERITED_VARIABLE);
	asker_end(&beta);
	close_standby();
}

/* The store is left to beta by a standby that follows it, and by an owner that released it and
 * waits again at once. After beta is gone, neither has to. */
TEST(a_store_is_left_to_whom_it_is_handed_over, struct rig *rig)
{
	struct asker beta;
	perseas_standby_t *s;

	assert_int_equal(rig_open(rig, 0, 0), 0);
	assert_int_equal(rig_map(rig), 0);
	s = begin(rig);
	await_state(s, PERSEAS_STANDBY_OWNED);
	for (unsigned i = 0; i < 2; i++) {
		stand_by_as_beta(rig, &beta);
		move_to_beta(rig);
		end_owner(rig);
		/* Mirrors may take a while to tell that it has no owner. */
		do
			wait_in_vain(rig, s, 300);
		while (stat_of(s).state != PERSEAS_STANDBY_FREE);
		wait_in_vain(rig, s, SHORT_MS);
		assert_non_null(strstr(perseas_message(NULL), "handed over to standby 'beta'"));
		asker_end(&beta);
		become_owner(rig, s);
	}
	close_standby();
}

/* --- mirrors that come and go --- */

TEST(mirrors_may_be_started_again_meanwhile, struct rig *rig)
{
	perseas_standby_t *s = begin_behind_owner(rig);
	struct perseas_standby_mirror mirror;

	rig_kill(&rig->mirrors[1]);
	RIG_UNTIL(stat_of(s).reached == 1);
	assert_int_equal(perseas_standby_mirror(s, 0, &mirror), 0);
	assert_true(mirror.reached && !*mirror.trouble);
	assert_int_equal(perseas_standby_mirror(s, 1, &mirror), 0);
	assert_true(!mirror.reached && *mirror.trouble);
	assert_int_equal(perseas_standby_mirror(s, 2, &mirror), PERSEAS_EINVAL);
	kill_owner();
	/* W is both of them. */
	await_state(s, PERSEAS_STANDBY_UNKNOWN);
	wait_in_vain(rig, s, SHORT_MS);
	rig_start(&rig->mirrors[1]);
	become_owner(rig, s);
	assert_int_equal(rig->bytes[0], 42);
}

/* The mirrors do not run yet. */
TEST(mirrors_may_come_later, struct rig *rig)
{
	perseas_standby_t *s;

	rig_kill(&rig->mirrors[0]);
	rig_kill(&rig->mirrors[1]);
	s = begin(rig);
	wait_in_vain(rig, s, SHORT_MS);
	rig_start(&rig->mirrors[0]);
	rig_start(&rig->mirrors[1]);
	become_owner(rig, s);
}
