/*
 * engine_copies.c - what one mirror in memory costs at least, as PERSEAS has it: three copies of
 * every range. Its before-image goes to a log here, from there to the log of the mirror, and what
 * is new to the mirror's data. Nobody is at the other end, and nothing is waited for.
 */
#include "../client/core/bytes.h"
#include "area.h"
#include "engine.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES_LOG = 8 << 20, COPIES_RING = 16 << 20, LINE = 64, ASK_MOST = 8 * LINE };

/* One entry of the log; its before-image follows, padded to 8 bytes. */
struct entry {
	uint8_t *addr;
	size_t len;
};

struct copies {
	struct engine engine;
	uint8_t *memory;
	uint8_t *far; /* the mirror's data */
	size_t size;
	uint8_t *log;
	size_t used;
	uint8_t *ring; /* the mirror's log */
	size_t at;
	const char *why;
};

static void copies_close(struct engine *engine)
{
	struct copies *copies = (struct copies *)engine;

	if (!copies)
		return;
	area_free(copies->memory, copies->size);
	area_free(copies->far, copies->size);
	area_free(copies->log, COPIES_LOG);
	area_free(copies->ring, COPIES_RING);
	free(copies);
}

static struct engine *copies_open(const struct engine_options *options, size_t size, void **memory,
                                  char *why)
{
	struct copies *copies = calloc(1, sizeof(*copies));

	(void)options;
	if (copies)
		copies->size = size;
	if (!copies || !(copies->memory = area_filled(size, 0)) ||
	    !(copies->far = area_filled(size, 0)) || !(copies->log = area_filled(COPIES_LOG, 0)) ||
	    !(copies->ring = area_filled(COPIES_RING, 0))) {
		snprintf(why, ENGINE_WHY, "%s", strerror(errno));
		copies_close(&copies->engine);
		return NULL;
	}
	copies->engine.ops = &engine_copies;
	copies->why = "";
	*memory = copies->memory;
	return &copies->engine;
}

static int copies_begin(struct engine *engine)
{
	((struct copies *)engine)->used = 0;
	return 0;
}

/*
 * Asks for the lines of the mirror that the commit will write, so that they are on their way
 * meanwhile. Of a large range, the processor itself foresees the rest.
 */
static void ask_for(const struct copies *copies, const uint8_t *addr, size_t len)
{
	const uint8_t *far = copies->far + (addr - copies->memory);

	for (size_t i = 0; i < len && i < ASK_MOST; i += LINE)
		__builtin_prefetch(far + i, 1);
}

static int copies_range(struct engine *engine, const void *addr, size_t len)
{
	struct copies *copies = (struct copies *)engine;
	struct entry *entry = (struct entry *)(copies->log + copies->used);
	size_t need = sizeof(*entry) + ((len + 7) & ~(size_t)7);

	if (need > COPIES_LOG - copies->used) {
		copies->why = "the transaction is too large for the log";
		return -1;
	}
	ask_for(copies, addr, len);
	entry->addr = (uint8_t *)addr;
	entry->len = len;
	ps_copy(entry + 1, addr, len);
	copies->used += need;
	return 0;
}

static int copies_commit(struct engine *engine)
{
	struct copies *copies = (struct copies *)engine;

	if (copies->used > COPIES_RING - copies->at)
		copies->at = 0;
	ps_copy(copies->ring + copies->at, copies->log, copies->used);
	copies->at += copies->used;
	for (size_t done = 0; done < copies->used;) {
		const struct entry *entry = (const struct entry *)(copies->log + done);

		ps_copy(copies->far + (entry->addr - copies->memory), entry->addr, entry->len);
		done += sizeof(*entry) + ((entry->len + 7) & ~(size_t)7);
	}
	/* The compiler must not leave out what is overwritten by the next. */
	atomic_signal_fence(memory_order_seq_cst);
	return 0;
}

static const char *copies_why(const struct engine *engine)
{
	return ((const struct copies *)engine)->why;
}

static const char *copies_configuration(const struct engine *engine)
{
	(void)engine;
	return "three copies of each range, in this process: the least that a mirror costs";
}

static struct perseas *copies_handle(struct engine *engine)
{
	(void)engine;
	return NULL;
}

const struct engine_ops engine_copies = {
	.name = "copies",
	.open = copies_open,
	.begin = copies_begin,
	.range = copies_range,
	.commit = copies_commit,
	.why = copies_why,
	.survives = "nothing",
	.configuration = copies_configuration,
	.handle = copies_handle,
	.close = copies_close,
};
