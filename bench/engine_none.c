/*
 * engine_none.c - memory without transactions: what the workload itself costs.
 */
#include "area.h"
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plain {
	struct engine engine;
	void *memory;
	size_t size;
};

static struct engine *plain_open(const struct engine_options *options, size_t size, void **memory,
                                 char *why)
{
	struct plain *plain = calloc(1, sizeof(*plain));

	(void)options;
	if (!plain || !(plain->memory = area_filled(size, 0))) {
		snprintf(why, ENGINE_WHY, "%s", strerror(errno));
		free(plain);
		return NULL;
	}
	plain->engine.ops = &engine_none;
	plain->size = size;
	*memory = plain->memory;
	return &plain->engine;
}

static void plain_close(struct engine *engine)
{
	struct plain *plain = (struct plain *)engine;

	if (!plain)
		return;
	area_free(plain->memory, plain->size);
	free(plain);
}

static int plain_begin(struct engine *engine)
{
	(void)engine;
	return 0;
}

static int plain_range(struct engine *engine, const void *addr, size_t len)
{
	(void)engine;
	(void)addr;
	(void)len;
	return 0;
}

static const char *plain_why(const struct engine *engine)
{
	(void)engine;
	return "";
}

static struct perseas *plain_handle(struct engine *engine)
{
	(void)engine;
	return NULL;
}

const struct engine_ops engine_none = {
	.name = "none",
	.open = plain_open,
	.begin = plain_begin,
	.range = plain_range,
	.commit = plain_begin,
	.why = plain_why,
	.survives = "nothing",
	.handle = plain_handle,
	.close = plain_close,
};
