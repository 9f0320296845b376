/*
 * test_gather_random.c - random transactions that are held back, beside such as
 * are waited for, aborted or left open, mirrors that are copied, and crashes:
 * compared with what every mirror must have, and what the next owner must find,
 * byte by byte.
 */
#include "gather_rig.h"

enum { OPEN = 3, RANGES = 4, STEPS = 150, SEEDS = 80 };

static uint64_t chance;

static unsigned below(unsigned n)
{
	chance = chance * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(chance >> 33) % n;
}

/* A transaction that is open, and the ranges that it has. */
struct opened {
	perseas_tx_t *tx;
	unsigned count, at[RANGES], length[RANGES];
};

/* The committed bytes, and those before the group that is held back. */
struct oracle {
	struct owner *o;
	struct opened open[OPEN];
	uint8_t committed[SIZE], sent[SIZE];
	bool used[SIZE];       /* by a transaction that is open */
	unsigned copied, lost; /* while something was held back */
};

/* After a crash one may have to be copied first. */
static void assert_mirrors(struct oracle *r)
{
	struct fixture f = { .o = r->o };
	const uint8_t *expected = r->o->p->commit.has_gathered ? r->sent : r->committed;

	for (unsigned i = 0; i < r->o->d->count; i++)
		if (owner_state(r->o, i) == PERSEAS_MIRROR_LIVE)
			assert_memory_equal(image_of(&f, i, "segment-0"), expected, SIZE);
	for (unsigned i = 0; i < SIZE; i++)
		assert_true(r->used[i] || r->o->bytes[i] == r->committed[i]);
}

static void mark(struct oracle *r, const struct opened *t, bool used)
{
	for (unsigned i = 0; i < t->count; i++)
		memset(r->used + t->at[i], used, t->length[i]);
}

static void change(struct oracle *r, struct opened *t)
{
	const unsigned length = 1 + below(below(3) ? 20 : 280);
	const unsigned at = below(2) ? below(300) : SIZE - length - below(300);
	bool is_free = t->count < RANGES;

	mark(r, t, false);
	for (unsigned i = 0; i < length; i++)
		is_free = is_free && !r->used[at + i];
	if (is_free) {
		assert_int_equal(perseas_set_range(t->tx, r->o->bytes + at, length), 0);
		for (unsigned i = 0; i < length; i++)
			if (below(4))
				r->o->bytes[at + i] = (uint8_t)below(256);
		t->at[t->count] = at;
		t->length[t->count++] = length;
	}
	mark(r, t, true);
}

static void commit(struct oracle *r, struct opened *t, unsigned flags)
{
	const bool was_held = r->o->p->commit.has_gathered;
	const uint64_t groups = owner_stat(r->o).groups;
	uint8_t before[SIZE];

	memcpy(before, r->committed, SIZE);
	assert_int_equal(perseas_commit(t->tx, flags), 0);
	for (unsigned i = 0; i < t->count; i++)
		memcpy(r->committed + t->at[i], r->o->bytes + t->at[i], t->length[i]);
	mark(r, t, false);
	memset(t, 0, sizeof(*t));
	/* This commit is the first of the present group. */
	if (r->o->p->commit.has_gathered && (!was_held || owner_stat(r->o).groups != groups))
		memcpy(r->sent, before, SIZE);
}

static void undo(struct oracle *r, struct opened *t)
{
	assert_int_equal(perseas_abort(t->tx), 0);
	mark(r, t, false);
	memset(t, 0, sizeof(*t));
}

/* A mirror loses its memory, or only its links. */
static void copy_one(struct oracle *r)
{
	const bool was_held = r->o->p->commit.has_gathered;

	if (below(2)) {
		owner_lose(r->o, 1);
	} else {
		direct_crash(r->o->d, 1);
		direct_start(r->o->d, 1);
	}
	/* The owner has to see first that the link is gone. */
	for (unsigned i = 0; i < 4; i++)
		direct_keep(r->o->d, r->o->p);
	owner_keep(r->o, 1, PERSEAS_MIRROR_LIVE);
	r->copied += was_held && r->o->p->commit.has_gathered;
}

/* The owner dies while it sends the group: the next owner finds all of it, or nothing. */
static void crash(struct oracle *r)
{
	struct owner *o = r->o;
	const bool was_held = o->p->commit.has_gathered;
	const long writes = (long)below(6);

	for (unsigned i = 0; i < o->d->count; i++)
		o->d->mirrors[i].writes_left = writes;
	(void)perseas_flush(o->p);
	owner_die(o);
	memset(r->open, 0, sizeof(r->open));
	memset(r->used, 0, sizeof(r->used));
	owner_reopen(o);
	if (was_held && memcmp(o->bytes, r->committed, SIZE) != 0) {
		memcpy(r->committed, r->sent, SIZE);
		r->lost++;
	}
	assert_memory_equal(o->bytes, r->committed, SIZE);
}

static void step(struct oracle *r)
{
	struct opened *t = &r->open[below(OPEN)];
	const unsigned what = below(100);

	if (what == 0) {
		crash(r);
	} else if (what < 3) {
		copy_one(r);
	} else if (what < 5) {
		assert_int_equal(perseas_flush(r->o->p), 0);
	} else if (what < 10 && t->tx) {
		undo(r, t);
	} else if (what < 13 && t->tx) {
		commit(r, t, 0);
	} else {
		if (!t->tx)
			assert_int_equal(perseas_begin(r->o->p, 0, &t->tx), 0);
		change(r, t);
		if (below(3))
			commit(r, t, PERSEAS_NOWAIT);
	}
	assert_mirrors(r);
}

static void run(struct oracle *r, unsigned seed)
{
	struct owner *o = gathering_owner(3);

	chance = seed * 0x9e3779b97f4a7c15u + 1;
	memset(r->open, 0, sizeof(r->open));
	memset(r->used, 0, sizeof(r->used));
	r->o = o;
	o->d->staged = seed & 1;
	o->options.gather_bytes = seed % 5 ? 65536 : 2048;
	o->options.flags = seed & 2 ? PERSEAS_CHECK_WRITES : 0;
	owner_begin(o);
	memcpy(r->committed, o->bytes, SIZE);
	for (unsigned i = 0; i < STEPS; i++)
		step(r);
	for (unsigned i = 0; i < OPEN; i++)
		if (r->open[i].tx)
			undo(r, &r->open[i]);
	owner_free(o);
}

TEST(test_random_transactions)
{
	static struct oracle oracle;

	for (unsigned seed = 1; seed <= SEEDS; seed++)
		run(&oracle, seed);
	assert_true(oracle.copied > 5 && oracle.lost > 2);
}
