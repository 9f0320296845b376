/*
 * test_clock.c - the wall clock of an owner's host jumps by hours, back and forth: nothing changes
 * but the time stamps of records. The same history runs twice, under a clock that is steady and
 * under one that jumps before every step, and the mirrors are compared.
 */
#include "owner.h"

#include "../../proto/image/image.h"

enum { MIRRORS = 3, JUMPS = 7 };

/* Seconds; together they lead nowhere, so that a jump comes back to where the clock was. */
static const int64_t jumps[JUMPS] = { 3600, -7200, 86400, -172800, 1, 3 * 3600, 82799 };

struct history {
	struct owner *o;
	bool jumping;
	unsigned steps;
	struct perseas_stat mended, end;
	unsigned backwards; /* records that seem older than the one before */
	struct memory *left[MIRRORS];
	uint8_t bytes[SIZE]; /* what the next owner reads */
	uint64_t now;
};

static void step(struct history *h)
{
	if (h->jumping)
		h->o->d->clock += (uint64_t)(jumps[h->steps % JUMPS] * 1000000000);
	h->steps++;
}

static void put_many(struct history *h, unsigned count, uint8_t value)
{
	for (unsigned i = 0; i < count; i++) {
		step(h);
		assert_int_equal(owner_put(h->o, i * 97 % (SIZE - 50), 50, (uint8_t)(value + i)),
		                 0);
	}
}

/* Another owner takes the store over from a live one, which finds out. */
static void take_over(struct history *h)
{
	struct perseas_options options = h->o->options;
	perseas_t *other;

	options.flags = 0;
	step(h);
	assert_int_equal(direct_open(h->o->d, STORE, &options, &other, &h->o->error),
	                 PERSEAS_EBUSY);
	h->o->d->cut_code = PS_LINK_FENCED;
	step(h);
	other = owner_rival(h->o);
	assert_int_equal(owner_put_fenced(h->o, 0, 10, 0xee), PERSEAS_EFENCED);
	h->o->d->cut_code = PS_LINK_BROKEN;
	owner_die(h->o);
	perseas_close(other);
	step(h);
	owner_reopen(h->o);
}

/* A mirror misses some transactions, and the next owner mends it from the logs. */
static void mend(struct history *h)
{
	direct_crash(h->o->d, 2);
	put_many(h, 10, 0x30);
	owner_die(h->o);
	step(h);
	direct_start(h->o->d, 2);
	owner_reopen(h->o);
	h->mended = owner_stat(h->o);
}

/* One mirror misses a little, which is replayed; the other forgets everything, and is copied
 * whole. */
static void resync(struct history *h)
{
	struct owner *o = h->o;

	direct_crash(o->d, 1);
	put_many(h, 3, 0x50);
	direct_start(o->d, 1);
	step(h);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	direct_crash(o->d, 0);
	memory_heap_lose(o->d->mirrors[0].memory, NULL);
	put_many(h, 3, 0x60);
	direct_start(o->d, 0);
	step(h);
	owner_keep(o, 0, PERSEAS_MIRROR_RESYNCING);
	put_many(h, 3, 0x70);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	put_many(h, 30, 0x80);
	h->end = owner_stat(o);
}

static uint8_t *log_of(struct memory *memory, uint64_t *size)
{
	uint8_t *log = NULL;
	char name[32];

	for (unsigned generation = 0; !log && generation < 10; generation++) {
		snprintf(name, sizeof(name), "log.%u", generation);
		log = memory_heap_piece(memory, STORE, name, size);
	}
	assert_non_null(log);
	return log;
}

/* The records lie in the order of their history where the ring has not been lapped. */
static unsigned count_backwards(struct memory *memory)
{
	uint64_t size, last = 0;
	uint8_t *log = log_of(memory, &size);
	unsigned count = 0;

	for (uint64_t at = PS_RING_OFFSET; at < size; at += PS_ALIGN) {
		const struct ps_record *record = (const struct ps_record *)(log + at);

		if (record->magic != PS_RECORD_MAGIC)
			continue;
		count += record->time < last;
		last = record->time;
	}
	return count;
}

/* Forgets when it was. */
static void strip_times(struct memory *memory)
{
	uint64_t size;
	uint8_t *log = log_of(memory, &size);

	for (uint64_t at = PS_RING_OFFSET; at < size; at += PS_ALIGN) {
		struct ps_record *record = (struct ps_record *)(log + at);

		if (record->magic != PS_RECORD_MAGIC)
			continue;
		record->time = 0;
		record->crc = 0;
	}
}

static void run(struct history *h, bool jumping)
{
	memset(h, 0, sizeof(*h));
	h->jumping = jumping;
	h->o = owner_new(MIRRORS);
	owner_begin(h->o);
	put_many(h, 20, 1);
	take_over(h);
	mend(h);
	resync(h);
	h->backwards = count_backwards(h->o->d->mirrors[2].memory);
	for (unsigned i = 0; i < MIRRORS; i++) {
		h->left[i] = memory_heap_copy(h->o->d->mirrors[i].memory);
		assert_non_null(h->left[i]);
		strip_times(h->left[i]);
	}
	owner_die(h->o);
	step(h);
	owner_reopen(h->o);
	memcpy(h->bytes, h->o->bytes, SIZE);
	h->now = h->o->d->now;
}

static void history_free(struct history *h)
{
	owner_free(h->o);
	for (unsigned i = 0; i < MIRRORS; i++)
		memory_heap_free(h->left[i]);
}

static void assert_same_pieces(struct memory *a, struct memory *b)
{
	static const char *const kinds[] = { "log.%u", "segment-0.%u" };
	unsigned compared = 0;

	for (unsigned i = 0; i < 20; i++) {
		uint64_t size_a = 0, size_b = 0;
		uint8_t *bytes_a, *bytes_b;
		char name[32];

		snprintf(name, sizeof(name), kinds[i % 2], i / 2);
		bytes_a = memory_heap_piece(a, STORE, name, &size_a);
		bytes_b = memory_heap_piece(b, STORE, name, &size_b);
		assert_int_equal(size_a, size_b);
		assert_int_equal(bytes_a != NULL, bytes_b != NULL);
		if (!bytes_a)
			continue;
		assert_memory_equal(bytes_a, bytes_b, size_a);
		compared++;
	}
	assert_int_equal(compared, 2);
}

/* A takeover, a mend by delta, a replay and a resync: each as under a steady clock. */
TEST(test_jumps_change_nothing_but_time_stamps)
{
	struct history steady, jumping;

	run(&steady, false);
	assert_int_equal(steady.backwards, 0);
	assert_int_equal(steady.mended.mended_forward, 1);
	assert_int_equal(steady.mended.mended_whole, 0);
	assert_int_equal(steady.end.resyncs, 1);
	assert_true(steady.end.replayed >= 3);
	assert_int_equal(steady.end.live, MIRRORS);
	owner_close(steady.o);

	run(&jumping, true);
	assert_true(jumping.backwards > 10);
	assert_memory_equal(&steady.mended, &jumping.mended, sizeof(steady.mended));
	assert_memory_equal(&steady.end, &jumping.end, sizeof(steady.end));
	for (unsigned i = 0; i < MIRRORS; i++)
		assert_same_pieces(steady.left[i], jumping.left[i]);
	assert_memory_equal(steady.bytes, jumping.bytes, SIZE);
	assert_int_equal(steady.now, jumping.now);
	history_free(&steady);
	history_free(&jumping);
}

/* Not even one that is beyond what 64 bits hold, or before the beginning of time. */
TEST(test_any_time_is_good)
{
	static const uint64_t clocks[] = { 0, 1, UINT64_MAX, UINT64_MAX / 2, 1ull << 63 };
	struct owner *o = owner_new(MIRRORS);

	owner_begin(o);
	for (unsigned i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		o->d->clock = clocks[i] - o->d->now;
		assert_int_equal(owner_put(o, 10 * i, 10, (uint8_t)(i + 1)), 0);
		direct_crash(o->d, i % MIRRORS);
		owner_die(o);
		direct_start(o->d, i % MIRRORS);
		owner_reopen(o);
		assert_int_equal(owner_stat(o).live, MIRRORS);
		assert_int_equal(o->bytes[10 * i], i + 1);
	}
	owner_free(o);
}
