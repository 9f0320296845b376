/*
 * engine_local.c - Vista's scheme: before-images go to an undo log in memory, a commit
 * throws the log away. It makes no copy elsewhere and no system call.
 */
#include "../client/core/bytes.h"
#include "area.h"
#include "engine.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCAL_LOG = 8 << 20 };

/* One entry of the log; its before-image follows, padded to 8 bytes. */
struct entry {
	void *addr;
	size_t len;
};

struct local {
	struct engine engine;
	uint8_t *memory;
	size_t size;
	uint8_t *log;
	size_t used; /* bytes of the log that count: what a roll-back undoes */
	const char *why;
};

static void local_close(struct engine *engine)
{
	struct local *local = (struct local *)engine;

	if (!local)
		return;
	area_free(local->memory, local->size);
	area_free(local->log, LOCAL_LOG);
	free(local);
}

static struct engine *local_open(const struct engine_options *options, size_t size, void **memory,
                                 char *why)
{
	struct local *local = calloc(1, sizeof(*local));

	(void)options;
	if (local)
		local->size = size;
	if (!local || !(local->memory = area_filled(size, 0)) ||
	    !(local->log = area_filled(LOCAL_LOG, 0))) {
		snprintf(why, ENGINE_WHY, "%s", strerror(errno));
		local_close(&local->engine);
		return NULL;
	}
	local->engine.ops = &engine_local;
	local->why = "";
	*memory = local->memory;
	return &local->engine;
}

static int local_begin(struct engine *engine)
{
	struct local *local = (struct local *)engine;

	local->used = 0;
	return 0;
}

static int local_range(struct engine *engine, const void *addr, size_t len)
{
	struct local *local = (struct local *)engine;
	struct entry *entry = (struct entry *)(local->log + local->used);
	size_t need = sizeof(*entry) + ((len + 7) & ~(size_t)7);

	if (need > LOCAL_LOG - local->used) {
		local->why = "the transaction is too large for the log";
		return -1;
	}
	entry->addr = (void *)addr;
	entry->len = len;
	ps_copy(entry + 1, addr, len);
	/* The entry is whole before it counts, and counts before the data changes. */
	atomic_signal_fence(memory_order_seq_cst);
	local->used += need;
	atomic_signal_fence(memory_order_seq_cst);
	return 0;
}

static int local_commit(struct engine *engine)
{
	struct local *local = (struct local *)engine;

	/* One store commits: from here on there is nothing to roll back. */
	atomic_signal_fence(memory_order_seq_cst);
	local->used = 0;
	atomic_signal_fence(memory_order_seq_cst);
	return 0;
}

static const char *local_why(const struct engine *engine)
{
	return ((const struct local *)engine)->why;
}

static const char *local_configuration(const struct engine *engine)
{
	(void)engine;
	return "undo log in the memory of this process, for abort only";
}

static struct perseas *local_handle(struct engine *engine)
{
	(void)engine;
	return NULL;
}

const struct engine_ops engine_local = {
	.name = "local",
	.open = local_open,
	.begin = local_begin,
	.range = local_range,
	.commit = local_commit,
	.why = local_why,
	.survives = "nothing",
	.configuration = local_configuration,
	.handle = local_handle,
	.close = local_close,
};
