/*
 * medley.c - the owner of medley.h. Each part has an area of one segment, and leaves it in a state
 * that follows from constants. teller.c's main calls it. A check that fails ends the process with a
 * sentence; nothing is retried.
 */
#include "medley.h"

#include "objects.h"
#include "../../client/perseas_nowait.h"
#include "../../client/perseas_threads.h"
#include "../../client/perseas_track.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	AREA = 4096, /* bytes of a part's area */
	WORDS = AREA / sizeof(uint64_t),
	POSTED = 400, /* transactions of a part whose commits do not wait */
	THINGS = 150, /* transactions on the heap */
	THREADS = 4,
	TURNS = 40, /* transactions of each thread */
	ACCOUNTS = 8,
	FIRST = 1000, /* initial balance of each account */
	BOUND_MS = 50,
	YOUNG = 2 * BOUND_MS, /* commits that are remembered, at most one for each ms */
	LATE_MS = 20000,      /* timeout for what must happen */
};

#define SEGMENT "medley"

enum part { UNWAITED, BOUNDED, PARTLY, SERIAL, LOCKED, CHECKED, TRACKED, PARTS };

static perseas_t *p;
static uint64_t *words[PARTS]; /* of each area */

static void need(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s; %s\n%s", what, p ? perseas_message(p) : "",
	        p ? perseas_report(p) : "");
	exit(EXIT_FAILURE);
}

static void good(int rc, const char *what)
{
	need(rc == 0, what);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static perseas_tx_t *begin(unsigned flags)
{
	perseas_tx_t *tx;

	good(perseas_begin(p, flags, &tx), "begin");
	return tx;
}

static void set(perseas_tx_t *tx, uint64_t *word, uint64_t to)
{
	good(perseas_set_range(tx, word, sizeof(*word)), "set_range");
	*word = to;
}

/* --- commits that do not wait --- */

static struct perseas_token post(enum part part, uint64_t k)
{
	struct perseas_token token = { 0, 0 };
	perseas_tx_t *tx = begin(0);

	set(tx, &words[part][k % WORDS], k);
	set(tx, &words[part][WORDS - 1], k);
	good(perseas_commit_token(tx, PERSEAS_NOWAIT, &token), "a commit that does not wait");
	return token;
}

/* Sleeps on the descriptor until W mirrors have the transaction. */
static void sleep_until_held(int fd, const struct perseas_token *token)
{
	const uint64_t until = now_ms() + LATE_MS;
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	struct perseas_token held;

	good(perseas_durable(p, &held), "durable");
	while (held.seq < token->seq) {
		need(now_ms() < until, "the descriptor tells of nothing");
		poll(&ready, 1, 1000);
		good(perseas_durable(p, &held), "durable");
	}
	need(held.epoch == token->epoch, "two epochs");
}

static void do_unwaited(void)
{
	struct perseas_token token = { 0, 0 }, before, never;
	int fd = perseas_fd(p);

	need(fd >= 0, "a descriptor");
	for (uint64_t k = 1; k <= POSTED; k++) {
		before = token;
		token = post(UNWAITED, k);
		need(k == 1 || token.seq == before.seq + 1, "numbers one after another");
		if (k % 100 == 0)
			sleep_until_held(fd, &token);
	}
	good(perseas_wait(p, &token, LATE_MS), "a wait for the last one");
	never = token;
	never.seq++;
	need(perseas_wait(p, &never, 0) == PERSEAS_EINVAL, "a wait for what never was");
}

static bool is_told(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&input, 1, 0) > 0;
}

/* Remembers the first commit of each ms, until it is older than the bound. */
struct bounded {
	struct {
		uint64_t seq, at;
	} young[YOUNG];
	uint64_t first, next, last, longest;
};

/* Commits transaction k. When the commit returns, W mirrors must have everything committed BOUND_MS
 * before it began. */
static void post_bounded(struct bounded *b, uint64_t k)
{
	const uint64_t began = now_ms(), seq = post(BOUNDED, k).seq, at = now_ms();
	struct perseas_token held;

	good(perseas_durable(p, &held), "durable");
	for (; b->first < b->next && b->young[b->first % YOUNG].at + BOUND_MS < began; b->first++)
		need(b->young[b->first % YOUNG].seq <= held.seq, "what is old is not held");
	if (at - began > b->longest)
		b->longest = at - began;
	if (at == b->last)
		return;
	b->young[b->next % YOUNG].seq = seq;
	b->young[b->next++ % YOUNG].at = b->last = at;
}

/* Tests flush_within_ms. Fast mirrors have old commits anyway, so the drill stops W mirrors for a
 * while, on fabrics where the mirror's process sends the answers. A commit then has to wait: the
 * drill sees the count in the page stop, and this prints how long the longest commit took. Rounds
 * are always completed, so that the area is the same after any number of them. */
static void do_bounded(struct page *page)
{
	const uint64_t start = now_ms();
	struct bounded b = { .first = 0 };

	puts("bounded");
	fflush(stdout);
	do
		for (uint64_t k = 1; k <= POSTED; k++, page->attempted++)
			post_bounded(&b, k);
	while (now_ms() < start + 4 * (uint64_t)BOUND_MS || !b.first || !is_told());
	(void)getchar();
	need(b.first > 0, "no commit was old");
	good(perseas_flush(p), "flush");
	printf("%llu\n", (unsigned long long)b.longest);
	fflush(stdout);
}

static void expect_posted(uint64_t *expected)
{
	for (uint64_t k = 1; k <= POSTED; k++)
		expected[k % WORDS] = expected[WORDS - 1] = k;
}

/* --- parts of transactions --- */

static void do_partly(void)
{
	uint64_t *at = words[PARTLY], first, second;
	perseas_tx_t *tx = begin(0);

	set(tx, &at[0], 1);
	set(tx, &at[1], 1);
	good(perseas_savepoint(tx, &first), "savepoint");
	set(tx, &at[1], 2);
	set(tx, &at[2], 2);
	good(perseas_savepoint(tx, &second), "savepoint");
	set(tx, &at[0], 3);
	set(tx, &at[3], 3);
	good(perseas_rollback_to(tx, second), "a roll-back");
	need(at[0] == 1 && at[1] == 2 && at[2] == 2 && at[3] == 0, "a roll-back of the last part");
	good(perseas_rollback_to(tx, first), "a roll-back");
	need(at[1] == 1 && at[2] == 0, "a roll-back of two parts");
	set(tx, &at[4], 4);
	good(perseas_commit(tx, 0), "commit");
}

/* --- threads --- */

static void run_threads(void *(*run)(void *))
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		need(pthread_create(&threads[i], NULL, run, (void *)(i + 1)) == 0, "a thread");
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* Runs serial transactions, which must all find the same value in two words. Every other one is not
 * waited for. */
static void *take_turns(void *arg)
{
	uint64_t *at = words[SERIAL];

	for (unsigned i = 0; i < TURNS; i++) {
		perseas_tx_t *tx = begin(PERSEAS_SERIAL);

		need(at[0] == at[WORDS - 1], "a thread sees half of a transaction");
		set(tx, &at[0], at[0] + 1);
		set(tx, &at[WORDS - 1], at[0]);
		good(perseas_commit(tx, i % 2 ? PERSEAS_NOWAIT : 0), "a commit of a turn");
	}
	return arg;
}

static int lock_all(perseas_tx_t *tx, const unsigned *keys, unsigned count)
{
	int rc = 0;

	for (unsigned i = 0; i < count && !rc; i++)
		rc = perseas_lock(tx, keys[i], PERSEAS_LOCK_EXCLUSIVE);
	return rc;
}

/* Transfers between random accounts, locking them in any order. The last word counts transfers. */
static void *transfer(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	uint64_t *at = words[LOCKED];

	for (unsigned i = 0; i < TURNS; i++) {
		const unsigned from = (unsigned)rand_r(&seed) % ACCOUNTS;
		const unsigned to = (from + 1 + (unsigned)rand_r(&seed) % (ACCOUNTS - 1)) %
		                    ACCOUNTS;
		perseas_tx_t *tx = begin(0);
		int rc;

		while ((rc = lock_all(tx, (unsigned[]){ from, to, WORDS - 1 }, 3)) ==
		       PERSEAS_ECONFLICT)
			good(perseas_retry(tx), "retry");
		good(rc, "locks");
		set(tx, &at[from], at[from] - 1);
		set(tx, &at[to], at[to] + 1);
		set(tx, &at[WORDS - 1], at[WORDS - 1] + 1);
		good(perseas_commit(tx, 0), "a commit under locks");
	}
	return arg;
}

/* Checks the accounts by their sum, because the order of transfers is random. */
static void check_accounts(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < ACCOUNTS; i++)
		sum += words[LOCKED][i];
	need(sum == ACCOUNTS * FIRST, "the sum of the accounts");
	need(words[LOCKED][WORDS - 1] == THREADS * TURNS, "the number of transfers");
}

/* --- checked writes, and tracked writes --- */

static void do_checked(void)
{
	uint64_t *at = words[CHECKED];
	perseas_tx_t *tx = begin(0);

	set(tx, &at[0], 5);
	at[100] = 6;
	need(perseas_commit(tx, 0) == PERSEAS_EUNDECLARED, "a change that was not declared");
	at[100] = 0;
	set(tx, &at[100], 7);
	good(perseas_commit(tx, 0), "a commit of what was declared");
}

static void do_tracked(void)
{
	uint64_t *at = words[TRACKED];
	perseas_tx_t *tx;

	for (uint64_t k = 1; k <= TURNS; k++) {
		tx = begin(PERSEAS_TRACK);
		at[k] = k;
		at[WORDS - k] = ~k;
		good(perseas_commit(tx, 0), "a commit of what was found");
		tx = begin(PERSEAS_TRACK);
		at[0] = at[k] = 99;
		good(perseas_abort(tx), "abort");
		need(at[0] == 0 && at[k] == k, "what was found is taken back");
	}
}

static void expect_tracked(uint64_t *expected)
{
	for (uint64_t k = 1; k <= TURNS; k++) {
		expected[k] = k;
		expected[WORDS - k] = ~k;
	}
}

/* --- all parts --- */

static void map(void)
{
	void *addr;

	good(perseas_map(p, SEGMENT, (size_t)AREA * PARTS, &addr), "map");
	for (unsigned i = 0; i < PARTS; i++)
		words[i] = (uint64_t *)addr + (size_t)i * WORDS;
}

static void make(void)
{
	map();
	for (unsigned i = 0; i < ACCOUNTS; i++)
		words[LOCKED][i] = FIRST;
	good(perseas_publish(p), "publish");
}

static void open_with(const char *store, const char *mirrors, const struct perseas_options *options,
                      uint32_t flags, uint32_t bound)
{
	struct perseas_options own = *options;

	own.flags |= flags;
	own.flush_within_ms = bound;
	p = NULL;
	good(perseas_open(store, mirrors, &own, &p), "open");
}

/* Closes and reopens the store, which must have everything that was committed. */
static void reopen(const char *store, const char *mirrors, const struct perseas_options *options,
                   uint32_t flags, uint32_t bound)
{
	good(perseas_close(p), "close");
	open_with(store, mirrors, options, flags, bound);
	map();
}

int medley_run(struct owner *owner, const char *store, const char *mirrors,
               const struct perseas_options *options)
{
	struct objects objects;

	open_with(store, mirrors, options, PERSEAS_CREATE, 0);
	make();
	do_unwaited();
	do_partly();
	run_threads(take_turns);
	run_threads(transfer);
	good(objects_open(&objects, p), "a heap");
	good(objects_change(&objects, THINGS, 0, owner->page), "objects");
	reopen(store, mirrors, options, 0, BOUND_MS);
	do_bounded(owner->page);
	reopen(store, mirrors, options, PERSEAS_CHECK_WRITES, 0);
	do_checked();
	reopen(store, mirrors, options, PERSEAS_TRACKED, 0);
	do_tracked();
	puts("done");
	fflush(stdout);
	(void)getchar();
	perseas_close(p);
	return EXIT_SUCCESS;
}

static void expect(enum part part, uint64_t *expected)
{
	memset(expected, 0, AREA);
	if (part == UNWAITED || part == BOUNDED)
		expect_posted(expected);
	else if (part == PARTLY)
		expected[0] = expected[1] = 1, expected[4] = 4;
	else if (part == SERIAL)
		expected[0] = expected[WORDS - 1] = THREADS * TURNS;
	else if (part == CHECKED)
		expected[0] = 5, expected[100] = 7;
	else if (part == TRACKED)
		expect_tracked(expected);
}

int medley_check(struct owner *owner, const char *store, const char *mirrors,
                 const struct perseas_options *options)
{
	struct objects objects;
	uint64_t expected[WORDS];
	char what[64];

	(void)owner;
	open_with(store, mirrors, options, PERSEAS_TAKEOVER, 0);
	map();
	for (enum part part = 0; part < PARTS; part++) {
		expect(part, expected);
		snprintf(what, sizeof(what), "the area of part %u", part);
		need(part == LOCKED || memcmp(words[part], expected, AREA) == 0, what);
	}
	check_accounts();
	good(objects_open(&objects, p), "the heap");
	need(objects_count(&objects) == THINGS && objects_check(&objects), "the objects");
	perseas_close(p);
	return EXIT_SUCCESS;
}

int medley_objects(struct owner *owner, const char *store, const char *mirrors,
                   const struct perseas_options *options, uint64_t last)
{
	const unsigned flags = owner->unwaited ? PERSEAS_NOWAIT : 0;
	struct objects objects;

	open_with(store, mirrors, options, 0, 0);
	good(objects_open(&objects, p), "a heap");
	need(objects_check(&objects), "the objects");
	owner->page->found = objects_count(&objects);
	if (last)
		good(objects_change(&objects, last, flags, owner->page), "objects");
	perseas_close(p);
	return EXIT_SUCCESS;
}
