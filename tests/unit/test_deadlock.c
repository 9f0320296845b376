/*
 * test_deadlock.c - threads that have turns and locks in several stores: all interleavings of two
 * and three threads, by turns. Only the thread whose wait would close a cycle is refused, and no
 * thread that could go on sleeps for ever.
 *
 * The threads are real, and one of them runs at a time. A step is one thing that a thread takes, or
 * the end of its transactions; a thread that sleeps goes on only when it is woken. A model of who
 * has what, which is reduced step by step, says whether a wait would end.
 */
#include "owner.h"

enum { STORES = 3, THREADS = 4, TAKES = 3, STEPS_MAX = 200 };

/* The things besides the locks of key 1 and 2. */
enum { TURN = 3, NOTHING };

/* A turn, or a lock, of a store. */
struct thing {
	unsigned store, key; /* TURN: its turn. NOTHING: lets all of the store go by a retry */
	bool shared;
};

struct player {
	struct thing takes[TAKES];
	unsigned count, next; /* of what it takes */
	unsigned first;       /* that it has not let go for good */
	perseas_tx_t *txs[STORES];
	uint64_t ages[STORES]; /* of these, once they have asked for a lock */
	bool has[TAKES];
	const struct thing *asks; /* it is inside of the call */
	bool retries;             /* and that is perseas_retry */
	bool asleep, woken, done;
	const pthread_cond_t *cond;
	unsigned refusals;
	pthread_t thread;
	pthread_cond_t go;
};

static struct {
	struct direct *d;
	perseas_t *stores[STORES];
	struct player players[THREADS];
	unsigned count;
	pthread_mutex_t lock;
	pthread_cond_t stepped;
	int runs;           /* the player that does, or -1 */
	const char *name;   /* of the scene */
	const char *script; /* who runs at first, a digit each; then all ways are tried */
	unsigned choices[STEPS_MAX], ways[STEPS_MAX], steps;
	unsigned long runs_made, refusals;
} w;

/* --- the model --- */

static bool excludes(const struct thing *a, const struct thing *b)
{
	return a->store == b->store && a->key == b->key && !(a->shared && b->shared);
}

/* Returns true if `other` waits for a lock that it must get before the younger `player`. */
static bool goes_first(const struct player *player, const struct player *other)
{
	const struct thing *asks = other->asks;

	return asks && !other->retries && asks->key != TURN && excludes(asks, player->asks) &&
	       other->ages[asks->store] < player->ages[asks->store];
}

/* A retry is over when the turn has come, too, and whatever was refused before may be had. */
static bool keeps_retry(const struct player *player, const struct thing *thing)
{
	for (unsigned i = player->first; i < player->next; i++)
		if (player->takes[i].store == player->asks->store &&
		    excludes(thing, &player->takes[i]))
			return true;
	return false;
}

/* Returns true if `other`, which may never go on, has something that keeps `player` waiting. */
static bool is_kept(const struct player *player, const struct player *other)
{
	const struct thing *asks = player->asks;

	if (goes_first(player, other))
		return true;
	/* A transaction never waits for an older one; it is refused. */
	if (!player->retries && asks->key != TURN &&
	    other->ages[asks->store] < player->ages[asks->store])
		return false;
	for (unsigned i = 0; i < other->count; i++)
		if (other->has[i] && (excludes(&other->takes[i], asks) ||
		                      (player->retries && keeps_retry(player, &other->takes[i]))))
			return true;
	return false;
}

/* Lets threads that wait for nobody release everything, which may free others, and so on. Returns
 * true if the player is never freed. */
static bool is_stuck(const struct player *player)
{
	bool gone[THREADS] = { false }, changed = true;

	while (changed) {
		changed = false;
		for (unsigned i = 0; i < w.count; i++) {
			bool waits = false;

			for (unsigned k = 0; k < w.count && w.players[i].asks; k++)
				waits |= k != i && !gone[k] &&
				         is_kept(&w.players[i], &w.players[k]);
			changed |= !waits && !gone[i];
			gone[i] |= !waits;
		}
	}
	return !gone[player - w.players];
}

/* Checks for any thread; cmocka's assertions work in the first one only. */
static void expect(bool is_so, const char *fault)
{
	if (is_so)
		return;
	fprintf(stderr, "%s: %s\n", w.name, fault);
	exit(1);
}

/* --- turns of the threads --- */

static struct player *running(void)
{
	return &w.players[w.runs];
}

/* The thread runs from when it is its turn. */
static void await_go(struct player *player)
{
	while (w.runs != player - w.players)
		pthread_cond_wait(&player->go, &w.lock);
	w.d->thread = (uintptr_t)(player - w.players) + 1;
}

static void give_way(struct player *player)
{
	pthread_mutex_lock(&w.lock);
	w.runs = -1;
	pthread_cond_signal(&w.stepped);
	await_go(player);
	pthread_mutex_unlock(&w.lock);
}

static void note_age(struct player *player)
{
	const unsigned store = player->asks->store;

	if (player->txs[store])
		player->ages[store] = player->txs[store]->lock_age;
}

static void sleep_here(struct direct *d)
{
	struct player *player = running();

	note_age(player);
	if (!player->retries)
		expect(!is_stuck(player), "a wait that deadlocks was not refused");
	player->asleep = true;
	player->woken = false;
	player->cond = d->waits_for;
	give_way(player);
	player->asleep = false;
}

static void wake_all(struct direct *d, const pthread_cond_t *cond)
{
	(void)d;
	for (unsigned i = 0; i < w.count; i++)
		if (w.players[i].asleep && w.players[i].cond == cond)
			w.players[i].woken = true;
}

/* --- what a thread does --- */

static void end_all(struct player *player)
{
	for (unsigned s = 0; s < STORES; s++)
		if (player->txs[s]) {
			expect(perseas_abort(player->txs[s]) == 0, "abort failed");
			player->txs[s] = NULL;
		}
	memset(player->has, 0, sizeof(player->has));
	memset(player->ages, 0, sizeof(player->ages));
}

static int mode_of(const struct thing *thing)
{
	return thing->shared ? PERSEAS_LOCK_SHARED : PERSEAS_LOCK_EXCLUSIVE;
}

static void check_refusal(const struct player *player, unsigned store, int rc)
{
	expect(rc == PERSEAS_ECONFLICT && ps_failed_by_deadlock(w.stores[store]),
	       "a thread was refused for another reason");
	expect(is_stuck(player), "a thread was refused without a cycle");
}

/* Takes back what the transaction has, and has all but the turn to be taken again. */
static int retry(struct player *player, unsigned store)
{
	int rc;

	for (unsigned i = 0; i < player->next; i++)
		if (player->takes[i].store == store)
			player->has[i] = false;
	player->retries = true;
	rc = perseas_retry(player->txs[store]);
	if (rc) {
		check_refusal(player, store, rc);
		player->txs[store] = NULL;
	}
	player->retries = false;
	for (unsigned i = 0; i < player->next && !rc; i++)
		if (player->takes[i].store == store && player->takes[i].key == TURN)
			player->has[i] = true;
	return rc;
}

/* Takes the first `count` things of a store, but those that it has. */
static int take_locks(struct player *player, unsigned store, unsigned count)
{
	int rc = 0;

	for (unsigned i = player->first; i < count && !rc; i++) {
		const struct thing *thing = &player->takes[i];

		if (thing->store != store || thing->key == TURN || player->has[i])
			continue;
		player->asks = thing;
		rc = perseas_lock(player->txs[store], thing->key, mode_of(thing));
		player->has[i] = !rc;
		note_age(player);
	}
	return rc;
}

static int take(struct player *player)
{
	const unsigned at = player->next++;
	const struct thing *thing = &player->takes[at];
	perseas_t *p = w.stores[thing->store];
	perseas_tx_t **tx = &player->txs[thing->store];
	int rc = 0;

	player->asks = thing;
	if (!*tx)
		rc = perseas_begin(p, thing->key == TURN ? PERSEAS_SERIAL : 0, tx);
	if (rc)
		check_refusal(player, thing->store, rc);
	player->has[at] = !rc && thing->key == TURN;
	if (!rc && thing->key == NOTHING) {
		rc = retry(player, thing->store);
		player->first = at + 1;
	}
	while (!rc && (rc = take_locks(player, thing->store, at + 1)) == PERSEAS_ECONFLICT) {
		if (ps_failed_by_deadlock(p))
			check_refusal(player, thing->store, rc);
		rc = retry(player, thing->store);
	}
	player->asks = NULL;
	return rc;
}

static void *play(void *arg)
{
	struct player *player = arg;

	pthread_mutex_lock(&w.lock);
	await_go(player);
	pthread_mutex_unlock(&w.lock);
	while (player->next < player->count) {
		if (take(player)) {
			player->refusals++;
			break;
		}
		give_way(player);
	}
	end_all(player);
	pthread_mutex_lock(&w.lock);
	player->done = true;
	w.runs = -1;
	pthread_cond_signal(&w.stepped);
	pthread_mutex_unlock(&w.lock);
	return NULL;
}

/* --- all interleavings --- */

static bool can_run(const struct player *player)
{
	return !player->done && (!player->asleep || player->woken);
}

/* The player whose turn it is by this run's choices; NULL: none can run. */
static struct player *choose(void)
{
	const bool scripted = w.script && w.steps < strlen(w.script);
	struct player *able[THREADS];
	unsigned count = 0;

	for (unsigned i = 0; i < w.count; i++)
		if (can_run(&w.players[i]) &&
		    (!scripted || i == (unsigned)(w.script[w.steps] - '0')))
			able[count++] = &w.players[i];
	assert_true(w.steps < STEPS_MAX);
	w.ways[w.steps] = count;
	return count ? able[w.choices[w.steps++]] : NULL;
}

static void step_all(void)
{
	struct player *player;

	pthread_mutex_lock(&w.lock);
	while ((player = choose())) {
		w.runs = (int)(player - w.players);
		pthread_cond_signal(&player->go);
		while (w.runs >= 0)
			pthread_cond_wait(&w.stepped, &w.lock);
	}
	pthread_mutex_unlock(&w.lock);
}

static void run_once(void)
{
	w.steps = 0;
	w.runs = -1;
	for (unsigned i = 0; i < w.count; i++) {
		struct player *player = &w.players[i];

		player->next = player->first = player->refusals = 0;
		player->done = player->asleep = false;
		assert_int_equal(pthread_create(&player->thread, NULL, play, player), 0);
	}
	step_all();
	for (unsigned i = 0; i < w.count; i++) {
		expect(w.players[i].done, "a thread sleeps for ever");
		pthread_join(w.players[i].thread, NULL);
		w.refusals += w.players[i].refusals;
	}
	for (unsigned s = 0; s < STORES; s++) {
		assert_false(w.stores[s]->serialization.is_turn_taken);
		assert_null(w.stores[s]->serialization.blocked_threads);
	}
	w.runs_made++;
}

/* The last choice that could have been another one is that one; false: all were made. */
static bool choose_next(void)
{
	while (w.steps) {
		w.steps--;
		if (++w.choices[w.steps] < w.ways[w.steps])
			return true;
		w.choices[w.steps] = 0;
	}
	return false;
}

static void run_all(unsigned count)
{
	w.count = count;
	memset(w.choices, 0, sizeof(w.choices));
	w.runs_made = w.refusals = 0;
	do
		run_once();
	while (choose_next());
}

/* A thread takes these things, up to the first that is none. */
static void plan(unsigned player, const struct thing *takes)
{
	struct player *who = &w.players[player];

	for (who->count = 0; who->count < TAKES && takes[who->count].key; who->count++)
		who->takes[who->count] = takes[who->count];
}

static int setup(void **state)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct ps_error error;

	w.d = direct_new(1, 1);
	options.flags = PERSEAS_CREATE;
	for (unsigned s = 0; s < STORES; s++) {
		const char names[][8] = { "a", "b", "c" };

		if (direct_open(w.d, names[s], &options, &w.stores[s], &error))
			fail_msg("%s", error.text);
	}
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.stepped, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_cond_init(&w.players[i].go, NULL);
	w.d->on_wait = sleep_here;
	w.d->on_broadcast = wake_all;
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	w.d->on_wait = NULL;
	for (unsigned s = 0; s < STORES; s++)
		perseas_close(w.stores[s]);
	direct_free(w.d);
	memset(&w, 0, sizeof(w));
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };
struct unit_fixture unit_group = { unit_limit_time, NULL };

/* How often a thread is refused, over all interleavings. */
enum refused { NEVER, SOMETIMES, IN_SOME_WAYS, IN_ALL_WAYS, HOWEVER_OFTEN };

struct scene {
	const char *name;
	struct thing takes[THREADS][TAKES];
	enum refused refused;
	const char *scripts[2];
};

/* clang-format off */
#define TURN_IN(store) { store, TURN, false }
#define RETRY_IN(store) { store, NOTHING, false }
#define LOCK(store, key) { store, key, false }
#define SHARE(store, key) { store, key, true }

static const struct scene scenes[] = {
	{ "turns in two stores, each way",
	  { { TURN_IN(0), TURN_IN(1) }, { TURN_IN(1), TURN_IN(0) } }, .refused = IN_SOME_WAYS },
	{ "turns in one order",
	  { { TURN_IN(0), TURN_IN(1) }, { TURN_IN(0), TURN_IN(1) }, { TURN_IN(0), TURN_IN(1) } },
	  .refused = NEVER },
	{ "a cycle of three turns, over as many stores",
	  { { TURN_IN(0), TURN_IN(1) }, { TURN_IN(1), TURN_IN(2) }, { TURN_IN(2), TURN_IN(0) } },
	  .refused = SOMETIMES },
	{ "a cycle of three locks",
	  { { LOCK(0, 1), LOCK(1, 1) }, { LOCK(1, 1), LOCK(2, 1) }, { LOCK(2, 1), LOCK(0, 1) } },
	  .refused = SOMETIMES },
	{ "turns and locks of three",
	  { { TURN_IN(0), LOCK(1, 1) }, { LOCK(1, 1), SHARE(2, 2) }, { LOCK(2, 2), TURN_IN(0) } },
	  .refused = SOMETIMES },
	/* The first has things of one store only, and may close a cycle all the same: the second
	 * has what it waits for, and waits in another store for the third, which waits for the
	 * first. */
	{ "one of three uses one store",
	  { { LOCK(0, 1), LOCK(0, 2) }, { LOCK(0, 2), LOCK(1, 1) }, { LOCK(1, 1), LOCK(0, 1) } },
	  .refused = SOMETIMES },
	{ "each is the oldest in the store in which it waits for the other",
	  { { LOCK(1, 2), LOCK(0, 1), LOCK(1, 1) }, { LOCK(0, 2), LOCK(1, 1), LOCK(0, 1) } },
	  .refused = IN_SOME_WAYS },
	/* Both readers keep the first thread waiting, and one of them waits for it. */
	{ "one of two readers leads back",
	  { { SHARE(0, 2), TURN_IN(1), LOCK(0, 1) }, { SHARE(0, 1), TURN_IN(1) },
	    { SHARE(0, 1), TURN_IN(2) }, { TURN_IN(2), SHARE(2, 1) } },
	  .refused = IN_ALL_WAYS, .scripts = { "00123120", "00213120" } },
	/* The third thread asks for a free lock. But the first one, which is older, must get it
	 * first, and waits for the second, which waits for the third. */
	{ "a cycle through what an older one wants",
	  { { SHARE(0, 2), LOCK(0, 1) }, { SHARE(0, 1), TURN_IN(1) },
	    { TURN_IN(1), SHARE(0, 1) } },
	  .refused = SOMETIMES },
	/* A reader was refused because an older writer waited. The writer is refused in turn, as a
	 * still older one reads by then, and nothing keeps the reader any more: it is told so, for
	 * the oldest one waits for it in another store. A retry leaves the writer's age. */
	{ "a writer that is refused keeps no reader",
	  { { SHARE(0, 2), SHARE(0, 1), TURN_IN(1) }, { SHARE(0, 2), RETRY_IN(0), LOCK(0, 1) },
	    { SHARE(0, 1), SHARE(0, 2) }, { TURN_IN(1), SHARE(0, 1) } },
	  .refused = NEVER, .scripts = { "0112103302" } },
	/* Readers that share: all of them must let go. */
	{ "readers of two stores",
	  { { SHARE(0, 1), SHARE(1, 1) }, { SHARE(1, 1), LOCK(0, 1) },
	    { LOCK(1, 1), SHARE(0, 1) } },
	  .refused = HOWEVER_OFTEN },
};
/* clang-format on */

static bool refused_as_said(enum refused refused)
{
	switch (refused) {
	case NEVER:
		return w.refusals == 0;
	case SOMETIMES:
		return w.refusals > 0;
	case IN_SOME_WAYS:
		return w.refusals > 0 && w.refusals < w.runs_made;
	case IN_ALL_WAYS:
		return w.refusals == w.runs_made;
	default:
		return true;
	}
}

static void play_scene(const struct scene *scene)
{
	unsigned count = 0;

	w.name = scene->name;
	for (; count < THREADS && scene->takes[count][0].key; count++)
		plan(count, scene->takes[count]);
	for (unsigned i = 0; i == 0 || (i < 2 && scene->scripts[i]); i++) {
		w.script = scene->scripts[i];
		run_all(count);
		if (!refused_as_said(scene->refused))
			fail_msg("%s: %lu refusals in %lu runs", scene->name, w.refusals,
			         w.runs_made);
	}
}

TEST(only_who_would_close_a_cycle_is_refused)
{
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		play_scene(&scenes[i]);
		unit_begin_again();
	}
}

/* Every pair of two things each, in two stores. */
TEST(two_threads_and_all_that_they_may_take)
{
	const struct thing things[] = { TURN_IN(0), LOCK(0, 1), SHARE(0, 2), TURN_IN(1),
		                        LOCK(1, 1) };
	enum { THINGS = 5, PLANS = THINGS * THINGS };

	w.name = "two threads and all that they may take";
	for (unsigned i = 0; i < PLANS; i++) {
		for (unsigned k = 0; k <= i; k++) {
			const struct thing *one = &things[i / THINGS], *two = &things[i % THINGS];
			const struct thing *three = &things[k / THINGS];
			const struct thing *four = &things[k % THINGS];

			/* A turn is asked for by a begin: before all else of that store. */
			if (one == two || three == four ||
			    (two->key == TURN && two->store == one->store) ||
			    (four->key == TURN && four->store == three->store))
				continue;
			plan(0, (struct thing[TAKES]){ *one, *two });
			plan(1, (struct thing[TAKES]){ *three, *four });
			run_all(2);
		}
	}
}
