/*
 * engine_perseas.c - the library as engines with one segment and one transaction at a time. Commits
 * wait for W mirrors; or a flush waits for several commits together; or each commit waits for an
 * earlier one. Ranges are declared by the workload, or as whole pages, or found by the library.
 */
#include "clock.h"
#include "engine.h"
#include "../client/perseas.h"

#include <stdio.h>

enum { FLYING = 32, PAGE = 4096 };

struct mirrored {
	struct engine engine;
	perseas_tx_t *tx; /* the open transaction, or NULL */
	uint64_t patience_ns;
	unsigned together; /* commits that one flush waits for; 0: each commit waits */
	unsigned unwaited; /* commits since the last flush */
	uint32_t flags;    /* for perseas_open, in addition to those from the options */
	uint8_t *memory, *end;
	unsigned gather_us; /* how long commits are delayed; 0: each is sent at once */
	struct perseas_token flying[FLYING];
	uint64_t posted;
};

static void mirrored_close(struct engine *engine)
{
	perseas_close(engine->handle);
}

static int open_store(struct engine *engine, const struct engine_options *options)
{
	struct perseas_options how = PERSEAS_OPTIONS_INIT;

	how.flags = PERSEAS_CREATE | (options->takeover ? PERSEAS_TAKEOVER : 0) |
	            ((const struct mirrored *)engine)->flags;
	how.acks = (uint32_t)options->acks;
	how.log_size = options->log_size;
	how.spin_us = (uint32_t)options->spin_us;
	how.connect_timeout_ms = options->connect_ms;
	how.gather_us = ((const struct mirrored *)engine)->gather_us;
	if (perseas_open(options->store, options->mirrors, &how, &engine->handle))
		return engine_fail(engine, "%s", perseas_message(NULL));
	return 0;
}

/* Touches every page, as the other engines do, so that no page fault is measured. */
static void touch_pages(void *memory, size_t size)
{
	volatile uint8_t *bytes = memory;

	for (size_t i = 0; i < size; i += 4096)
		bytes[i] = bytes[i];
}

/* Waits before another try, while a mirror that broke or is slow reconnects by itself. Returns
 * false if another try is pointless. */
static bool wait_for_mirrors(int code, uint64_t until)
{
	const struct timespec pause = { .tv_nsec = 100000000 };

	if (code != PERSEAS_EUNREACHABLE || clock_ns() >= until)
		return false;
	nanosleep(&pause, NULL);
	return true;
}

/* Maps the segment and publishes it to the mirrors. Returns 0 or an error code. */
static int make_segment(struct mirrored *m, const char *name, size_t size, void **memory)
{
	uint64_t until = clock_ns() + m->patience_ns;
	int code;

	do
		code = perseas_map(m->engine.handle, name, size, memory);
	while (wait_for_mirrors(code, until));
	if (code)
		return code;
	touch_pages(*memory, size);
	do
		code = perseas_publish(m->engine.handle);
	while (wait_for_mirrors(code, until));
	return code;
}

/* Describes the number of mirrors, the fabric of the last one, and how a commit waits. */
static void describe_store(struct engine *engine, const struct engine_options *options)
{
	struct perseas_mirror_stat mirror = { .fabric = "?" };
	unsigned spin_us = options->spin_us ? (unsigned)options->spin_us : 50;
	struct perseas_stat stat = { 0 };
	char wait[32] = "sleeps at once";

	perseas_stat(engine->handle, &stat);
	perseas_mirror_stat(engine->handle, stat.mirrors - 1, &mirror);
	if (spin_us != UINT32_MAX)
		snprintf(wait, sizeof(wait), "spins %u us", spin_us);
	snprintf(engine->setup, sizeof(engine->setup), "%u mirror%s over %s, W = %u, %s",
	         stat.mirrors, stat.mirrors == 1 ? "" : "s", mirror.fabric, stat.acks, wait);
}

static int mirrored_open(struct engine *engine, const struct engine_options *options, size_t size,
                         void **memory)
{
	struct mirrored *m = (struct mirrored *)engine;

	m->patience_ns = (uint64_t)options->patience_ms * 1000000;
	if (open_store(engine, options) || make_segment(m, options->segment, size, memory))
		return -1;
	m->memory = *memory;
	m->end = m->memory + size;
	describe_store(engine, options);
	return 0;
}

static void mirrored_counts(struct engine *engine, struct engine_counts *counts)
{
	struct perseas_stat stat = { 0 };

	perseas_stat(engine->handle, &stat);
	*counts = (struct engine_counts){ stat.commits, stat.bytes_sent, stat.saved_within,
		                          stat.saved_between };
}

static int mirrored_begin(struct engine *engine)
{
	return perseas_begin(engine->handle, 0, &((struct mirrored *)engine)->tx);
}

static int mirrored_range(struct engine *engine, const void *addr, size_t len)
{
	return perseas_set_range(((struct mirrored *)engine)->tx, addr, len);
}

/* Waits for a commit in doubt, up to the patience of the options. Returns 0 or an error code. */
static int wait_for_commit(const struct mirrored *m)
{
	uint64_t until = clock_ns() + m->patience_ns;
	int code;

	do
		code = perseas_flush(m->engine.handle);
	while (code == PERSEAS_EINDOUBT && clock_ns() < until);
	return code;
}

static int mirrored_commit(struct engine *engine)
{
	const struct mirrored *m = (struct mirrored *)engine;
	int code = perseas_commit(m->tx, 0);

	return __builtin_expect(code == PERSEAS_EINDOUBT, 0) ? wait_for_commit(m) : code;
}

/* Commits without waiting, and flushes after every `together` commits. The count continues across
 * rounds, so the flush at a round's start may cover commits of the round before. */
static int mirrored_post(struct engine *engine)
{
	struct mirrored *m = (struct mirrored *)engine;
	int code = perseas_commit(m->tx, PERSEAS_NOWAIT);

	if (code || ++m->unwaited < m->together)
		return code;
	m->unwaited = 0;
	return wait_for_commit(m);
}

/* Commits without waiting, after W mirrors acknowledged the commit FLYING transactions ago. So
 * FLYING commits are always in flight. */
static int mirrored_fly(struct engine *engine)
{
	struct mirrored *m = (struct mirrored *)engine;
	struct perseas_token *token = &m->flying[m->posted % FLYING];
	int code = 0;

	if (m->posted >= FLYING)
		code = perseas_wait(engine->handle, token, (int64_t)(m->patience_ns / 1000000));
	if (!code)
		code = perseas_commit_token(m->tx, PERSEAS_NOWAIT, token);
	m->posted += !code;
	return code;
}

static int open_together(struct engine *engine, const struct engine_options *options, size_t size,
                         void **memory, unsigned together, unsigned gather_us)
{
	struct engine_options own = *options;
	char store[ENGINE_SETUP];

	((struct mirrored *)engine)->together = together;
	((struct mirrored *)engine)->gather_us = gather_us;
	snprintf(store, sizeof(store), "%s-%u%s", options->store, together,
	         gather_us ? "-gathered" : "");
	own.store = store;
	return mirrored_open(engine, &own, size, memory);
}

static int open_8(struct engine *engine, const struct engine_options *options, size_t size,
                  void **memory)
{
	return open_together(engine, options, size, memory, 8, 0);
}

static int open_64(struct engine *engine, const struct engine_options *options, size_t size,
                   void **memory)
{
	return open_together(engine, options, size, memory, 64, 0);
}

static int open_1000(struct engine *engine, const struct engine_options *options, size_t size,
                     void **memory)
{
	return open_together(engine, options, size, memory, 1000, 0);
}

/* Declares the whole pages around a change: logging at page granularity. */
static int range_pages(struct engine *engine, const void *addr, size_t len)
{
	const struct mirrored *m = (const struct mirrored *)engine;
	size_t from = (size_t)((const uint8_t *)addr - m->memory) & ~(size_t)(PAGE - 1);
	size_t to = ((size_t)((const uint8_t *)addr - m->memory) + len + PAGE - 1) &
	            ~(size_t)(PAGE - 1);
	size_t most = (size_t)(m->end - m->memory);

	return perseas_set_range(m->tx, m->memory + from, (to < most ? to : most) - from);
}

static int open_beside(struct engine *engine, const struct engine_options *options, size_t size,
                       void **memory)
{
	struct engine_options own = *options;
	char store[ENGINE_SETUP];

	snprintf(store, sizeof(store), "%s-%s", options->store, engine->ops->name);
	own.store = store;
	return mirrored_open(engine, &own, size, memory);
}

static int open_tracked(struct engine *engine, const struct engine_options *options, size_t size,
                        void **memory)
{
	((struct mirrored *)engine)->flags = PERSEAS_TRACKED;
	return open_beside(engine, options, size, memory);
}

static int begin_tracked(struct engine *engine)
{
	return perseas_begin(engine->handle, PERSEAS_TRACK, &((struct mirrored *)engine)->tx);
}

/* Commits within a millisecond are sent as one record. */
static int open_gathered_1000(struct engine *engine, const struct engine_options *options,
                              size_t size, void **memory)
{
	return open_together(engine, options, size, memory, 1000, 1000);
}

#define TOGETHER(label, opens)                                                                     \
	{                                                                                          \
		.name = label, .survives = "host", .size = sizeof(struct mirrored), .open = opens, \
		.begin = mirrored_begin, .range = mirrored_range, .commit = mirrored_post,         \
		.counts = mirrored_counts, .close = mirrored_close,                                \
	}

const struct engine_ops engine_nowait_8 = TOGETHER("nowait-8", open_8);
const struct engine_ops engine_nowait_64 = TOGETHER("nowait-64", open_64);
const struct engine_ops engine_nowait_1000 = TOGETHER("nowait-1000", open_1000);
const struct engine_ops engine_gathered_1000 = TOGETHER("gathered-1000", open_gathered_1000);

const struct engine_ops engine_flying_32 = {
	.name = "flying-32",
	.survives = "host",
	.size = sizeof(struct mirrored),
	.open = open_beside,
	.begin = mirrored_begin,
	.range = mirrored_range,
	.commit = mirrored_fly,
	.counts = mirrored_counts,
	.close = mirrored_close,
};

/* The other two ways of Rhino to find what a transaction writes. */
const struct engine_ops engine_pages = {
	.name = "pages",
	.survives = "host",
	.size = sizeof(struct mirrored),
	.open = open_beside,
	.begin = mirrored_begin,
	.range = range_pages,
	.commit = mirrored_commit,
	.counts = mirrored_counts,
	.close = mirrored_close,
};

const struct engine_ops engine_tracked = {
	.name = "tracked",
	.survives = "host",
	.size = sizeof(struct mirrored),
	.open = open_tracked,
	.begin = begin_tracked,
	.range = engine_range_nothing,
	.commit = mirrored_commit,
	.counts = mirrored_counts,
	.close = mirrored_close,
};

bool engine_needs_mirrors(const struct engine_ops *ops)
{
	return ops->counts;
}

const struct engine_ops engine_perseas = {
	.name = "perseas",
	.survives = "host",
	.size = sizeof(struct mirrored),
	.open = mirrored_open,
	.begin = mirrored_begin,
	.range = mirrored_range,
	.commit = mirrored_commit,
	.counts = mirrored_counts,
	.close = mirrored_close,
};
