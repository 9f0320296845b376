/*
 * engine_here.c - engines that stay in this process, for comparison:
 *
 * none: memory without transactions. Measures the workload itself.
 *
 * local: Vista's scheme. Before-images go to an undo log in memory, and a commit discards the log.
 * It makes no copy elsewhere and no system call.
 *
 * copies: the least that a mirror in memory costs, as PERSEAS does it: three copies of every range.
 * The before-image is copied to a local log, from there to the mirror's log, and the after-image to
 * the mirror's data. No other process takes part, and a commit waits for nothing.
 */
#include "../client/core/bytes.h"
#include "area.h"
#include "engine.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { LOG = 8 << 20, RING = 16 << 20, LINE = 64, ASK_MOST = 8 * LINE };

/* An entry of the log. Its before-image follows, padded to 8 bytes. */
struct entry {
	uint8_t *addr;
	size_t len;
};

struct here {
	struct engine engine;
	uint8_t *memory;
	size_t size;
	uint8_t *log;
	size_t used;   /* bytes of the log that a rollback would undo */
	uint8_t *far;  /* the mirror's data */
	uint8_t *ring; /* the mirror's log */
	size_t at;     /* where the next entry goes in the ring */
};

static void here_close(struct engine *engine)
{
	struct here *here = (struct here *)engine;

	area_free(here->memory, here->size);
	area_free(here->log, LOG);
	area_free(here->far, here->size);
	area_free(here->ring, RING);
}

static int here_open(struct engine *engine, const struct engine_options *options, size_t size,
                     void **memory)
{
	struct here *here = (struct here *)engine;
	bool logs = engine->ops != &engine_none, copies = engine->ops == &engine_copies;

	(void)options;
	here->size = size;
	if (!(here->memory = area_filled(size, 0)) ||
	    (logs && !(here->log = area_filled(LOG, 0))) ||
	    (copies &&
	     (!(here->far = area_filled(size, 0)) || !(here->ring = area_filled(RING, 0)))))
		return engine_fail(engine, "%s", strerror(errno));
	if (logs)
		snprintf(engine->setup, sizeof(engine->setup), "%s",
		         copies ? "three copies of each range, in this process: the least that a "
		                  "mirror costs"
		                : "undo log in the memory of this process, for abort only");
	*memory = here->memory;
	return 0;
}

int engine_begin_nothing(struct engine *engine)
{
	(void)engine;
	return 0;
}

int engine_range_nothing(struct engine *engine, const void *addr, size_t len)
{
	(void)engine;
	(void)addr;
	(void)len;
	return 0;
}

static size_t entry_size(size_t len)
{
	return sizeof(struct entry) + ((len + 7) & ~(size_t)7);
}

/* Empties the log with a single store. Serves both as begin and as commit: afterward there is
 * nothing to roll back. */
static int log_clear(struct engine *engine)
{
	atomic_signal_fence(memory_order_seq_cst);
	((struct here *)engine)->used = 0;
	atomic_signal_fence(memory_order_seq_cst);
	return 0;
}

static int log_range(struct engine *engine, const void *addr, size_t len)
{
	struct here *here = (struct here *)engine;
	struct entry *entry = (struct entry *)(here->log + here->used);

	if (entry_size(len) > LOG - here->used)
		return engine_fail(engine, "the transaction is too large for the log");
	entry->addr = (uint8_t *)addr;
	entry->len = len;
	ps_copy(entry + 1, addr, len);
	/* The entry must be complete before it counts, and count before the data changes. */
	atomic_signal_fence(memory_order_seq_cst);
	here->used += entry_size(len);
	atomic_signal_fence(memory_order_seq_cst);
	return 0;
}

/*
 * Prefetches the mirror's cache lines that the commit will write. For a large range the processor's
 * own prefetcher does the rest.
 */
static int copies_range(struct engine *engine, const void *addr, size_t len)
{
	const struct here *here = (struct here *)engine;
	const uint8_t *far = here->far + ((const uint8_t *)addr - here->memory);

	for (size_t i = 0; i < len && i < ASK_MOST; i += LINE)
		__builtin_prefetch(far + i, 1);
	return log_range(engine, addr, len);
}

static int copies_commit(struct engine *engine)
{
	struct here *here = (struct here *)engine;

	if (here->used > RING - here->at)
		here->at = 0;
	ps_copy(here->ring + here->at, here->log, here->used);
	here->at += here->used;
	for (size_t done = 0; done < here->used;) {
		const struct entry *entry = (const struct entry *)(here->log + done);

		ps_copy(here->far + (entry->addr - here->memory), entry->addr, entry->len);
		done += entry_size(entry->len);
	}
	/* Keeps the compiler from dropping copies that the next commit overwrites. */
	atomic_signal_fence(memory_order_seq_cst);
	return 0;
}

#define HERE_OPS \
	.size = sizeof(struct here), .survives = "nothing", .open = here_open, .close = here_close

const struct engine_ops engine_none = {
	.name = "none",
	.begin = engine_begin_nothing,
	.range = engine_range_nothing,
	.commit = engine_begin_nothing,
	HERE_OPS,
};

const struct engine_ops engine_local = {
	.name = "local",
	.begin = log_clear,
	.range = log_range,
	.commit = log_clear,
	HERE_OPS,
};

const struct engine_ops engine_copies = {
	.name = "copies",
	.begin = log_clear,
	.range = copies_range,
	.commit = copies_commit,
	HERE_OPS,
};
